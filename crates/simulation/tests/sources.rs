//! The sources whose hash distinguishes cached states and results of sweeps.

#[expect(dead_code, reason = "the rest of the build script")]
#[path = "../build.rs"]
mod build;

#[test]
fn every_crate_that_decides_a_result_is_hashed() {
    let crates = build::crates();
    for name in ["simulation", "engine", "config", "workload", "flash", "ssd", "layer", "hybrid"] {
        assert!(crates.iter().any(|it| it == name), "{name} is not among {crates:?}");
    }
    assert!(!crates.iter().any(|it| it == "serve"), "{crates:?}");
}
