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
//!         queue_depth: u64 = Kind::Count { min: 1, max: 256 }, default "1" formerly ["servers"],
//!             "Requests served at once.";
//!     }
//! }
//! assert_eq!(Parameters::PARAMS[4].name, "queue_depth");
//! ```
//!
//! To convert a component: replace its `const PARAMS` by the macro with the same names, kinds,
//! defaults and texts, put `params: Parameters::PARAMS` into its description, begin its builder
//! with `let parameters = Parameters::from_settings(input.settings);`, and replace
//! `settings.count("queue_depth")` by `parameters.queue_depth`. The type of a field has to fit its
//! kind, and is an `Option` if and only if the parameter is optional; both are checked by the
//! compiler. Fields are private unless they are marked `pub`.

use crate::param::{EntryChoice, Kind, Settings, Value};
use hybridsim_engine::SimDuration;

/// A type that the values of parameters are read into.
pub trait FieldType: Sized {
    /// The kinds with values of this type, as a sum of [`bit`]s.
    const KINDS: u32;
    /// Whether the parameter may be absent.
    const OPTIONAL: bool = false;
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
    f64: [1 | 5 | 6 | 7] Value::Number(number) => *number;
    SimDuration: [2] Value::Duration(time) => *time;
    bool: [8] Value::Flag(flag) => *flag;
    String: [9 | 10 | 12] Value::Text(text) => text.clone();
    EntryChoice: [11] Value::Entry(choice) => choice.clone();
    Vec<String>: [13] Value::Texts(texts) => texts.clone();
    Vec<u64>: [14] Value::Counts(counts) => counts.clone();
    Vec<f64>: [15] Value::Numbers(numbers) => numbers.clone();
    Vec<(f64, SimDuration)>: [16] Value::Curve(points) => points.clone();
    Vec<Settings>: [17] Value::Tables(tables) => tables.clone();
}

impl<T: FieldType> FieldType for Option<T> {
    const KINDS: u32 = T::KINDS;
    const OPTIONAL: bool = true;
    fn read(value: Option<&Value>) -> Option<Self> {
        Some(T::read(value))
    }
}

/// Reads parameter `name`.
///
/// # Panics
/// When the settings were not checked against the declaration.
pub fn field<T: FieldType>(settings: &Settings, name: &str) -> T {
    T::read(settings.get(name)).unwrap_or_else(|| panic!("parameter `{name}` was not checked"))
}

/// Checks at compile time that a field of type `T` fits the declaration of its parameter.
///
/// # Panics
/// When it does not.
pub const fn check<T: FieldType>(kind: &Kind, default: Option<&str>) {
    let optional = matches!(default, Some(text) if text.is_empty());
    assert!(T::OPTIONAL == optional, "a field is an `Option` if its parameter is optional");
    assert!(T::KINDS & bit(kind) != 0, "the type of a field does not fit the kind");
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
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident {
            $($field_visibility:vis $field:ident: $type:ty =
                $kind:expr, $need:ident $($default:literal)? $(formerly [$($former:literal),+])?
                $(needs $needs:expr)?, $help:literal;)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        $visibility struct $name {
            $(#[doc = $help] $field_visibility $field: $type,)+
        }

        impl $name {
            /// The declarations.
            $visibility const PARAMS: &'static [$crate::param::Param] = &[$(
                $crate::params!(@param stringify!($field), $kind, $help, $need $($default)?)
                    .formerly(&[$($($former),+)?])
                    $(.needs($needs))?
            ),+];

            /// The values in checked settings.
            $visibility fn from_settings(settings: &$crate::param::Settings) -> Self {
                Self { $($field: $crate::params::field(settings, stringify!($field)),)+ }
            }
        }

        const _: () = {
            let mut at = 0;
            $(
                let param = &$name::PARAMS[at];
                $crate::params::check::<$type>(&param.kind, param.default);
                at += 1;
            )+
            assert!(at == $name::PARAMS.len());
        };
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
            depth: u64 = Kind::Count { min: 1, max: 9 }, default "3" formerly ["servers"],
                "A depth.";
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
        let found = example("size = \"4KiB\"\nservers = 5\ndelay = \"2ms\"").expect("valid");
        assert_eq!((found.size, found.depth, found.share), (4096, 5, 0.07));
        assert_eq!((found.delay, found.mode.as_str()), (Some(SimDuration::from_ms(2)), "a"));
        assert!(found.names.is_empty());
        assert_eq!(example("size = \"1KiB\"").expect("valid").delay, None);
        assert!(example("").expect_err("the size is required").contains("size: is missing"));
        let problems = example("size = 3\ndepth = 0").expect_err("both are wrong");
        assert!(problems.contains("size") && problems.contains("depth"), "{problems}");
    }
}
