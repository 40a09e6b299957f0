//! The numbers that a component reports as custom events.

/// Declares statistics by variant and by name in results. With `after`, statistics of those names
/// come first.
#[macro_export]
macro_rules! statistics {
    ($(#[$doc:meta])* enum Statistic $(after $first:path)? {
        $($(#[$of:meta])* $variant:ident = $name:literal),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Statistic { $($(#[$of])* $variant),* }

        impl Statistic {
            const FIRST: &'static [&'static str] = $crate::statistics!(@first $($first)?);
            const OWN: &'static [&'static str] = &[$($name),*];

            /// An event that reports `value`.
            pub const fn event(self, value: u64) -> $crate::CommonEvent {
                $crate::CommonEvent::Custom { name: Self::FIRST.len() as u8 + self as u8, value }
            }
        }

        /// Names of the statistics in results.
        pub const STATISTIC_NAMES: &[&str] = &$crate::statistics::joined::<
            { Statistic::FIRST.len() + Statistic::OWN.len() },
        >(Statistic::FIRST, Statistic::OWN);
    };
    (@first) => { &[] };
    (@first $first:path) => { $first };
}

/// Two lists of names in one, of length `N`.
#[doc(hidden)]
pub const fn joined<const N: usize>(
    first: &[&'static str],
    own: &[&'static str],
) -> [&'static str; N] {
    let (mut all, mut at) = ([""; N], 0);
    while at < N {
        all[at] = if at < first.len() { first[at] } else { own[at - first.len()] };
        at += 1;
    }
    all
}
