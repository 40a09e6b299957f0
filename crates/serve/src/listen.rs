//! Listens and serves connections until the user or the last client ends the server.

use crate::client;
use crate::control;
use crate::drive::Drive;
use crate::exports::Exports;
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
    pub addresses: Vec<Address>,
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
/// An address cannot be listened at.
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
    let Options { addresses, exports, description, limits, once, control, stop, ready } = options;
    let server = Rc::new(Server::new(drive, exports, description, limits));
    let mut names = Vec::new();
    let mut listeners = Vec::new();
    for address in &addresses {
        let listener = Listener::bind(address).await?;
        names.push(listener.address());
        listeners.push(listener);
    }
    if let Some(address) = &control {
        let listener = Listener::bind(address).await?;
        tokio::task::spawn_local(control::listen(listener, Rc::clone(&server)));
    }
    for listener in listeners {
        tokio::task::spawn_local(accept(listener, Rc::clone(&server)));
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

async fn accept(listener: Listener, server: Rc<Server>) {
    loop {
        if let Some(connection) = server.connect(listener.next().await) {
            tokio::task::spawn_local(client::serve(connection, Rc::clone(&server)));
        }
    }
}
