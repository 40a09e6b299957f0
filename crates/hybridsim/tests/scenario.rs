//! Scenario files with a toy component: accepted input and error messages.

use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::param::{EntryChoice, Kind, Param, Problem, Value};
use hybridsim_config::params::field;
use hybridsim_config::registry::{Description, Registry};
use hybridsim_engine::{
    Completion, Component, ComponentInfo, Ctx, LatencyBreakdown, Request, RequestId, SimDuration,
};
use hybridsim_simulation::build;
use hybridsim_simulation::scenario::resolve::resolve;
use hybridsim_simulation::scenario::{Input, Scenario};
use std::path::PathBuf;

struct Toy(u64);

impl Component for Toy {
    fn capacity(&self) -> u64 {
        self.0
    }
    fn info(&self) -> ComponentInfo {
        ComponentInfo { kind: "toy", ..ComponentInfo::default() }
    }
    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, _request: &Request) {
        ctx.complete(id, LatencyBreakdown::NONE);
    }
    fn completion(&mut self, _ctx: &mut Ctx<'_>, _done: &Completion) {}
}

const TOY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "toy",
        summary: "Completes at once.",
        origin: "",
        params: &[
            Param::required("size", Kind::Bytes, "Its capacity."),
            Param::with("delay", Kind::Duration, "25us", "How long it takes."),
            Param::with("share", Kind::Number { min: 0.0, max: 1.0 }, "7%", "A ratio."),
            Param::with("mode", Kind::Choice(&["fast", "slow"]), "fast", "A word."),
            Param::with("depth", Kind::Count { min: 1, max: 256 }, "32", "A count."),
            Param::optional("curve", Kind::Curve, "A curve."),
            Param::optional("below", Kind::Components, "Children."),
        ],
    },
    |input: &BuildInput<'_>| {
        let size: u64 = field(input.settings, "size");
        if !size.is_multiple_of(512) {
            return Err(vec![Problem::new("size", "must be a multiple of 512 bytes")]);
        }
        Ok(Box::new(Toy(size / 512 + input.children.iter().map(|c| c.capacity).sum::<u64>())))
    },
);

fn registry() -> Registry {
    let mut registry = hybridsim_simulation::registry::standard();
    registry.add(TOY);
    registry
}

fn check(text: &str, sets: &[&str]) -> Result<Scenario, String> {
    // The workload is not what these tests are about; a trace needs to be named, not to exist.
    let text = format!("workload.trace = \"x.hst\"\n{text}");
    let input = Input {
        source: SourceText { name: "toy.toml".into(), text },
        base: PathBuf::new(),
        sets: sets.iter().map(|set| (*set).to_owned()).collect(),
        trace: None,
    };
    Scenario::check(input, &registry()).map_err(|diagnostics| diagnostics.to_string())
}

fn refused(text: &str, words: &[&str]) {
    let message = check(text, &[]).expect_err("must be refused");
    for word in words {
        assert!(message.contains(word), "`{word}` is missing in:\n{message}");
    }
}

#[test]
fn defaults_fill_what_is_not_written() {
    let scenario = check("[component.a]\nkind = \"toy\"\nsize = \"1MiB\"", &[]).expect("valid");
    let settings = &scenario.components[0].settings;
    assert_eq!(field::<SimDuration>(settings, "delay").as_ns(), 25_000);
    assert_eq!(field::<f64>(settings, "share"), 0.07);
    assert_eq!(field::<u64>(settings, "depth"), 32);
    assert!(!settings.has("curve"));
}

#[test]
fn all_mistakes_are_reported_at_once_with_their_lines() {
    let text = "[component.a]\nkind = \"toy\"\nsize = \"4k\"\n\
                deth = 3\nmode = \"fats\"\ndepth = 999\n\
                curve = [[2, \"1ms\"], [1, \"2ms\"]]\n";
    refused(
        text,
        &[
            "4kB",
            "4KiB",
            "did you mean `depth`?",
            "did you mean `fast`?",
            "1 to 256",
            "ascend",
            "toy.toml:4",
            "toy.toml:5",
            "toy.toml:6",
            "5 problems",
        ],
    );
}

#[test]
fn keys_of_a_replay_are_not_taken_for_a_generator() {
    let text = "[workload]\ngenerator = { kind = \"uniform\", requests = 5 }\n\
                [component.a]\nkind = \"toy\"\nsize = \"1MiB\"";
    let check = |sets: &[&str]| {
        let input = Input {
            source: SourceText { name: "toy.toml".into(), text: text.to_owned() },
            base: PathBuf::new(),
            sets: sets.iter().map(|set| (*set).to_owned()).collect(),
            trace: None,
        };
        Scenario::check(input, &registry()).map_err(|diagnostics| diagnostics.to_string())
    };
    let scenario = check(&[]).expect("a generator");
    let message = check(&["workload.count=3", "workload.time_scale=2"]).expect_err("no trace");
    assert!(message.contains("workload.count: is a replay option of traces"), "{message}");
    assert!(message.contains("workload.time_scale") && message.contains("2 problems"));
    assert!(check(&["workload.time_scale=1"]).is_ok(), "defaults may be spelt out");
    assert!(resolve(&scenario, &registry()).contains("time_scale"), "as resolved scenarios do");
}

#[test]
fn a_plain_number_is_a_constant_distribution() {
    let resolved = |interarrival: &str| {
        let text = format!(
            "workload.generator = {{ kind = \"uniform\", requests = 9, \
             interarrival_ms = {interarrival} }}\n[component.a]\nkind = \"toy\"\nsize = \"1MB\"\n",
        );
        let source = SourceText { name: "toy.toml".into(), text };
        let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
        let scenario = Scenario::check(input, &registry());
        scenario.map(|scenario| resolve(&scenario, &registry())).map_err(|why| why.to_string())
    };
    let long = resolved("{ kind = \"constant\", value = 0.5 }").expect("a table");
    assert_eq!(resolved("0.5").expect("a number"), long);
    assert!(resolved("\"0.5\"").is_err() && resolved("true").is_err());
}

#[test]
fn a_warm_up_is_said_once() {
    let text = "[component.a]\nkind = \"toy\"\nsize = \"1MiB\"";
    let sets = ["run.warmup_requests=10", "run.warmup_time=1s"];
    let message = check(text, &sets).expect_err("which of the two?");
    assert!(message.contains("not both"), "{message}");
    assert!(sets.iter().all(|set| check(text, &[set]).is_ok()));
    assert!(check(&format!("run = 3\n{text}"), &[]).is_err());
}

#[test]
fn numbers_out_of_range_are_reported_in_few_digits() {
    let text =
        |share: &str| format!("[component.a]\nkind = \"toy\"\nsize = \"1MiB\"\nshare = {share}");
    refused(&text("1e300"), &["1e300 is out of range; allowed is 0 to 1"]);
    refused(&text("-0.25"), &["-0.25 is out of range"]);
}

#[test]
fn an_option_for_a_component_that_is_not_there_names_those_that_are() {
    let text = "[component.abc]\nkind = \"toy\"\nsize = \"1MiB\"";
    let refusal = |set: &str| check(text, &[set]).expect_err("there is no such component");
    assert!(
        refusal("component.abd.depth=1").contains("did you mean `abc`?"),
        "{}",
        refusal("component.abd.depth=1")
    );
    let message = refusal("component.zzz.depth=1");
    assert!(
        message.contains("has no such component") && message.contains("its components are: abc")
    );
    assert!(
        message.contains("--set component.zzz.depth") && !message.contains("`kind`"),
        "{message}"
    );
    // A new part by options alone is possible, and must then be used.
    let message =
        check(text, &["component.b.kind=toy", "component.b.size=1MiB"]).expect_err("unused");
    assert!(message.contains("several components have no parent"), "{message}");
    let sets = ["component.b.kind=toy", "component.b.size=1MiB", "component.abc.below=[\"b\"]"];
    assert_eq!(check(text, &sets).expect("a system of two").components.len(), 2);
}

#[test]
fn a_child_with_a_faulty_preset_is_not_reported_as_missing() {
    let text = "[component.a]\nkind = \"toy\"\nsize = \"1MiB\"\nbelow = [\"b\"]\n\
                [component.b]\npreset = \"no-such-preset\"\n";
    let message = check(text, &[]).expect_err("must be refused");
    assert!(message.contains("component.b.preset"), "{message}");
    assert!(!message.contains("no component called"), "{message}");
}

#[test]
fn systems_of_absurd_size_are_refused() {
    use std::fmt::Write;
    let mut wide = "[component.top]\nkind = \"toy\"\nsize = \"1MiB\"\nbelow = [".to_owned();
    (0..10_000).for_each(|at| write!(wide, "\"p{at}\", ").expect("a string"));
    wide += "]\n";
    let (mut deep, mut components) = (String::new(), String::new());
    for at in 0..10_000 {
        let part = format!("[component.p{at}]\nkind = \"toy\"\nsize = \"1MiB\"\n");
        components += &part;
        if at < 300 {
            writeln!(deep, "{part}below = [\"p{}\"]", at + 1).expect("a string");
        }
    }
    refused(&(wide + &components), &["has 10001 components; a scenario has at most 10000"]);
    deep += "[component.p300]\nkind = \"toy\"\nsize = \"1MiB\"";
    refused(&deep, &["component.p0", "components are nested more than 200 deep"]);
}

#[test]
fn a_component_has_one_parent_and_every_component_is_used() {
    let part = |name: &str, rest: &str| {
        format!("[component.{name}]\nkind=\"toy\"\nsize=\"1MiB\"\n{rest}\n")
    };
    refused(&(part("a", "") + &part("b", "")), &["several components have no parent", "system"]);
    refused(&part("a", "below = [\"a\"]"), &["cycle"]);
    refused(
        &part("a", "below = [\"c\"]"),
        &["component.a.below: there is no component called `c`", ":5:9"],
    );
    let twice =
        part("a", "below = [\"c\", \"b\"]") + &part("b", "below = [\"c\"]") + &part("c", "");
    refused(&twice, &["already used"]);
    refused(&(part("a", "below = [\"c\", \"c\"]") + &part("c", "")), &["already used"]);
    let unused = format!("system = \"a\"\n{}{}", part("a", ""), part("b", ""));
    refused(&unused, &["component.b", "not used"]);
}

#[test]
fn syntax_errors_and_missing_tables_are_located() {
    refused("[component.a\nkind = 3", &["toy.toml:2"]);
    refused("", &["no component to simulate"]);
    refused("[component.a]\nsize = \"1B\"", &["needs a `kind` or a `preset`"]);
    refused("[component.a]\nkind = \"toi\"", &["did you mean `toy`?"]);
    refused("[component.a]\npreset = \"nowhere\"", &["no preset `nowhere`"]);
    refused(
        "colour = 1\n[component.a]\nkind = \"toy\"\nsize = \"1MiB\"",
        &["colour", "unknown key"],
    );
}

#[test]
fn set_options_win_and_errors_name_them() {
    let text = "[component.a]\nkind = \"toy\"\nsize = \"1MiB\"";
    let scenario = check(text, &["component.a.size=2MiB", "component.a.depth=4"]).expect("valid");
    assert_eq!(field::<u64>(&scenario.components[0].settings, "size"), 2 << 20);
    assert_eq!(field::<u64>(&scenario.components[0].settings, "depth"), 4);
    let message = check(text, &["component.a.depth=0"]).expect_err("out of range");
    assert!(message.contains("--set component.a.depth"), "{message}");
    assert!(check(text, &["nonsense"]).is_err());
}

#[test]
fn the_resolved_scenario_reads_back_the_same() {
    let text = "title = \"Toy\"\n[component.a]\nkind = \"toy\"\nsize = \"1MiB\"\nbelow = [\"b\"]\n\
                curve = [[1, \"1.5ms\"], [7, \"2ms\"]]\n[component.b]\nkind = \"toy\"\n\
                size = \"3kB\"\nshare=0.5";
    let first = check(text, &[]).expect("valid");
    let resolved = resolve(&first, &registry());
    let input = Input {
        source: SourceText { name: "resolved.toml".into(), text: resolved.clone() },
        base: PathBuf::new(),
        sets: Vec::new(),
        trace: None,
    };
    let second = Scenario::check(input, &registry()).expect("resolved scenarios are valid");
    assert_eq!(resolve(&second, &registry()), resolved);
    assert_eq!(second.components[1].settings, first.components[1].settings);
}

#[test]
fn problems_of_a_builder_point_at_the_component() {
    let scenario =
        check("[component.a]\nkind = \"toy\"\nsize = \"1kB\"", &[]).expect("each value is fine");
    let Err(diagnostics) = build::system(&scenario, &registry()) else { panic!("must fail") };
    let message = diagnostics.to_string();
    assert!(message.contains("component.a.size") && message.contains("toy.toml:2"), "{message}");
}

#[test]
fn children_are_built_first_and_named_by_path() {
    let text = "[component.a]\nkind = \"toy\"\nsize = \"512B\"\nbelow = [\"b\"]\n\
                [component.b]\nkind = \"toy\"\nsize = \"1024B\"";
    let scenario = check(text, &[]).expect("valid");
    let node = build::system(&scenario, &registry()).unwrap_or_else(|d| panic!("{d}"));
    assert_eq!((node.path.as_str(), node.component.capacity()), ("a", 3));
    assert_eq!(node.children[0].path, "a/b");
}

#[test]
fn parameters_of_an_entry_can_be_set_without_repeating_its_kind() {
    const SSD: &str = "[component.a]\nkind = \"ssd\"\nchannels = 2\ndies_per_channel = 1\n\
                       planes_per_die = 1\nblocks_per_plane = 16\npages_per_block = 8\n\
                       read_time = \"25us\"\nprogram_time = \"200us\"\nerase_time = \"1.5ms\"\n";
    let gc = |text: &str, sets: &[&str]| {
        let scenario = check(text, sets).expect("valid");
        let ftl: EntryChoice = field(&scenario.components[0].settings, "ftl");
        (ftl.name, ftl.settings.value("gc").map(Value::word))
    };
    let page = ("page".to_owned(), Some("fifo".to_owned()));
    // Over the default, over a bare name, over a table, and after another option.
    assert_eq!(gc(SSD, &["component.a.ftl.gc=fifo"]), page);
    assert_eq!(gc(&format!("{SSD}ftl = \"page\""), &["component.a.ftl.gc=fifo"]), page);
    let table = format!("{SSD}ftl = {{ kind = \"page\", gc = \"greedy\" }}");
    assert_eq!(gc(&table, &["component.a.ftl.gc=fifo"]), page);
    assert_eq!(gc(SSD, &["component.a.ftl=page", "component.a.ftl.gc=fifo"]), page);
    assert_eq!(gc(SSD, &["component.a.ftl.gc=fifo", "component.a.ftl=page"]), page);
    let elsewhere = check(SSD, &["component.a.gc=fifo"]).expect_err("a key of the component");
    assert!(elsewhere.contains("ftl = { kind = \"page\", gc = ... }"), "{elsewhere}");
    // Another kind takes nothing over.
    assert_eq!(gc(&table, &["component.a.ftl=block"]), ("block".to_owned(), None));
    let problem =
        check(SSD, &["component.a.ftl=block", "component.a.ftl.gc=fifo"]).expect_err("no gc");
    assert!(problem.contains("unknown key"), "{problem}");
}

#[test]
fn a_member_with_a_count_stands_for_its_copies() {
    let toy = |name: &str, keys: &str| {
        format!("[component.{name}]\nkind = \"toy\"\nsize = \"512B\"\n{keys}\n")
    };
    let resolved = |text: &str, sets: &[&str]| {
        check(text, sets).map(|scenario| resolve(&scenario, &registry()))
    };
    // A member with children, one of which has copies itself.
    let short = toy("top", "below = [\"x\", \"m\"]")
        + &toy("x", "")
        + &toy("m", "below = [\"n\"]\ncount = 2")
        + &toy("n", "depth = 3\ncount = 2");
    let long = toy("top", "below = [\"x\", \"m0\", \"m1\"]")
        + &toy("x", "")
        + &toy("m0", "below = [\"n00\", \"n01\"]")
        + &toy("m1", "below = [\"n10\", \"n11\"]")
        + &["n00", "n01", "n10", "n11"].map(|name| toy(name, "depth = 3")).concat();
    let (short, long) = (short.as_str(), long.as_str());
    assert_eq!(resolved(short, &[]), resolved(long, &[]));
    let more = resolved(short, &["component.m.count=3"]).expect("valid");
    assert!(more.contains("m2") && more.contains("n21"), "{more}");
    let member = |keys: &str| toy("top", "below = [\"m\"]") + &toy("m", keys);
    refused(&member("count = 0"), &["component.m.count", "from 1 to"]);
    refused(&member("count = \"many\""), &["component.m.count", "number of copies"]);
    refused(&member("count = 10_000"), &["component.m.count", "at most"]);
    refused(&toy("only", "count = 2"), &["component.only.count", "members"]);
    refused(&(member("count = 2") + &toy("m1", "")), &["called `m1`"]);
}
