//! Zones for drives whose zone table is not published: straight line from outer to inner.

use super::zone::{Skew, SkewUnit, ZoneSpec};

/// `count` zones of about equal width over `cylinders`, from `outer` to `inner` sectors per track.
pub(crate) fn zones(
    cylinders: u32,
    count: u32,
    (outer, inner): (u32, u32),
    unit: SkewUnit,
    skew: Skew,
) -> Vec<ZoneSpec> {
    let count = count.clamp(1, cylinders);
    let edge = |zone: u32| (u64::from(cylinders) * u64::from(zone) / u64::from(count)) as u32;
    let steps = f64::from(count.max(2) - 1);
    (0..count)
        .map(|zone| {
            let share = f64::from(zone) / steps;
            let density = f64::from(outer) + (f64::from(inner) - f64::from(outer)) * share;
            let sectors_per_track = density.round() as u32;
            ZoneSpec {
                first_cylinder: edge(zone),
                last_cylinder: edge(zone + 1) - 1,
                sectors_per_track,
                skew: Skew {
                    track: unit.turns(skew.track, sectors_per_track),
                    cylinder: unit.turns(skew.cylinder, sectors_per_track),
                    band: unit.turns(skew.band, sectors_per_track),
                },
                ..ZoneSpec::default()
            }
        })
        .collect()
}
