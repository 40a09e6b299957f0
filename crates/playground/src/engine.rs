//! Checks and runs scenarios.

use crate::{catalogue, check, knobs};
use hybridsim_config::diagnostic::{Diagnostics, SourceText};
use hybridsim_config::registry::Registry;
use hybridsim_observe::Detail;
use hybridsim_report::{Run, html};
use hybridsim_simulation::run::{self, OnProgress, Options};
use hybridsim_simulation::scenario::{Input, Scenario, schema};
use hybridsim_simulation::{memory, registry};
use hybridsim_workload::trace::in_memory;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Memory for the tables of devices: WebAssembly has 4 GiB for everything.
const MEMORY_BYTES_MAX: u64 = 3 << 30;

/// The registry, and the runs so far.
pub struct Engine {
    registry: Registry,
    runs: Vec<Run>,
}

impl Engine {
    pub fn new() -> Self {
        catalogue::put_small_traces();
        Self { registry: registry::standard(), runs: Vec::new() }
    }

    pub fn schema(&self) -> String {
        schema::schema(&self.registry).to_string()
    }

    pub fn clear(&mut self) {
        self.runs.clear();
    }

    /// Checks everything that can be checked before a run.
    pub fn check(&self, text: &str) -> Value {
        let scenario = match self.read(text, "scenario.toml") {
            Ok(scenario) => scenario,
            Err(diagnostics) => return check::problems(&diagnostics),
        };
        if let Err(diagnostics) = self.fits(&scenario) {
            return check::problems(&diagnostics);
        }
        let mut answer = json!({
            "title": scenario.title,
            "traces": missing(&scenario),
            "knobs": knobs::knobs(&scenario, &self.registry),
        });
        if missing(&scenario).is_empty() {
            match run::check(&scenario, &self.registry) {
                Ok(checked) => {
                    answer["warnings"] = json!(checked.warnings);
                    answer["capacity_sectors"] = json!(checked.capacity_sectors);
                }
                Err(error) => {
                    let refused = check::refusal(&error);
                    answer["problems"] = refused["problems"].clone();
                    answer["text"] = refused["text"].clone();
                }
            }
        }
        answer
    }

    /// Runs a scenario.
    pub fn run(&mut self, text: &str, name: &str, on_progress: &mut OnProgress<'_>) -> Value {
        let scenario = match self.read(text, name) {
            Ok(scenario) => scenario,
            Err(diagnostics) => return check::problems(&diagnostics),
        };
        if let [missing, ..] = &missing(&scenario)[..] {
            let message = format!("the trace {missing} is not here: drop its file on the page");
            return check::problems(&Diagnostics::single(message));
        }
        if let Err(diagnostics) = self.fits(&scenario) {
            return check::problems(&diagnostics);
        }
        let options =
            Options { detail: Detail::Full, on_progress: Some(on_progress), ..Options::default() };
        match run::run(&scenario, &self.registry, options) {
            Ok(output) => {
                let answer = json!({
                    "results": output.results,
                    "fault": output.fault.as_ref().map(ToString::to_string),
                });
                self.runs.push(output.shown());
                answer
            }
            Err(error) => check::refusal(&error),
        }
    }

    /// The report of all runs.
    pub fn report(&self) -> String {
        let titles: Vec<&str> = self.runs.iter().map(|run| &run.results.label.title[..]).collect();
        html::page(&titles.join(", "), &self.runs)
    }

    fn fits(&self, scenario: &Scenario) -> Result<(), Diagnostics> {
        let needed = memory::needed(scenario, &self.registry);
        if needed <= MEMORY_BYTES_MAX {
            return Ok(());
        }
        Err(Diagnostics::single(format!(
            "the tables of this system take up to {} MiB, and a page has {} MiB: use a smaller \
             device here, or the program",
            needed >> 20,
            MEMORY_BYTES_MAX >> 20
        )))
    }

    fn read(&self, text: &str, name: &str) -> Result<Scenario, Diagnostics> {
        let input = Input {
            source: SourceText { name: name.to_owned(), text: text.to_owned() },
            base: PathBuf::new(),
            sets: Vec::new(),
            trace: None,
        };
        Scenario::check(input, &self.registry)
    }
}

/// File names of traces of the scenario that are not in memory.
fn missing(scenario: &Scenario) -> Vec<String> {
    let tenants = scenario.tenants.iter().filter_map(|tenant| tenant.source.trace.as_ref());
    let all = scenario.source.trace.iter().chain(tenants).map(Path::new);
    let absent = all.filter(|path| !in_memory::has(path));
    absent.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "title = \"Small\"\n[workload]\ngenerator = { kind = \"uniform\", \
                         requests = 100 }\n[component.d]\nkind = \"constant-device\"\n\
                         capacity = \"1GiB\"\n";

    #[test]
    fn a_run_answers_with_the_results_of_the_command() {
        let mut engine = Engine::new();
        let answer = engine.run(SMALL, "small.toml", &mut |_| true);
        assert_eq!(answer["results"]["requests"], 100, "{answer}");
        assert!(answer["fault"].is_null());
        assert!(engine.report().contains("Small"));
        engine.clear();
        assert!(!engine.report().contains("Small"));
    }

    #[test]
    fn keys_of_entries_and_of_the_generator_are_offered() {
        let text = "[workload.generator]\nkind = \"streams\"\nrequests = 1\nregion = \"1MiB\"\n\
                    [component.d]\npreset = \"flashsim-large-block\"\nftl = \"page\"\n";
        let answer = Engine::new().check(text);
        let offered = |key: &str| {
            let all = answer["knobs"].as_array().expect("a list");
            all.iter().find(|knob| knob["key"] == key).expect("it is offered").clone()
        };
        assert_eq!(offered("workload.generator.active")["unit"], "streams");
        assert_eq!(offered("component.d.ftl.gc")["value"], "greedy");
        assert_eq!(offered("component.d.over_provisioning")["label"], "Over-provisioning");
    }

    #[test]
    fn problems_have_their_line() {
        let engine = Engine::new();
        let answer = engine.check(&SMALL.replace("capacity", "capacty"));
        let problem = &answer["problems"][0];
        assert_eq!(problem["place"]["line"], 6, "{answer}");
        assert!(problem["help"].as_str().is_some_and(|help| help.contains("capacity")), "{answer}");
    }

    #[test]
    fn a_system_that_does_not_fit_into_a_page_is_refused() {
        let text = "[workload]\ngenerator = { kind = \"uniform\", requests = 1 }\n\
                    [component.d]\npreset = \"sata-ssd\"\nblocks_per_plane = 5000\n\
                    dies_per_channel = 64\n";
        let answer = Engine::new().check(text);
        assert!(answer["text"].as_str().is_some_and(|it| it.contains("3072 MiB")), "{answer}");
    }

    #[test]
    fn a_trace_that_is_not_here_is_named() {
        let mut engine = Engine::new();
        let (before, after) = SMALL.split_once("generator").expect("it has one");
        let after = after.split_once('\n').expect("several lines").1;
        let text = format!("{before}trace = \"../x/mine.csv\"\n{after}");
        assert_eq!(engine.check(&text)["traces"], json!(["mine.csv"]));
        let answer = engine.run(&text, "it", &mut |_| true);
        assert!(answer["text"].as_str().is_some_and(|it| it.contains("mine.csv")), "{answer}");
        in_memory::put("mine.csv", b"1,1,8,0,70000\n1,1,8,0,80000\n".to_vec());
        assert_eq!(engine.check(&text)["traces"], json!([]));
    }

    #[test]
    fn examples_and_presets_are_listed_and_can_be_read() {
        let engine = Engine::new();
        let all = catalogue::catalogue();
        let examples = all["examples"].as_array().expect("a list");
        assert!(examples.len() > 15 && all["presets"].as_array().is_some_and(|it| it.len() > 20));
        for example in examples {
            let text = example["text"].as_str().expect("a text");
            let problems = engine.check(text)["problems"].clone();
            assert!(problems.is_null(), "{}: {problems}", example["name"]);
        }
    }
}
