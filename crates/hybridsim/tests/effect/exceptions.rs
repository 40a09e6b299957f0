//! Keys whose effect the small systems do not show.

/// Key, a part of the values given (empty for all), and the reason.
pub const ALL: &[(&str, &str, &str)] = &[];
