//! Zone commands: below components that forward them, across saved states, and refused by devices
//! without zones.

mod common;

use common::{DISK, ZNS, component, system_around};
use hybridsim_config::build::ComponentEntry;
use hybridsim_config::diagnostic::SourceText;
use hybridsim_engine::{Flags, Lba, Op, Request, SimTime, ZoneAction};
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run::{self, Options, RunOutput};
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::session::{self, Answered, Session};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Sectors of a zone of [`ZNS`], and the zones of [`zoned`].
const ZONE: u64 = 2_048;
const ZONES: u64 = 8;

fn input(folder: &Path, text: &str) -> Input {
    let source = SourceText { name: "test".to_owned(), text: text.to_owned() };
    Input { source, base: folder.to_owned(), sets: Vec::new(), trace: None }
}

fn simulate(folder: &Path, text: &str) -> RunOutput {
    let registry = standard();
    let scenario =
        Scenario::check(input(folder, text), &registry).unwrap_or_else(|wrong| panic!("{wrong}"));
    let options = Options { save_state: !text.contains("power_cut"), ..Options::default() };
    let done = run::run(&scenario, &registry, options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(done.fault, None, "{text}");
    assert_eq!(done.results.violations, [""; 0], "{text}");
    done
}

/// A device of 8 zones.
fn zoned(name: &str) -> String {
    component(name, &format!("{ZNS}zones = {ZONES}\n"))
}

const BUS: &str = "kind = \"bus\"\nrate = \"400MB/s\"\ncommand_time = \"2us\"\n";

/// A controller of `kind` before a bus before the devices that `names` lists.
fn controller(name: &str, kind: &str, names: &str) -> String {
    let bus = format!("{name}-bus");
    let keys = format!("kind = \"{kind}\"\nbuses = [\"{bus}\"]\n");
    component(name, &keys) + &component(&bus, &format!("{BUS}devices = [{names}]\n"))
}

/// Systems that forward zone commands to one device.
fn above_one() -> Vec<String> {
    let ssd = zoned("a");
    let queue = "kind = \"io-queue\"\ndevice = \"a\"\nscheduler = \"look\"\n";
    let reads = format!("{queue}concatenate = \"reads\"\n");
    let mut all: Vec<String> = ["pass-through-controller", "queueing-controller"]
        .map(|kind| controller("it", kind, "\"a\"") + &ssd)
        .into();
    all.extend([queue, &reads].map(|keys| component("it", keys) + &ssd));
    all
}

/// Two devices one after the other, one of them behind a controller or both, with their paths.
fn concatenated() -> [(String, [&'static str; 2]); 2] {
    let devices = zoned("a") + &zoned("b");
    let concat =
        |members: &str| component("it", &format!("kind = \"concat\"\nmembers = [{members}]\n"));
    let way = |names: &str| controller("way", "pass-through-controller", names);
    let one = concat("\"way\", \"b\"") + &way("\"a\"") + &devices;
    let both = concat("\"way\"") + &way("\"a\", \"b\"") + &devices;
    let behind = ["it/way/way-bus/a", "it/way/way-bus/b"];
    [(one, [behind[0], "it/b"]), (both, behind)]
}

/// The load of `examples/zns.toml` and the catalogue, with a fixed number of requests.
fn generated(keys: &str, system: &str) -> RunOutput {
    let text = format!(
        "system = \"it\"\n[run]\nverify = true\n[host]\nmode = \"open\"\n[workload]\n\
         generator = {{ kind = \"zones\", requests = 3000, zone_size = \"1MiB\", \
         zone_capacity = \"1000KiB\", active = 3, block = \"16KiB\", fill = 0.7, finish = true, \
         readers = 2{keys} }}\n{system}"
    );
    simulate(Path::new(""), &text)
}

#[test]
fn generated_zones_are_written_finished_and_reset_below_other_components() {
    for system in above_one() {
        // A scheduler would reorder the appends to a zone, which `verify` refuses.
        let depth = if system.contains("io-queue") { 1 } else { 2 };
        let appended = &format!(", write = \"append\", depth = {depth}");
        for keys in ["", ", open = true", appended] {
            let done = generated(keys, &system);
            let latencies = &done.results.latency_ns;
            assert_eq!(latencies.all.count, 3_000, "{system}");
            assert!(done.results.components["host"].custom.is_empty(), "{system}");
            assert!(latencies.zone_reset.count > 5 && latencies.zone_finish.count > 15, "{system}");
            assert_eq!(latencies.zone_open.count > 15, keys.contains("open"), "{system}");
            assert_eq!((latencies.trim.count, latencies.flush.count), (0, 0), "{system}");
            // Of 250 pages at least 72 are padded, 18 on each die. Other requests make it longer.
            let finish = latencies.zone_finish.mean;
            assert!(finish > Some(18.0 * 200_000.0), "{finish:?} ns: {system}");
        }
    }
    for (system, paths) in concatenated() {
        let done = generated("", &system);
        assert!(done.results.components["host"].custom.is_empty(), "{system}");
        for path in paths {
            let flash = done.results.components[path].flash.as_ref().expect("it is flash");
            assert!(flash.erases > 0 && flash.programs_by_cause["padding"] > 0, "{path}");
        }
    }
}

#[test]
fn a_stripe_of_host_aware_disks_takes_writes_anywhere() {
    let disk = |name: &str| {
        let keys = format!(
            "kind = \"smr-disk\"\ndevice = \"{name}-disk\"\nmanagement = {{ \
             kind = \"host-aware\", zone_size = \"1MiB\", cache_size = \"4MiB\" }}\n"
        );
        component(name, &keys) + &component(&format!("{name}-disk"), DISK)
    };
    let done = simulate(
        Path::new(""),
        &format!(
            "system = \"it\"\n[run]\nverify = true\n[workload]\ngenerator = {{ \
             kind = \"fio\", requests = 300, rw = \"randrw\", bs = \"4KiB\", \
             span = \"8MiB\" }}\n[component.it]\nkind = \"stripe\"\n\
             members = [\"a\", \"b\"]\nchunk = \"64KiB\"\n{}{}",
            disk("a"),
            disk("b")
        ),
    );
    assert!(done.results.components["host"].custom.is_empty(), "none failed");
    assert!(done.results.components["it/a"].custom["cached_bytes"].count > 0);
    let keys = "kind = \"stripe\"\nmembers = [\"a\", \"b\"]\nchunk = \"64KiB\"\n";
    let done = generated("", &(component("it", keys) + &disk("a") + &disk("b")));
    let said = |text: &String| text.contains("zone commands fail where the system has no zones");
    assert!(done.results.warnings.iter().any(said), "{:?}", done.results.warnings);
}

/// A trace of one request every 60 ms.
fn csv(requests: &[Request]) -> String {
    let mut text = "time_ns,op,volume,lba,sectors,flags,response_ns\n".to_owned();
    for (number, Request { op, lba, sectors, flags, .. }) in requests.iter().enumerate() {
        let (at, op) = (number * 60_000_000, op.name());
        writeln!(text, "{at},{op},0,{lba},{sectors},{},", flags.0).expect("memory");
    }
    text
}

/// Zone `number` is managed, or 256 of its sectors are accessed from `from` on.
fn manage(action: ZoneAction, number: u64) -> Request {
    Request::new(Op::Zone(action), Lba(number * ZONE), ZONE as u32)
}

fn access(op: Op, number: u64, from: u64) -> Request {
    Request::new(op, Lba(number * ZONE + from), 256)
}

#[test]
fn write_pointers_of_all_devices_are_in_a_saved_state() {
    let of_both = |number: u64| [number, ZONES + number];
    let [mut before, mut after] = [Vec::new(), Vec::new()];
    for zone in [0, 1].into_iter().flat_map(of_both) {
        before.push(access(Op::Write, zone, 0));
        after.extend([access(Op::Write, zone, 256), access(Op::Read, zone, 0)]);
    }
    for zone in of_both(2) {
        before.extend([access(Op::Write, zone, 0), manage(ZoneAction::Finish, zone)]);
        after.extend([manage(ZoneAction::Reset, zone), access(Op::Write, zone, 0)]);
    }
    for zone in of_both(3) {
        before.extend([access(Op::Write, zone, 0), manage(ZoneAction::Reset, zone)]);
        let append = Request { flags: Flags::APPEND, ..access(Op::Write, zone, 0) };
        after.extend([manage(ZoneAction::Open, zone), append, manage(ZoneAction::Close, zone)]);
    }
    for (system, paths) in concatenated() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = |requests: &[Request], keys: &str| {
            fs::write(folder.path().join("t.csv"), csv(requests)).expect("one's own folder");
            let load = format!("system = \"it\"\n[run]\n{keys}\n[workload]\ntrace = \"t.csv\"\n");
            simulate(folder.path(), &format!("{load}{system}"))
        };
        let first = run(&before, "");
        fs::write(folder.path().join("s"), first.state.expect("it is saved")).expect("a file");
        let second = run(&after, "state = \"s\"");
        let whole = run(&[&before[..], &after].concat(), "verify = true");
        for (done, resets) in [(&second, 2), (&whole, 4)] {
            assert!(done.results.components["host"].custom.is_empty(), "no request fails");
            assert_eq!(done.results.latency_ns.zone_reset.count, resets);
        }
        for path in paths {
            let erases = |done: &RunOutput| {
                done.results.components[path].flash.as_ref().map_or(0, |flash| flash.erases)
            };
            assert!(erases(&second) > 0 && erases(&whole) > erases(&second), "{path}");
        }
    }
}

#[test]
fn a_random_write_area_is_in_a_saved_state() {
    let device = zoned("a") + "zrwa_size = \"256KiB\"\n";
    let open = Request { flags: Flags::RANDOM_WRITE_AREA, ..manage(ZoneAction::Open, 0) };
    let folder = tempfile::tempdir().expect("a folder");
    let run = |requests: &[Request], keys: &str| {
        fs::write(folder.path().join("t.csv"), csv(requests)).expect("one's own folder");
        let load = format!("system = \"a\"\n[run]\n{keys}\n[workload]\ntrace = \"t.csv\"\n");
        simulate(folder.path(), &format!("{load}{device}"))
    };
    let write = access(Op::Write, 0, 128);
    // A fault fills other zones: this one is written by its host.
    let fault = "[[run.faults]]\nat = \"70ms\"\ndo = \"fill\"\ncomponent = \"a\"\nfraction = 0.1\n";
    let first = run(&[open, write, write], &format!("verify = true\n{fault}"));
    assert_eq!(first.results.components["a"].custom["overwritten_pages"].last, 32);
    fs::write(folder.path().join("s"), first.state.expect("it is saved")).expect("a file");
    let commit = Request::new(Op::Zone(ZoneAction::Commit), Lba(0), 384);
    let after = [access(Op::Read, 0, 128), access(Op::Write, 0, 192), commit];
    let second =
        run(&[&after[..], &[access(Op::Read, 0, 128)]].concat(), "verify = true\nstate = \"s\"");
    assert!(second.results.components["host"].custom.is_empty(), "no request fails");
    let flash = second.results.components["a"].flash.as_ref().expect("it is flash");
    // Of the 48 pages before sector 384 the first 16 were not written.
    assert_eq!((flash.host_programs, flash.programs), (32, 48));
}

#[test]
fn generators_have_random_write_areas_of_the_device() {
    let check = |keys: &str, device: &str| {
        rejected(&format!(
            "system = \"a\"\n[host]\nmode = \"open\"\n[workload]\ngenerator = {{ \
             kind = \"zones\", requests = 100, zone_size = \"1MiB\", write = \"zrwa\", \
             zone_capacity = \"1000KiB\"{keys} }}\n{}{device}",
            zoned("a")
        ))
    };
    let says = |keys: &str, device: &str, said: &str| {
        let error = check(keys, device).unwrap_or_else(|| panic!("{keys} {device} passes"));
        assert!(error.contains(said), "{error}");
    };
    let device = "zrwa_size = \"64KiB\"\nzrwa_zones = 2\n";
    assert_eq!(check(", active = 2, depth = 3, block = \"20KiB\"", device), None);
    assert_eq!(check(", block = \"128KiB\"", device), None, "it moves the area by its size");
    says("", "", "no random write areas");
    says(", block = \"132KiB\"", device, "generator.depth");
    says(", depth = 4, block = \"20KiB\"", device, "generator.depth");
    says(", again = 0.5, block = \"24KiB\"", device, "generator.depth");
    says(", active = 3", device, "up to 3 zones are written in random write areas");
    let four = "zrwa_size = \"64KiB\"\n";
    says(", active = 4", four, "up to 4 zones are explicitly open");
}

#[test]
fn power_failures_keep_acknowledged_writes_in_zones_below_a_concatenation() {
    let concat = component("it", "kind = \"concat\"\nmembers = [\"a\", \"b\"]\n");
    let device =
        |name| component(name, &ZNS.replace("\"1000KiB\"\nzone_size = \"1MiB\"", "\"64KiB\""));
    let devices = device("a") + &device("b");
    let done = simulate(
        Path::new(""),
        &format!(
            "system = \"it\"\n[workload]\ngenerator = {{ kind = \"fio\", requests = 6000, \
             rw = \"randrw\", rwmixread = 40, percentage_random = \"100,0\", bs = \"4KiB\", \
             norandommap = true }}\n[host]\nmode = \"closed\"\nqueue_depth = 4\n\
             [run]\nverify = true\npower_cut_every = 200\n{concat}{devices}"
        ),
    );
    assert!(done.results.power_cuts > 20, "{}", done.results.power_cuts);
    for path in ["it/a", "it/b"] {
        let flash = done.results.components[path].flash.as_ref().expect("it is flash");
        assert!(flash.host_programs > 200, "{path}: {}", flash.host_programs);
    }
}

/// A device without zones refuses a zone command as an unknown opcode, at once and without effect,
/// whatever is above it.
#[test]
fn devices_without_zones_refuse_zone_commands() {
    let registry = standard();
    for entry in registry.iter::<ComponentEntry>() {
        let kind = entry.description.name;
        let text = format!("system = \"it\"\n{}", system_around(kind));
        let scenario = Scenario::check_system(input(Path::new(""), &text), &registry)
            .unwrap_or_else(|wrong| panic!("{wrong}"));
        let mut session = Session::open(&scenario, &registry, session::Options::default())
            .unwrap_or_else(|error| panic!("{error}"));
        use ZoneAction::{Close, Finish, Open, Reset};
        let mut requests: Vec<Request> =
            [Open, Close, Finish, Reset].map(|action| manage(action, 0)).into();
        requests.push(Request { flags: Flags::APPEND, ..access(Op::Write, 0, 0) });
        for request in requests {
            let at = SimTime::from_ns(session.now().as_ns() + 100_000_000);
            session.submit(request, at).expect("it fits");
            let answer = session.next_completion().expect("it runs").expect("it ends");
            let served = answer.outcome == Answered::Done;
            assert_eq!(served, kind == "zns-ssd", "{kind}: {request:?}");
        }
        session.submit(access(Op::Read, 0, 0), session.now()).expect("it fits");
        let read = session.next_completion().expect("it runs").expect("it ends");
        assert_eq!(read.outcome, Answered::Done, "{kind}");
    }
}

/// Why a scenario is rejected before the run; `None` where it is not.
fn rejected(text: &str) -> Option<String> {
    let registry = standard();
    let scenario = Scenario::check(input(Path::new(""), text), &registry)
        .unwrap_or_else(|wrong| panic!("{wrong}"));
    run::check(&scenario, &registry).err().map(|error| error.to_string())
}

#[test]
fn zones_below_what_does_not_forward_their_commands_are_rejected() {
    let load = "system = \"it\"\n[workload]\ngenerator = { kind = \"fio\", requests = 10 }\n";
    let rejects = |system: String, said: &str| {
        let second = if system.contains("\"b\"") { zoned("b") } else { String::new() };
        let text = format!("{load}{system}{}{second}", zoned("a"));
        let error = rejected(&text).unwrap_or_else(|| panic!("accepted: {system}"));
        assert!(error.contains(said) && error.contains("neither writes in order"), "{error}");
    };
    let queue = component("it", "kind = \"io-queue\"\ndevice = \"a\"\n");
    rejects(
        format!("{queue}concatenate = \"writes\"\n"),
        "`a` is a `zns-ssd`, whose zones a `io-queue`",
    );
    rejects(format!("{queue}overlap = \"completed\"\n"), "`a` is a `zns-ssd`");
    let mirror = component("it", "kind = \"raid1\"\nmembers = [\"way\", \"b\"]\n");
    let way = controller("way", "pass-through-controller", "\"a\"");
    let said = "`way` is a `pass-through-controller` above a `zns-ssd`, whose zones a `raid1`";
    rejects(mirror + &way, said);
}

#[test]
fn a_generator_has_the_zones_of_every_device_in_its_region() {
    let check = |keys: &str, b: &str| {
        let concat = component("it", "kind = \"concat\"\nmembers = [\"a\", \"b\"]\n");
        rejected(&format!(
            "system = \"it\"\n[host]\nmode = \"open\"\n[workload]\ngenerator = {{ \
             kind = \"zones\", requests = 100, zone_size = \"1MiB\", \
             zone_capacity = \"1000KiB\"{keys} }}\n{concat}{}{b}",
            zoned("a")
        ))
    };
    let (same, other) = (zoned("b"), zoned("b").replace("1000KiB", "900KiB"));
    assert_eq!(check(", active = 5", &same), None);
    assert_eq!(check(", span = \"8MiB\"", &other), None, "the second device is not used");
    let size = check("", &other).expect("zones of another capacity");
    assert!(size.contains("generator.zone_capacity") && size.contains("not the 900KiB"), "{size}");
    let limit = check(", fill = 0.5, start = \"2MiB\", span = \"9MiB\"", &same);
    let limit = limit.expect("6 zones of the first device stay active");
    assert!(limit.contains("up to 6 zones are active"), "{limit}");
    assert_eq!(check(", fill = 0.5, start = \"5MiB\", span = \"7MiB\"", &same), None);
}
