//! The scenarios that an experiment writes give the results of its jobs.

use hybridsim_reproduce::{Job, Runner};
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::fs;
use std::sync::atomic::AtomicBool;

#[test]
fn written_scenarios_give_the_results_of_the_jobs() {
    let folder = tempfile::tempdir().expect("a folder");
    let (registry, interrupted) = (standard(), AtomicBool::new(false));
    let path = folder.path().join("konanki/fig5.9");
    let runner = Runner::new(&registry, &interrupted, &|_| ()).writing_scenarios(path.clone());
    let job = |file: &str| {
        Job::paper(file)
            .set("workload.generator.requests", 300)
            .set("workload.generator.span", "\"64MiB\"")
            .at_seed(2)
    };
    let jobs = [job("konanki/analysis-disk.toml"), job("konanki/analysis-hybrid.toml")];
    let ran = runner.run(&jobs).unwrap_or_else(|error| panic!("{error}"));
    let mut files: Vec<_> = fs::read_dir(&path)
        .expect("the folder of the experiment")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert_eq!(files.len(), jobs.len());
    for (file, ran) in files.iter().zip(ran) {
        let input = Input::read(file, &[]).unwrap_or_else(|error| panic!("{error}"));
        let scenario = Scenario::check(input, &registry).unwrap_or_else(|error| panic!("{error}"));
        let again = run::run(&scenario, &registry, Options::default());
        let again = again.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.results.fingerprint, ran.results.fingerprint, "{}", file.display());
    }
}
