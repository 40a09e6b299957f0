//! Conditions under which parameters have an effect.

use std::fmt;

/// A condition on another parameter, by the words of [`Value::word`](crate::param::Value::word). A
/// path such as `ftl.gc` leads into the entry that a parameter of the same table chooses, or into
/// its table; `^.timing` names a parameter of the table around this one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Needs {
    /// The parameter has one of these values.
    Is(&'static str, &'static [&'static str]),
    /// The parameter has none of these values.
    Not(&'static str, &'static [&'static str]),
    /// The entry that the parameter chooses provides a capability
    /// ([`Entry::provides`](crate::registry::Entry::provides)).
    Provides(&'static str, &'static str),
    /// One of these conditions is met at least.
    Any(&'static [Needs]),
}

impl Needs {
    /// The parameter has a value.
    pub const fn given(name: &'static str) -> Self {
        Self::Not(name, &["absent"])
    }

    /// The parameter has a value and is not zero.
    pub const fn above_zero(name: &'static str) -> Self {
        Self::Not(name, &["absent", "0"])
    }

    /// The parameter has no value.
    pub const fn absent(name: &'static str) -> Self {
        Self::Is(name, &["absent"])
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Not(name, words) if !words.contains(&"absent") && !words.contains(&"0") => {
                write!(f, "has no effect with `{} = {}`", shown(name), listed(words))
            }
            _ => {
                write!(f, "has an effect only with ")?;
                self.write_condition(f)
            }
        }
    }
}

/// The name of a parameter as it is shown: without the `^.` of one of the enclosing table.
fn shown(name: &str) -> &str {
    name.trim_start_matches("^.")
}

/// Values as a list, `""` for an empty text.
fn listed(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|it| if it.is_empty() { "\"\"" } else { it }).collect();
    quoted.join("` or `")
}

impl Needs {
    fn write_condition(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Is(name, &["absent"]) => write!(f, "no `{}`", shown(name)),
            Self::Is(name, words) => write!(f, "`{} = {}`", shown(name), listed(words)),
            Self::Not(name, &["absent"]) => write!(f, "`{}`", shown(name)),
            Self::Not(name, words) if words.contains(&"0") => {
                write!(f, "`{}` above 0", shown(name))
            }
            Self::Not(name, words) => {
                write!(f, "`{}` other than `{}`", shown(name), listed(words))
            }
            Self::Provides(name, capability) => {
                write!(f, "a `{}` that has {capability}", shown(name))
            }
            Self::Any(needs) => {
                for (at, need) in needs.iter().enumerate() {
                    if at > 0 {
                        write!(f, " or ")?;
                    }
                    need.write_condition(f)?;
                }
                Ok(())
            }
        }
    }
}
