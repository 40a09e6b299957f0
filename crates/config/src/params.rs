//! Declared parameters as a struct: the macro [`params!`](crate::params!).
//!
//! A component declares its parameters once, as fields. The macro generates the struct, its list
//! `PARAMS` and `from_settings`, so a name is written once and a misspelt one does not compile:
//!
//! ```
//! use hybridsim_config::effect::Needs;
//! use hybridsim_config::param::Kind;
//! use hybridsim_engine::SimDuration;
//!
//! hybridsim_config::params! {
//!     /// A device with a constant latency.
//!     pub struct Parameters {
//!         capacity: u64 = Kind::Bytes, required, "Size of the device.";
//!         latency: SimDuration = Kind::Duration, default "\"0ns\"", "Time per request.";
//!         rate: Option<u64> = Kind::Rate, optional, "Transfer rate.";
//!         jitter: bool = Kind::Flag, default "false" needs &[Needs::above_zero("latency")],
//!             "Whether the latency varies.";
//!         queue_depth: u64 = Kind::Count { min: 1, max: 256 }, default "1",
//!             "Requests served at once.";
//!     }
//! }
//! assert_eq!(Parameters::PARAMS[4].name, "queue_depth");
//! ```
//!
//! The type of a field has to fit its kind, and is an `Option` if and only if the parameter is
//! optional; both are checked by the compiler. Fields are private unless they are marked `pub`.
//!
//! A choice between words is an enumeration ([`choices!`](crate::choices!)). Parameters that
//! several components have, or that have conditions in common, are a struct of their own, which
//! others include. The struct is also the type of a parameter that is a table
//! (`Kind::Table(Link::PARAMS)`):
//!
//! ```
//! use hybridsim_config::effect::Needs;
//! use hybridsim_config::param::Kind;
//! use hybridsim_engine::SimDuration;
//!
//! hybridsim_config::choices! {
//!     /// Direction of transfer.
//!     pub enum Duplex { Full = "full", Half = "half" }
//! }
//! hybridsim_config::params! {
//!     /// Transfer times of a link.
//!     pub struct Link {
//!         pub rate: u64 = Kind::Rate, required, "Transfer rate.";
//!         pub duplex: Duplex = Kind::Choice(Duplex::NAMES), default "full", "Directions at once.";
//!     }
//! }
//! hybridsim_config::params! {
//!     /// A device behind a link.
//!     pub struct Device includes { link: Link where &[Needs::Is("timed", &["true"])] } {
//!         timed: bool = Kind::Flag, default "true", "Whether requests take time.";
//!     }
//! }
//! assert_eq!(Device::PARAMS.len(), 3);
//! assert_eq!(Device::PARAMS[1].all_needs().count(), 1);
//! ```

use crate::param::{EntryChoice, Kind, Param, Settings, Value};
use hybridsim_engine::SimDuration;

/// A type that the values of parameters are read into.
pub trait FieldType: Sized {
    /// The kinds with values of this type, as a sum of [`bit`]s.
    const KINDS: u32;
    /// Whether the parameter may be absent.
    const OPTIONAL: bool = false;
    /// The largest whole number that it holds.
    const MAX: u64 = u64::MAX;
    /// The words that it distinguishes, of a choice.
    const WORDS: Option<&'static [&'static str]> = None;
    /// Reads a value; `None` when the parameter is absent.
    fn read(value: Option<&Value>) -> Option<Self>;
}

/// A bit for each kind.
pub const fn bit(kind: &Kind) -> u32 {
    1 << match kind {
        Kind::Count { .. } => 0,
        Kind::Number { .. } => 1,
        Kind::Duration => 2,
        Kind::Bytes => 3,
        Kind::Rate => 4,
        Kind::Rpm => 5,
        Kind::Power => 6,
        Kind::Energy => 7,
        Kind::Flag => 8,
        Kind::Text => 9,
        Kind::Choice(_) => 10,
        Kind::Entry(_) => 11,
        Kind::Component => 12,
        Kind::Components => 13,
        Kind::Counts => 14,
        Kind::Numbers => 15,
        Kind::Curve => 16,
        Kind::Tables(_) => 17,
        Kind::Table(_) => 18,
        Kind::Entries(_) => 19,
        Kind::MeanBytes => 20,
    }
}

macro_rules! field_types {
    ($($type:ty: [$($kind:literal)|+] $pattern:pat => $value:expr;)+) => {
        $(impl FieldType for $type {
            const KINDS: u32 = $(1 << $kind)|+;
            fn read(value: Option<&Value>) -> Option<Self> {
                match value? {
                    $pattern => Some($value),
                    _ => None,
                }
            }
        })+
    };
}

field_types! {
    u64: [0 | 3 | 4] Value::Count(n) | Value::Bytes(n) | Value::Rate(n) => *n;
    f64: [1 | 5 | 6 | 7 | 20] Value::Number(number) => *number;
    SimDuration: [2] Value::Duration(time) => *time;
    bool: [8] Value::Flag(flag) => *flag;
    String: [9 | 10 | 12] Value::Text(text) => text.clone();
    EntryChoice: [11] Value::Entry(choice) => choice.clone();
    Vec<String>: [13] Value::Texts(texts) => texts.clone();
    Vec<u64>: [14] Value::Counts(counts) => counts.clone();
    Vec<f64>: [15] Value::Numbers(numbers) => numbers.clone();
    Vec<(f64, SimDuration)>: [16] Value::Curve(points) => points.clone();
    Vec<Settings>: [17] Value::Tables(tables) => tables.clone();
    Settings: [18] Value::Table(table) => table.clone();
    Vec<EntryChoice>: [19] Value::Entries(choices) => choices.clone();
}

macro_rules! smaller_counts {
    ($($type:ty),+) => {
        $(impl FieldType for $type {
            const KINDS: u32 = 1;
            const MAX: u64 = <$type>::MAX as u64;
            fn read(value: Option<&Value>) -> Option<Self> {
                match value? {
                    Value::Count(count) => <$type>::try_from(*count).ok(),
                    _ => None,
                }
            }
        })+
    };
}

smaller_counts! { u8, u16, u32, usize }

impl<T: FieldType> FieldType for Option<T> {
    const KINDS: u32 = T::KINDS;
    const OPTIONAL: bool = true;
    const MAX: u64 = T::MAX;
    const WORDS: Option<&'static [&'static str]> = T::WORDS;
    fn read(value: Option<&Value>) -> Option<Self> {
        Some(T::read(value))
    }
}

/// The key of the field `identifier`, which may be a raw identifier such as `r#do`.
pub const fn key(identifier: &str) -> &str {
    match identifier.as_bytes() {
        [b'r', b'#', ..] => identifier.split_at(2).1,
        _ => identifier,
    }
}

/// Reads parameter `name`.
///
/// # Panics
/// If the settings were not checked against the declaration.
pub fn field<T: FieldType>(settings: &Settings, name: &str) -> T {
    T::read(settings.value(name)).unwrap_or_else(|| panic!("parameter `{name}` was not checked"))
}

/// Checks at compile time that a field of type `T` fits the declaration of its parameter.
///
/// # Panics
/// If it does not.
pub const fn check<T: FieldType>(param: &Param) {
    let optional = matches!(param.default, Some(text) if text.is_empty());
    assert!(T::OPTIONAL == optional, "a field is an `Option` if its parameter is optional");
    assert!(T::KINDS & bit(&param.kind) != 0, "the type of a field does not fit the kind");
    match param.kind {
        Kind::Count { max, .. } => assert!(max <= T::MAX, "the type does not hold the maximum"),
        Kind::Choice(words) => {
            if let Some(names) = T::WORDS {
                assert!(same(words, names), "the choice has other words than its type");
            }
        }
        _ => {}
    }
}

/// Whether two lists have the same words.
const fn same(one: &[&str], other: &[&str]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() {
        let (a, b) = (one[at].as_bytes(), other[at].as_bytes());
        let mut byte = 0;
        while byte < a.len() && byte < b.len() && a[byte] == b[byte] {
            byte += 1;
        }
        if byte < a.len() || byte < b.len() {
            return false;
        }
        at += 1;
    }
    one.len() == other.len()
}

/// Declares parameters as the fields of a struct; see [the module](mod@crate::params).
#[macro_export]
macro_rules! params {
    (@param $name:expr, $kind:expr, $help:expr, required) => {
        $crate::param::Param::required($name, $kind, $help)
    };
    (@param $name:expr, $kind:expr, $help:expr, optional) => {
        $crate::param::Param::optional($name, $kind, $help)
    };
    (@param $name:expr, $kind:expr, $help:expr, default $default:literal) => {
        $crate::param::Param::with($name, $kind, $default, $help)
    };
    (@group $type:ty) => {
        (<$type>::PARAMS, &[])
    };
    (@group $type:ty, $needs:expr) => {
        (<$type>::PARAMS, $needs)
    };
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident $(includes {
            $($group_visibility:vis $group:ident: $group_type:ty
                $(where $group_needs:expr)?),+ $(,)?
        })? {
            $($field_visibility:vis $field:ident: $type:ty =
                $kind:expr, $need:ident $($default:literal)?
                $(needs $needs:expr)?, $help:expr;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        $visibility struct $name {
            $($(
                /// Included parameters.
                $group_visibility $group: $group_type,
            )+)?
            $(#[doc = $help] $field_visibility $field: $type,)*
        }

        impl $crate::params::FieldType for $name {
            const KINDS: u32 = 1 << 18;
            fn read(value: Option<&$crate::param::Value>) -> Option<Self> {
                match value? {
                    $crate::param::Value::Table(table) => Some(Self::from_settings(table)),
                    _ => None,
                }
            }
        }

        impl $name {
            const OWN: &'static [$crate::param::Param] = &[$(
                $crate::params!(
                    @param $crate::params::key(stringify!($field)), $kind, $help,
                    $need $($default)?
                )
                    $(.needs($needs))?
            ),*];

            const GROUPS: &'static [$crate::param::Group] = &[
                $($($crate::params!(@group $group_type $(, $group_needs)?),)+)?
                (Self::OWN, &[]),
            ];

            /// The declarations.
            $visibility const PARAMS: &'static [$crate::param::Param] =
                &$crate::param::grouped::<{ $crate::param::total($name::GROUPS) }>(Self::GROUPS);

            /// The values in checked settings.
            $visibility fn from_settings(settings: &$crate::param::Settings) -> Self {
                Self {
                    $($($group: <$group_type>::from_settings(settings),)+)?
                    $($field: $crate::params::field(
                        settings,
                        $crate::params::key(stringify!($field)),
                    ),)*
                }
            }
        }

        const _: () = {
            let mut _at = 0;
            $(
                $crate::params::check::<$type>(&$name::OWN[_at]);
                _at += 1;
            )*
        };
    };
}

/// Declares a choice between words as an enumeration; see [the module](mod@crate::params).
#[macro_export]
macro_rules! choices {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $word:literal),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name {
            $($(#[$variant_meta])* #[doc = concat!("`", $word, "`.")] $variant,)+
        }

        impl $name {
            /// The words, in the order of the variants.
            $visibility const NAMES: &'static [&'static str] = &[$($word),+];
        }

        impl $crate::params::FieldType for $name {
            const KINDS: u32 = 1 << 10;
            const WORDS: Option<&'static [&'static str]> = Some(Self::NAMES);
            fn read(value: Option<&$crate::param::Value>) -> Option<Self> {
                let $crate::param::Value::Text(text) = value? else { return None };
                match text.as_str() {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::check::read;
    use crate::param::Kind;
    use crate::registry::Registry;
    use hybridsim_engine::SimDuration;

    params! {
        /// Parameters of several kinds.
        struct Example {
            size: u64 = Kind::Bytes, required, "A size.";
            depth: u64 = Kind::Count { min: 1, max: 9 }, default "3", "A depth.";
            share: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "\"7%\"", "A share.";
            delay: Option<SimDuration> = Kind::Duration, optional, "A delay.";
            mode: String = Kind::Choice(&["a", "b"]), default "a", "A mode.";
            names: Vec<String> = Kind::Components, default "[]", "Names.";
        }
    }

    fn example(text: &str) -> Result<Example, String> {
        let settings = read(text, &[Example::PARAMS], &Registry::default());
        settings.map(|it| Example::from_settings(&it)).map_err(|problems| problems.to_string())
    }

    #[test]
    fn fields_are_read_from_their_parameters() {
        let found = example("size = \"4KiB\"\ndepth = 5\ndelay = \"2ms\"").expect("valid");
        assert_eq!((found.size, found.depth, found.share), (4096, 5, 0.07));
        assert_eq!((found.delay, found.mode.as_str()), (Some(SimDuration::from_ms(2)), "a"));
        assert!(found.names.is_empty());
        assert_eq!(example("size = \"1KiB\"").expect("valid").delay, None);
        assert!(example("").expect_err("the size is required").contains("size: is missing"));
        let problems = example("size = 3\ndepth = 0").expect_err("both are wrong");
        assert!(problems.contains("size") && problems.contains("depth"), "{problems}");
    }
}
