//! Small machines in full, hostile files, and implausible files.

use hybridsim_import::{
    FileSource, ImportError, Imported, Override, Request, TABLES, Trace, disksim,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// FileSource in memory.
#[derive(Default)]
struct Memory(BTreeMap<String, String>);

impl FileSource for Memory {
    fn read(&mut self, name: &str, _from: &str) -> Result<(String, String), String> {
        match self.0.get(name) {
            Some(text) => Ok((name.to_owned(), text.clone())),
            None => Err(format!("there is no file {name}")),
        }
    }
}

fn import_with(text: &str, change: impl FnOnce(&mut Request)) -> Result<Imported, ImportError> {
    let mut files = Memory::default();
    files.0.insert("main.parv".into(), text.into());
    files.0.insert("loop".into(), "source loop".into());
    files.0.insert("twice".into(), "source twice\nsource twice".into());
    files.0.insert("bus.spec".into(), BUS.into());
    let mut request = Request { file: "main.parv".into(), ..Request::default() };
    change(&mut request);
    disksim(&request, &mut files)
}

fn import(text: &str) -> Result<Imported, ImportError> {
    import_with(text, |_| {})
}

const BUS: &str = "disksim_bus BUS { type = 1, Arbitration type = 1, Arbitration time = 0.0,
  Read block transfer time = 0.05, Write block transfer time = 0.05, Print stats = 1 }";

const QUEUE: &str = "disksim_ioqueue { Scheduling policy = 3, Cylinder mapping strategy = 1,
  Write initiation delay = 0.5, Read initiation delay = 0.0 }";

/// Two simple disks behind a driver, striped.
fn machine() -> String {
    format!(
        "disksim_global Global {{ Init Seed = 42, Stat definition file = statdefs }}
source bus.spec # comment
disksim_iodriver DRIVER {{ type = 1, Scheduler = {QUEUE}, Use queueing in subsystem = 1 }}
disksim_ctlr CTLR {{ type = 1, Scale for delays = 0.0, Bulk sector transfer time = 0.0 }}
disksim_simpledisk SD {{ Block count = 1000, Access time = 9.5, Command overhead = 0.5,
  Bulk sector transfer time = 0.0, Max queue length = 1, Scheduler = {QUEUE} }}
SD SLOW {{ Access time = 20.0 }}
instantiate [ driver0 ] as DRIVER
instantiate [ bus0 .. bus2 ] as BUS
instantiate [ ctlr0, ctlr1 ] as CTLR
instantiate [ d0 ] as SD
instantiate [ d1 ] as SLOW
topology disksim_iodriver driver0 [ disksim_bus bus0 [
  disksim_ctlr ctlr0 [ disksim_bus bus1 [ disksim_simpledisk d0 [] ] ],
  disksim_ctlr ctlr1 [ disksim_bus bus2 [ disksim_simpledisk d1 [] ] ] ] ]
disksim_logorg org0 {{ Addressing mode = Array, Distribution scheme = Striped,
  Redundancy scheme = Noredun, devices = [ d0 .. d1 ], Stripe unit = 8 }}
disksim_pf Proc {{ Number of processors = 2, Process-Flow Time Scale = 1.0 }}
disksim_synthio Synthio {{ Number of I/O requests to generate = 100,
  Maximum time of trace generated = 1000.0,
  Generators = [ disksim_synthgen {{ Storage capacity per device = 2000, devices = [ org0 ],
    Blocking factor = 8, Probability of sequential access = 0.2,
    Probability of local access = 0.3, Probability of read access = 0.66,
    Probability of time-critical request = 0.1, Probability of time-limited request = 0.3,
    Time-limited think times = [ normal, 30.0, 100.0 ],
    General inter-arrival times = [ exponential, 0.0, 25.0 ],
    Sequential inter-arrival times = [ uniform, 0.0, 25.0 ],
    Local inter-arrival times = [ twovalue, 1.0, 2.0, 0.5 ],
    Local distances = [ normal, 0.0, 400.0 ], Sizes = [ poisson, 1.0, 8.0 ] }} ] }}
"
    )
}

#[test]
fn a_machine_becomes_a_scenario() {
    let imported = import(&machine()).unwrap();
    let text = &imported.text;
    for line in [
        "seed = 42",
        "kind = \"constant-device\"",
        "latency = \"10ms\"",
        "latency = \"20.5ms\"",
        "rate = \"10240000B/s\"",
        "scheduler = \"c-look\"",
        "critical = 0.1, limited = 0.3",
        "kind = \"stripe\"",
        "members = [\"d0-queue\", \"d1-queue\"]",
        "chunk = \"4096B\"",
        "kind = \"processes\"",
        "{ kind = \"two-valued\", default = 1, second = 2, probability = 0.5 }",
        "system = \"org0\"",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert_eq!(
        imported.warnings,
        ["bus.spec:1:1: devices on this bus are simulated without contention"]
    );
    assert!(!imported.is_preset);
}

#[test]
fn devices_whose_names_are_alike_keep_tables_of_their_own() {
    // As names of components, both are cut.
    let [one, other] = ["a", "b"].map(|end| "d".repeat(110) + end);
    let text = machine()
        .replace("d0 .. d1", &format!("{one}, {other}"))
        .replace("[ d0 ]", &format!("[ {one} ]"))
        .replace("[ d1 ]", &format!("[ {other} ]"))
        .replace("simpledisk d0", &format!("simpledisk {one}"))
        .replace("simpledisk d1", &format!("simpledisk {other}"));
    let imported = import(&text).unwrap_or_else(|error| panic!("{error}"));
    let name = "d".repeat(100);
    for table in [format!("[component.{name}]"), format!("[component.{name}_]")] {
        let count = imported.text.lines().filter(|line| *line == table).count();
        assert_eq!(count, 1, "{table} in\n{}", imported.text);
    }
}

#[test]
fn overrides_reach_components_and_inner_blocks() {
    let over = |component: &str, parameter: &str, value: &str| Override {
        component: component.into(),
        parameter: parameter.into(),
        value: value.into(),
    };
    let check = |change: Override, expect: Result<&str, &str>| {
        let got = import_with(&machine(), |request| request.overrides.push(change.clone()));
        match (got, expect) {
            (Ok(imported), Ok(line)) => assert!(imported.text.contains(line), "{change:?}"),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (got, _) => panic!("{change:?}: {got:?}"),
        }
    };
    check(over("d0", "Access time", "3"), Ok("latency = \"3.5ms\""));
    check(over("d*", "Access time", "4.0"), Ok("latency = \"4.5ms\""));
    check(over("d0 .. d1", "Access time", "5"), Ok("latency = \"5.5ms\""));
    check(over("driver0", "Scheduler:Scheduling policy", "8"), Ok("scheduler = \"sptf\""));
    check(over("d7", "Access time", "3"), Err("there is no component `d7`"));
    check(over("x*", "Access time", "3"), Err("no component has such a name"));
    check(over("d0", "Nothing:Access time", "3"), Err("there is no inner block `Nothing`"));
    check(over("d0", "Access time", "["), Err("expected `]`"));
    check(over("d0", "Access time", "fast"), Err("expected a number, found `fast`"));
}

#[test]
fn a_trace_takes_the_place_of_the_generator() {
    let trace = Trace { path: "a \"b\".trace".into(), format: Some("disksim".into()) };
    let imported = import_with(&machine(), |request| request.trace = Some(trace)).unwrap();
    assert!(imported.text.contains("trace = \"a \\\"b\\\".trace\""), "{}", imported.text);
    assert!(!imported.text.contains("generator"));
}

/// Every file has one error at a known place.
#[test]
fn hostile_files_get_one_located_answer() {
    let check = |text: &str, at: &str, expect: &str| {
        let error = import(text).expect_err(expect).to_string();
        assert!(error.starts_with(at), "{error} does not begin with {at}");
        assert!(error.contains(expect), "{error} does not say {expect}");
        assert!(error.len() < 600, "{error}");
    };
    check("", "main.parv:1:1", "no topology and 0 devices");
    check("source loop", "loop:1:1", "nested more than");
    check("source twice", "twice:", "nested more than");
    check("source missing", "main.parv:1:1", "there is no file missing");
    check("disksim_bus", "main.parv:1:12", "expected `{`");
    check("disksim_bus B {", "main.parv:1:16", "expected `name = value` or `}`");
    check("disksim_bus B {\n type 1 }", "main.parv:2:9", "expected `=` after `type 1`");
    check("disksim_bus B { type = }", "main.parv:1:24", "expected a value");
    check("disksim_bus B { type = [ 1, 2 }", "main.parv:1:31", "expected `,` or `]`");
    check("disksim_bus B { type = 1 ]", "main.parv:1:26", "expected `,` or `}`");
    check("= 3", "main.parv:1:1", "expected a block");
    check("instantiate [ a ] as", "main.parv:1:19", "expected `as NAME`");
    check("instantiate [ a ] as B", "main.parv:1:1", "there is no block `B`");
    check("instantiate a as B", "main.parv:1:19", "expected `[`");
    check("instantiate [ a0 .. a99999999 ] as B", "main.parv:1:15", "range of more than");
    check("instantiate [ a5 .. a2 ] as B", "main.parv:1:15", "a range needs one name");
    check("instantiate [ a .. 99999999999999999999 ] as B", "main.parv:1:15", "a range needs");
    check("topology x [ ]", "main.parv:1:1", "expected a kind and a name");
    check("topology disksim_bus b [ ]", "main.parv:1:1", "`b` is not instantiated");
    check("topology a b [ ,", "main.parv:1:16", "expected a kind and a name");
    check("a B : C { }", "main.parv:1:1", "there is no block `C`");
    check(&format!("a b {{ c = {} }}", "[".repeat(5_000)), "main.parv:1:", "nested more than");
    check(&format!("a b {{ {} }}", "c = d { ".repeat(5_000)), "main.parv:1:", "nested more than");
    check(&format!("topology {}", "a b [ ".repeat(5_000)), "main.parv:1:", "nested more than");
    let long = "x".repeat(100_000);
    check(&format!("{long} {{ y }}"), "main.parv:1:", "expected `=`");
}

/// One value of the machine changed at a time.
#[test]
fn implausible_values_are_rejected_with_their_location() {
    let check = |from: &str, to: &str, expect: &str| {
        let text = machine();
        assert!(text.contains(from), "{from}");
        let error = import(&text.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.starts_with("main.parv:"), "{error}");
        assert!(error.contains(expect), "{error} does not say {expect}");
    };
    check("Block count = 1000", "Block count = -3", "a whole number from 1");
    check("Block count = 1000", "Block count = 1e300", "a whole number from 1");
    check("Access time = 9.5", "Access time = inf", "expected a number, found `inf`");
    check("Access time = 9.5", "Access time = [ 1 ]", "expected a number, found a list");
    check("Stripe unit = 8", "Stripe unit = -1", "a whole number from 0");
    check("Striped,\n  Redundancy scheme = Noredun", "Striped, Redundancy scheme = X", "Noredun");
    check("devices = [ d0 .. d1 ]", "devices = [ d0, d0 ]", "belongs to two");
    check("devices = [ d0 .. d1 ]", "devices = [ ]", "has no devices");
    check("devices = [ d0 .. d1 ]", "devices = [ d0, d9 ]", "`d9` is not in the topology");
    check("devices = [ org0 ]", "devices = [ nothing ]", "not a device of the system");
    check("Scheduling policy = 3", "Scheduling policy = 29", "a whole number from 1 to 28");
    check("[ exponential, 0.0, 25.0 ]", "[ exponential, 0.0 ]", "expected [ uniform");
    check("[ exponential, 0.0, 25.0 ]", "[ cauchy, 0.0, 1.0 ]", "expected [ uniform");
    check("disksim_bus bus1 [ ", "disksim_bus ctlr0 [ ", "not a `disksim_bus`");
    check("[ ctlr0, ctlr1 ]", "[ ctlr0, ctlr0 ]", "instantiated twice");
    check("read access = 0.66", "read access = 66", "a number from 0 to 1");
    check("requests to generate = 100", "requests to generate = 0", "a whole number from 1");
}

/// A drive of one zone; `zone` and `mechanics` are its further parameters.
fn drive(count: u32, scheme: u32, zone: &str, settle: f64) -> String {
    format!(
        "disksim_disk DRIVE {{ Model = dm_disk D {{ Number of data surfaces = 2,
  Number of cylinders = 10, Block count = {count}, Layout Model = dm_layout_g1 {{
  LBN-to-PBN mapping scheme = 0, Sparing scheme used = {scheme}, Zones = [ dm_layout_g1_zone {{
  First cylinder number = 0, Last cylinder number = 9, Blocks per track = 20, {zone} }} ] }},
  Mechanical Model = dm_mech_g1 {{ Seek type = constant, Constant seek time = 5.0,
  Add. write settling delay = {settle}, Head switch time = 1.0,
  Rotation speed (in rpms) = 5400 }} }},
  Enable caching in buffer = 0, Max queue length = 1 }}"
    )
}

/// The block count is compared with the layout whether it is more or less, and a layout with empty
/// space in front of its spares holds what DiskSim says.
#[test]
fn the_block_count_is_compared_with_the_layout() {
    let check = |scheme: u32, zone: &str, holds: u32| {
        let warnings = |count| import(&drive(count, scheme, zone, 0.0)).unwrap().warnings;
        assert_eq!(warnings(holds), Vec::<String>::new(), "{scheme} {zone}");
        for count in [holds - 1, holds + 1] {
            let warnings = warnings(count);
            let part = format!("`Block count` is {count}, but the layout has ");
            let says = |text: &str| text.contains(&part) && text.contains(&holds.to_string());
            assert!(warnings.iter().any(|text| says(text)), "{scheme} {zone}: {warnings:?}");
        }
    };
    let zone = |empty: u32, spares: u32, slips: &str| {
        format!(
            "Empty space at zone front = {empty}, Number of spares = {spares}, slips = [ {slips} ]"
        )
    };
    check(0, &zone(0, 0, ""), 400);
    check(3, &zone(0, 2, ""), 360);
    // All data sectors of the first track and two of the second.
    check(3, &zone(20, 2, ""), 340);
    check(2, &zone(20, 2, ""), 360);
    check(5, &zone(50, 2, ""), 330);
    check(9, &zone(20, 2, ""), 378);
    // A slip uses a spare; a third one on a track has none.
    check(3, &zone(0, 2, "3, 4, 25"), 360);
    check(3, &zone(0, 2, "3, 4, 5, 25"), 359);
    check(7, &zone(0, 2, "3, 4"), 396);
    check(1, &zone(0, 2, "3"), 360);
    check(8, &zone(0, 2, ""), 380);
}

#[test]
fn a_negative_settling_time_shortens_movements() {
    let text = |settle| import(&drive(400, 0, "Number of spares = 0", settle)).unwrap().text;
    assert!(text(0.5).contains("write_settle = \"0.5ms\""), "{}", text(0.5));
    let negative = text(-0.642);
    assert!(negative.contains("write_seek_reduction = \"0.642ms\""), "{negative}");
    assert!(!negative.contains("write_settle"), "{negative}");
}

/// The drive of a file without instances is meant by the names its `.parv` file gives it.
#[test]
fn a_drive_alone_takes_the_overrides_of_its_system() {
    let with = |component: &str| {
        let text = drive(400, 0, "Number of spares = 0", 0.0);
        import_with(&text, |request| {
            let change = |parameter: &str, value: &str| Override {
                component: component.to_owned(),
                parameter: parameter.to_owned(),
                value: value.to_owned(),
            };
            request.overrides = vec![
                change("Model:Mechanical Model:Head switch time", "0.75"),
                change("Max queue length", "4"),
            ];
        })
    };
    for component in ["DRIVE", "disk0", "disk*", "disk0 .. disk5"] {
        let text = with(component).unwrap_or_else(|error| panic!("{component}: {error}")).text;
        assert!(text.contains("head_switch = \"0.75ms\""), "{component}: {text}");
        assert!(text.contains("queue_depth = 4"), "{component}: {text}");
    }
    for component in ["bus0", "DRIVES", "driver*"] {
        assert!(with(component).is_err(), "{component}");
    }
}

#[test]
fn a_log_with_pauses_is_replayed_after_completions() {
    let with = |format: Option<&str>| {
        let trace = Trace { path: "t".into(), format: format.map(str::to_owned) };
        import_with(&machine(), |request| request.trace = Some(trace)).unwrap().text
    };
    let line = "times = \"after-completions\"";
    assert!(with(Some("disksim-validate")).contains(line));
    assert!(!with(Some("disksim")).contains(line) && !with(None).contains(line));
}

/// Unsupported parameters cause warnings with their location.
#[test]
fn unsupported_parameters_are_reported() {
    let check = |from: &str, to: &str, expect: &str| {
        let imported = import(&machine().replacen(from, to, 1)).unwrap();
        let reported = imported.warnings.iter().any(|warning| warning.contains(expect));
        assert!(reported, "{:?} do not say {expect}", imported.warnings);
        assert!(imported.text.contains("# Not supported, or only approximately:"));
    };
    check("Scale for delays = 0.0", "Scale for delays = 1.0", "Scale for delays = 1");
    check(
        "Max queue length = 1",
        "Max queue size = 1",
        "`Max queue size` is not a known parameter",
    );
    check("Block count = 1000", "Block count = 1000, Block count = 900", "is given again");
    check("disksim_pf Proc", "disksim_new X { a = 1 } disksim_pf Proc", "a block of kind");
}

#[test]
fn every_key_stands_once_in_its_table() {
    for table in TABLES {
        for (at, row) in table.rows.iter().enumerate() {
            let again = table.rows[at + 1..].iter().any(|other| other.key == row.key);
            assert!(!again, "{}: {}", table.kind, row.key);
        }
    }
}

proptest! {
    /// Whatever the bytes, an answer comes.
    #[test]
    fn nothing_panics(text in "[ -~\\n]{0,200}") {
        drop(import(&text));
    }

    /// Nor when a good file is cut, or a piece of it is put elsewhere.
    #[test]
    fn damaged_files_do_not_panic(cut in 0usize..3000, from in 0usize..3000, len in 0usize..60) {
        let text = machine();
        let cut = cut.min(text.len());
        drop(import(&text[..cut]));
        let from = from.min(text.len());
        let piece = &text[from..(from + len).min(text.len())];
        drop(import(&format!("{}{piece}{}", &text[..cut], &text[cut..])));
    }

    /// Numbers of any size where numbers are expected.
    #[test]
    fn any_number_is_answered(number in prop::num::f64::ANY, which in 0usize..40) {
        let text = machine();
        let mut seen = 0;
        let changed: Vec<String> = text.split(' ').map(|word| {
            let is_number = word.trim_end_matches(',').parse::<f64>().is_ok();
            seen += usize::from(is_number);
            if is_number && seen == which + 1 { format!("{number:e},") } else { word.to_owned() }
        }).collect();
        drop(import(&changed.join(" ")));
    }
}

/// A controller with a memory cache defers writes, and has an eviction order.
#[test]
fn a_controller_with_a_memory_cache_becomes_a_part() {
    let check = |limit: u32, allocation: u32, scheme: u32, prefetch: u32, expect: [&str; 4]| {
        let simple = "disksim_ctlr CTLR { type = 1, ";
        let cached = format!(
            "disksim_ctlr CTLR {{ type = 3, Maximum queue length = {limit}, Scheduler = {QUEUE},
  Max per-disk pending count = 1, Cache = disksim_cachemem {{ Cache size = 8192,
  SLRU segments = [ 1.0 ], Line size = 64, Bit granularity = 1, Lock granularity = 64,
  Shared read locks = 1, Max request size = 512, Replacement policy = 2,
  Allocation policy = {allocation}, Write scheme = {scheme}, Flush policy = 0,
  Flush period = 0.0, Flush idle delay = -1.0, Flush max line cluster = 8,
  Read prefetch type = {prefetch}, Write prefetch type = 0, Line-by-line fetches = 0,
  Max gather = 7 }}, "
        );
        let machine = machine();
        assert!(machine.contains(simple), "{machine}");
        let text = import(&machine.replace(simple, &cached)).unwrap().text;
        for line in expect {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    };
    check(
        0,
        0,
        3,
        0,
        [
            "device_queue_depth = 1\n",
            "allocation = \"strict\"",
            "write_scheme = \"back\"",
            "read_prefetch = \"none\"",
        ],
    );
    check(
        3,
        1,
        2,
        1,
        [
            "device_queue_depth = 4\n",
            "allocation = \"clean\"",
            "write_scheme = \"early\"",
            "read_prefetch = \"front-of-line\"",
        ],
    );
}

#[test]
fn mappings_of_a_trace_are_carried_over_where_they_agree() {
    let machine = |maps: &str| {
        let sim =
            format!("disksim_iosim IS {{ I/O Trace Time Scale = 2.0, I/O Mappings = [{maps}] }}\n");
        import_with(&(sim + &machine()), |request| {
            request.trace = Some(Trace { path: "t".into(), format: None });
        })
    };
    let map = |dev: u32, loc: u32, size: u32, offset: u32| {
        format!(
            "disksim_iomap {{ tracedev = {dev}, simdev = org0, locScale = {loc}, \
             sizeScale = {size}, offset = {offset} }}"
        )
    };
    let same = machine(&format!("{}, {}", map(0, 1024, 2, 100), map(1, 1024, 2, 100))).unwrap();
    for line in ["address_unit = \"1024B\"", "size_scale = 2", "address_offset = \"51200B\""] {
        assert!(same.text.contains(line), "{line}: {}", same.text);
    }
    let plain = machine(&map(0, 512, 1, 0)).unwrap();
    assert!(!plain.text.contains("address_unit"), "{}", plain.text);
    let mixed = machine(&format!("{}, {}", map(0, 512, 1, 0), map(1, 512, 3, 0))).unwrap();
    let reported = |part: &str| mixed.warnings.iter().any(|warning| warning.contains(part));
    assert!(reported("`sizeScale = 3` is not supported"), "{mixed:?}");
    let odd = machine(&map(0, 300, 1, 0)).unwrap_err();
    assert!(odd.message.contains("a multiple or a divisor of 512"), "{odd}");
}

#[test]
fn what_has_no_effect_is_not_named() {
    let warnings = |text: &str| import(text).unwrap().warnings;
    // Gaps in streams matter only to streams that are scheduled.
    let gap = machine().replace(
        "Read initiation delay = 0.0 }",
        "Read initiation delay = 0.0, Sequential stream scheme = 1, Maximum concat size = 64,
         Sequential stream diff maximum = 2 }",
    );
    assert!(!warnings(&gap).iter().any(|warning| warning.contains("diff maximum")));
    let streams = gap.replace("Sequential stream scheme = 1", "Sequential stream scheme = 5");
    assert!(warnings(&streams).iter().any(|it| it.contains("diff maximum = 2` is not supported")));
}
