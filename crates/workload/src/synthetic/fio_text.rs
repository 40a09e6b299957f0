//! fio's notations of `bssplit`, `percentage_random` and `random_distribution`.

use hybridsim_engine::SECTOR_BYTES;

/// A block size in fio's notation, in sectors: `4k`, `1m`, `512`; k is 1024.
fn parse_size(text: &str) -> Result<u32, String> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let unit = match &lower[digits..] {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1u64 << 30,
        other => return Err(format!("`{other}` in `{text}` is not a unit: use k, m or g")),
    };
    let bytes = lower[..digits].parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    match bytes {
        Some(bytes) if bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES) => {
            u32::try_from(bytes / SECTOR_BYTES).map_err(|_| format!("`{text}` is not below 2 TiB"))
        }
        _ => Err(format!("`{text}` is not a multiple of 512 bytes, such as `4k`")),
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.trim().trim_end_matches('%').parse::<f64>();
    percent
        .ok()
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| format!("`{text}` is not a percentage from 0 to 100"))
}

/// `100,0` to shares of reads, writes and trims. Of fewer values the last is for the rest.
pub fn parse_percentages(text: &str) -> Result<[f64; 3], String> {
    let given = text.split(',').map(parse_percent).collect::<Result<Vec<_>, _>>()?;
    match given.as_slice() {
        [.., last] if given.len() <= 3 => {
            Ok(std::array::from_fn(|at| given.get(at).unwrap_or(last) / 100.0))
        }
        _ => Err(format!("{} values: there are only reads, writes and trims", given.len())),
    }
}

/// `4k/60:64k/40` to (sectors, percent) pairs. Entries without a percentage share the rest.
/// A comma separates the splits of reads, writes and trims.
pub fn parse_bssplit(text: &str) -> Result<Vec<Vec<(u32, f64)>>, String> {
    let splits = text.split(',').map(parse_one_split).collect::<Result<Vec<_>, _>>()?;
    if splits.len() > 3 {
        return Err(format!("{} splits: there are only reads, writes and trims", splits.len()));
    }
    Ok(splits)
}

fn parse_one_split(text: &str) -> Result<Vec<(u32, f64)>, String> {
    let mut entries = Vec::new();
    for entry in text.split(':') {
        let (size, percent) = entry.split_once('/').unwrap_or((entry, ""));
        let percent = if percent.trim().is_empty() { None } else { Some(parse_percent(percent)?) };
        entries.push((parse_size(size)?, percent));
    }
    let given: f64 = entries.iter().filter_map(|(_, percent)| *percent).sum();
    let open = entries.iter().filter(|(_, percent)| percent.is_none()).count();
    if given > 100.0 + 1e-6 || (open == 0 && given < 100.0 - 1e-6) {
        return Err(format!("the percentages of `{text}` add up to {given}, not to 100"));
    }
    let rest = (100.0 - given).max(0.0) / open.max(1) as f64;
    Ok(entries.into_iter().map(|(size, percent)| (size, percent.unwrap_or(rest))).collect())
}

/// A parsed `random_distribution`.
#[derive(Clone, Debug, PartialEq)]
pub enum RandomDistribution {
    /// `random`: uniform.
    Uniform,
    /// `zipf:THETA`.
    Zipf(f64),
    /// `pareto:H`.
    Pareto(f64),
    /// `normal:PERCENT`, the standard deviation in percent of the region.
    Normal(f64),
    /// `zoned:ACCESS/SIZE:...`, both in percent.
    Zoned(Vec<(f64, f64)>),
}

/// Reads `random`, `zipf:1.1`, `pareto:0.2`, `normal:20` or `zoned:60/10:30/20:10/70`.
pub fn parse_distribution(text: &str) -> Result<RandomDistribution, String> {
    let (kind, value) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
    let number = |default: f64| match value.trim() {
        "" => Ok(default),
        text => text.parse::<f64>().map_err(|_| format!("`{text}` is not a number")),
    };
    match kind {
        "random" => Ok(RandomDistribution::Uniform),
        "zipf" => match number(1.1)? {
            theta if theta > 0.0 && theta <= 10.0 => Ok(RandomDistribution::Zipf(theta)),
            theta => Err(format!("zipf:{theta}: theta must be above 0, at most 10")),
        },
        "pareto" => match number(0.2)? {
            h if h > 0.0 && h < 1.0 => Ok(RandomDistribution::Pareto(h)),
            h => Err(format!("pareto:{h}: h must be between 0 and 1")),
        },
        "normal" => match number(0.0)? {
            percent if percent > 0.0 && percent <= 100.0 => Ok(RandomDistribution::Normal(percent)),
            percent => Err(format!("normal:{percent}: must be above 0, at most 100 percent")),
        },
        "zoned" => parse_zones(value).map(RandomDistribution::Zoned),
        other => Err(format!(
            "`{other}` is unknown: use random, zipf:THETA, pareto:H, normal:PERCENT or \
             zoned:ACCESS/SIZE:..."
        )),
    }
}

fn parse_zones(text: &str) -> Result<Vec<(f64, f64)>, String> {
    let mut zones = Vec::new();
    for zone in text.split(':') {
        let (access, size) = zone
            .split_once('/')
            .ok_or_else(|| format!("zone `{zone}` is not of the form ACCESS/SIZE"))?;
        zones.push((parse_percent(access)?, parse_percent(size)?));
    }
    let sum = |pick: fn(&(f64, f64)) -> f64| zones.iter().map(pick).sum::<f64>();
    let (access, size) = (sum(|zone| zone.0), sum(|zone| zone.1));
    if (access - 100.0).abs() > 1e-6 || size > 100.0 + 1e-6 {
        return Err(format!(
            "zones have {access} % of accesses and {size} % of the region: must be 100 and at \
             most 100"
        ));
    }
    if zones.iter().any(|&(access, size)| access > 0.0 && size <= 0.0) {
        return Err("a zone of size 0 has accesses".to_owned());
    }
    zones.retain(|zone| zone.0 > 0.0 || zone.1 > 0.0);
    Ok(zones)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_split(text: &str, expect: Option<&[(u32, f64)]>) {
        let parsed = parse_bssplit(text);
        assert_eq!(parsed.as_ref().ok().map(|splits| &splits[0][..]), expect, "{parsed:?}");
    }

    #[test]
    fn bssplit_as_fio_writes_it() {
        check_split("4k/60:64k/40", Some(&[(8, 60.0), (128, 40.0)]));
        check_split("4k/50:8K/:16KiB/", Some(&[(8, 50.0), (16, 25.0), (32, 25.0)]));
        check_split("1m", Some(&[(2048, 100.0)]));
        check_split("4k/60:64k/50", None);
        check_split("4k/60", None);
        check_split("100/100", None);
        check_split("4x/100", None);
        check_split("", None);
        check_split("4k/-1", None);
        check_split("99999999999999999999k", None);
        check_split("18446744073709551615g/100", None);
        check_split("4k,4k,4k,4k", None);
    }

    #[test]
    fn percentages_are_for_reads_writes_and_trims() {
        for (text, expect) in [
            ("100", Some([1.0; 3])),
            ("100, 0", Some([1.0, 0.0, 0.0])),
            ("10,20,30", Some([0.1, 0.2, 0.3])),
            ("", None),
            ("101", None),
            ("1,2,3,4", None),
        ] {
            assert_eq!(parse_percentages(text).ok(), expect, "{text}");
        }
    }

    #[test]
    fn distributions_as_fio_writes_them() {
        use RandomDistribution::*;
        for (text, expect) in [
            ("random", Some(Uniform)),
            ("zipf:1.2", Some(Zipf(1.2))),
            ("zipf", Some(Zipf(1.1))),
            ("pareto:0.3", Some(Pareto(0.3))),
            ("normal:20", Some(Normal(20.0))),
            ("zoned:60/10:40/90", Some(Zoned(vec![(60.0, 10.0), (40.0, 90.0)]))),
            ("zoned:60/10", None),
            ("zoned:100/0", None),
            ("zoned", None),
            ("zipf:0", None),
            ("zipf:nan", None),
            ("pareto:1", None),
            ("normal", None),
            ("gauss", None),
        ] {
            assert_eq!(parse_distribution(text).ok(), expect, "{text}");
        }
    }
}
