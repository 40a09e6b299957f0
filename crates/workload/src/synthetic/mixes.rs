//! Size mixes of konanki's applications.

/// Sizes with their shares, and the share of random writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// The name used in scenarios.
    pub name: &'static str,
    /// (sectors, share of requests).
    pub sizes: &'static [(u32, f64)],
    /// Share of writes not contiguous with the previous write.
    pub random: f64,
}

const fn mix(name: &'static str, random: f64, sizes: &'static [(u32, f64)]) -> Mix {
    Mix { name, sizes, random }
}

/// konanki, Tables 5.1 and 5.2 (the flash-stick set), then 5.3 and 5.4 (the analysis set). The
/// classes of Table 5.3 are taken as the sizes themselves.
pub const MIXES: &[Mix] = &[
    mix("bonnie", 0.061, &[(8, 0.02), (32, 0.03), (256, 0.95)]),
    mix("download", 0.064, &[(8, 0.01), (32, 0.02), (256, 0.97)]),
    mix("mp3", 0.105, &[(8, 0.01), (32, 0.01), (64, 0.01), (128, 0.02), (256, 0.95)]),
    mix("untar", 0.669, &[(8, 0.22), (16, 0.03), (32, 0.04), (64, 0.07), (128, 0.11), (256, 0.53)]),
    mix(
        "postmark",
        0.98,
        &[(8, 0.39), (16, 0.24), (32, 0.20), (64, 0.10), (128, 0.04), (256, 0.03)],
    ),
    mix(
        "firefox-analysis",
        0.847,
        &[(16, 0.62), (32, 0.10), (64, 0.10), (128, 0.12), (256, 0.04), (512, 0.01), (1024, 0.01)],
    ),
    mix("dia-analysis", 0.813, &[(16, 0.77), (32, 0.06), (64, 0.04), (128, 0.13)]),
    mix("mp3-analysis", 0.275, &[(16, 0.17), (128, 0.08), (256, 0.02), (512, 0.08), (1024, 0.65)]),
    mix(
        "untar-analysis",
        0.947,
        &[(16, 0.09), (32, 0.05), (64, 0.09), (128, 0.16), (256, 0.28), (512, 0.20), (1024, 0.13)],
    ),
    mix(
        "postmark-analysis",
        0.998,
        &[(16, 0.62), (32, 0.23), (64, 0.10), (128, 0.04), (256, 0.01)],
    ),
];

/// Their names, and `custom` for sizes given by the user.
pub const NAMES: &[&str] = &[
    "custom",
    "bonnie",
    "download",
    "mp3",
    "untar",
    "postmark",
    "firefox-analysis",
    "dia-analysis",
    "mp3-analysis",
    "untar-analysis",
    "postmark-analysis",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mix_sums_to_one_and_is_named() {
        for mix in MIXES {
            let sum: f64 = mix.sizes.iter().map(|(_, share)| share).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{}: {sum}", mix.name);
            assert!(NAMES.contains(&mix.name));
        }
        assert_eq!(NAMES.len(), MIXES.len() + 1);
    }
}
