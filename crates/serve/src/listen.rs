//! Listens and serves connections until the user or the last client ends the server.

use crate::client;
use crate::control;
use crate::drive::Drive;
use crate::exports::Exports;
use crate::nvme::{self, Subsystem};
use crate::server::{Limits, Server};
use crate::stream::{Address, Listener};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::LocalSet;

/// Interval at which an interrupt of the user is looked for.
const STOP_EVERY: Duration = Duration::from_millis(50);
/// With `once`, time without clients after which the server ends.
const ONCE_PAUSE: Duration = Duration::from_secs(1);

/// Receives the addresses that are listened at, as clients write them.
pub type OnReady = dyn FnOnce(&[String]);

/// Options of a server.
pub struct Options {
    /// Addresses for the network block device, and for NVMe over TCP.
    pub nbd: Vec<Address>,
    pub nvme: Vec<Address>,
    /// The NVMe qualified name of the subsystem, as [`crate::qualified_name`] takes it.
    pub nqn: String,
    pub exports: Exports,
    /// Described to clients that list exports.
    pub description: String,
    pub limits: Limits,
    /// End when the last client has left and none has come for a second.
    pub once: bool,
    /// The address of the control socket, by which faults are requested.
    pub control: Option<Address>,
    /// Set to end.
    pub stop: Arc<AtomicBool>,
    /// Called with the addresses once connections are accepted.
    pub ready: Box<OnReady>,
}

/// Serves `drive` until the user or the last client ends it.
///
/// # Errors
/// An address cannot be listened at, or an export cannot be a namespace.
pub fn serve(drive: Drive, options: Options) -> io::Result<Drive> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = LocalSet::new();
    let served = tasks.block_on(&runtime, run(drive, options));
    // Connections hold the server.
    drop(tasks);
    let server = Rc::into_inner(served?).expect("all tasks have ended");
    Ok(server.into_drive())
}

async fn run(drive: Drive, options: Options) -> io::Result<Rc<Server>> {
    let Options { nbd, nvme, nqn, exports, description, limits, once, control, stop, ready } =
        options;
    let subsystem = (!nvme.is_empty()).then(|| Subsystem::new(&drive, &exports, &description, nqn));
    let subsystem = subsystem.transpose().map_err(io::Error::other)?;
    let subsystem = subsystem.map(Rc::new);
    let server = Rc::new(Server::new(drive, exports, description, limits));
    let mut names = Vec::new();
    let mut listeners = Vec::new();
    for address in &nbd {
        let listener = Listener::bind(address).await?;
        names.push(listener.nbd_address());
        listeners.push((listener, None));
    }
    let nqn = subsystem.as_ref().map_or("", |it| &it.nqn);
    for address in &nvme {
        let listener = Listener::bind(address).await?;
        names.push(format!("tcp://{}, subsystem {nqn}", listener.tcp_address()));
        listeners.push((listener, subsystem.clone()));
    }
    if let Some(address) = &control {
        let listener = Listener::bind(address).await?;
        tokio::task::spawn_local(control::listen(listener, Rc::clone(&server)));
    }
    for (listener, subsystem) in listeners {
        tokio::task::spawn_local(accept(listener, Rc::clone(&server), subsystem));
    }
    ready(&names);
    tokio::select! {
        () = server.run_drive() => {}
        () = stopped(&stop) => {}
        () = server.last_left(ONCE_PAUSE), if once => {}
    }
    Ok(server)
}

async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(STOP_EVERY).await;
    }
}

/// Accepts connections: for NVMe with a subsystem, for the network block device without.
async fn accept(listener: Listener, server: Rc<Server>, subsystem: Option<Rc<Subsystem>>) {
    loop {
        let (stream, server) = (listener.next().await, Rc::clone(&server));
        match &subsystem {
            Some(subsystem) => {
                tokio::task::spawn_local(nvme::serve(stream, server, Rc::clone(subsystem)))
            }
            None => tokio::task::spawn_local(client::serve(stream, server)),
        };
    }
}
