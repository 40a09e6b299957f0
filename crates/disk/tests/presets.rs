//! Every preset is well-formed, complete, and builds the drive it is named after.

mod common;

#[test]
fn every_preset_builds_a_drive_of_its_capacity() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../presets/disk");
    let mut seen = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the presets folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a preset");
        assert!(text.starts_with("# "), "{name}: the first line says what it is");
        if text.contains("kind = \"smr-disk\"") {
            // A layer over another of the presets.
            continue;
        }
        let component = common::build(&text);
        let gigabytes = component.capacity() as f64 * 512.0 / 1e9;
        let watts = component.info().watts.expect("a drive draws power");
        assert!(watts.iter().any(|&w| w > 0.0), "{name}: no power");
        seen.push((name, gigabytes.round() as u32));
    }
    seen.sort();
    let seen: Vec<(&str, u32)> = seen.iter().map(|(name, gb)| (name.as_str(), *gb)).collect();
    let expected = [
        ("desktop-7200-160gb", 160),
        ("desktop-7200-80gb", 80),
        ("generic-sata-7200-250gb", 250),
        ("hitachi-travelstar-5k160", 160),
        ("hp-c2247a-1gb", 1),
        ("hp-c2249a-1gb", 1),
        ("hp-c3323a-1gb", 1),
        ("ibm-ultrastar-18es-9gb", 9),
        ("maxtor-atlas-10k-iv-146gb", 147),
        ("quantum-atlas-iii-9gb", 9),
        ("seagate-archive-8tb", 8036),
        ("seagate-barracuda-2gb", 2),
        ("seagate-cheetah-15k5-146gb", 147),
        ("seagate-cheetah-15k5-73gb", 73),
        ("seagate-cheetah-9lp", 9),
        ("seagate-exos-2x14-actuator", 7000),
        ("seagate-st41601n-1gb", 1),
    ];
    assert_eq!(seen, expected);
}
