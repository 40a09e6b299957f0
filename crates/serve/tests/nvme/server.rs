//! A server under test, in a thread of its own.

use hybridsim_config::diagnostic::SourceText;
use hybridsim_engine::SECTOR_BYTES;
use hybridsim_serve::contents::{Contents, History, Store};
use hybridsim_serve::{
    Address, Clock, Drive, Exports, Limits, NQN, Options, Served, TraceFile, save, serve, unpack,
};
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::run;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::session::{self, Session};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// Options of a served system.
#[derive(Clone, Default)]
pub struct Setup {
    pub system: String,
    pub exports: Vec<String>,
    /// A folder for the control socket, with which the power may fail.
    pub control: Option<PathBuf>,
    pub record: Option<PathBuf>,
    pub state: Option<PathBuf>,
    /// Buffers of all connections, if not the usual.
    pub buffers: Option<usize>,
    pub is_paced: bool,
    /// The qualified name of the subsystem, if not the usual.
    pub nqn: Option<String>,
}

/// The end of serving.
pub struct End {
    pub served: Served,
    pub fingerprint: String,
    pub requests: u64,
    pub fault: Option<String>,
    pub violations: Vec<String>,
}

pub struct Server {
    pub address: SocketAddr,
    control: Option<PathBuf>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<End>,
}

pub fn scenario(text: &str) -> Scenario {
    let source = SourceText { name: "test".to_owned(), text: text.to_owned() };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    Scenario::check_system(input, &standard()).unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// The fingerprint of a run of `system` that replays `trace`.
pub fn replay(system: &str, trace: &Path) -> String {
    let source = SourceText { name: "test".to_owned(), text: system.to_owned() };
    let sets = vec!["host.mode=open".to_owned()];
    let input = Input { source, base: PathBuf::new(), sets, trace: Some(trace.to_owned()) };
    let scenario = Scenario::check(input, &standard()).unwrap_or_else(|wrong| panic!("{wrong}"));
    let run = run::run(&scenario, &standard(), run::Options::default()).expect("it runs");
    run.results.fingerprint
}

impl Server {
    pub fn start(system: &str) -> Self {
        Self::with(Setup { system: system.to_owned(), ..Setup::default() })
    }

    pub fn with(setup: Setup) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, (sender, receiver)) = (Arc::clone(&stop), mpsc::channel());
        let control = setup.control.as_ref().map(|it| it.join("control.sock"));
        let thread = std::thread::spawn(move || run_server(setup, flag, sender));
        let address = receiver.recv().expect("the server starts");
        Self { address, control, stop, thread }
    }

    /// Sends a request to the control socket.
    pub fn control(&self, request: &str) -> Value {
        let path = self.control.as_ref().expect("it has a control socket");
        let mut stream = UnixStream::connect(path).expect("the server listens");
        stream.write_all(format!("{request}\n").as_bytes()).expect("a socket");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("a reply");
        serde_json::from_str(&line).expect("JSON")
    }

    /// Ends the server, which must not have failed.
    pub fn stop(self) -> End {
        self.stop.store(true, Ordering::Relaxed);
        let end = self.thread.join().expect("the server does not panic");
        assert_eq!((end.fault.as_deref(), end.violations.as_slice()), (None, &[] as &[String]));
        end
    }
}

fn run_server(setup: Setup, stop: Arc<AtomicBool>, sender: mpsc::Sender<SocketAddr>) -> End {
    let (registry, scenario) = (standard(), scenario(&setup.system));
    let power_may_fail = setup.control.is_some();
    let owner = setup.system.clone();
    let saved = setup.state.as_ref().filter(|path| path.exists()).map(|path| {
        unpack(&std::fs::read(path).expect("the state"), &owner).expect("of this system")
    });
    let (machine, bytes) = saved.unzip();
    let options = session::Options {
        versions: power_may_fail,
        power_may_fail,
        state: machine,
        save_state: setup.state.is_some(),
        ..session::Options::default()
    };
    let session = Session::open(&scenario, &registry, options).expect("it opens");
    let exports = Exports::parse(&setup.exports, session.capacity()).expect("they fit");
    let mut store = Store::memory();
    if let Some(bytes) = bytes {
        store.restore(&bytes, session.capacity()).expect("it was saved");
    }
    let contents = match power_may_fail {
        true => Contents::History(Box::new(History::new(store))),
        false => Contents::Plain(store),
    };
    let record = setup.record.as_ref().map(|path| TraceFile::create(path, Vec::new()));
    let record = record.transpose().expect("one's own folder");
    let clock = match setup.is_paced {
        true => Clock::paced(1.0, std::time::Duration::ZERO),
        false => Clock::virtual_time(0.0),
    };
    let drive = Drive::new(session, contents, clock, record);
    let control = setup.control.as_ref().map(|it| Address::Unix(it.join("control.sock")));
    let usual = Limits::default();
    let options = Options {
        nbd: Vec::new(),
        nvme: vec![Address::parse_nvme("tcp://127.0.0.1:0", false).expect("an address")],
        nqn: setup.nqn.clone().unwrap_or_else(|| NQN.to_owned()),
        exports,
        description: "a drive under test".to_owned(),
        limits: Limits { buffer_bytes: setup.buffers.unwrap_or(usual.buffer_bytes), ..usual },
        once: false,
        control,
        stop,
        ready: Box::new(move |names| {
            let name = names[0].trim_start_matches("tcp://");
            let address = name.split(',').next().and_then(|it| it.parse().ok());
            sender.send(address.expect("an address")).expect("it is waited for");
        }),
    };
    let drive = serve(drive, options).expect("it listens");
    let ended = drive.finish(&registry, setup.state.is_some()).expect("results");
    ended.recorded.expect("the trace is complete");
    if let (Some(path), Some(machine), Ok(Some(contents))) =
        (&setup.state, &ended.output.state, &ended.contents)
    {
        save(path, &owner, machine, contents).expect("one's own folder");
    }
    let results = ended.output.results;
    End {
        served: ended.served,
        fingerprint: results.fingerprint,
        requests: results.requests,
        fault: ended.output.fault.map(|it| it.to_string()),
        violations: results.violations,
    }
}

/// Bytes of a block of 4 KiB.
pub const BLOCK: usize = 8 * SECTOR_BYTES as usize;
