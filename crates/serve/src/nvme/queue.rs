//! A queue, which is a connection: reads PDUs, runs a task for each command, and completes it.

use super::command::{Command, Completion, Direction, FABRICS, Place};
use super::controller::{Controller, ENTRIES_MAX, Failed};
use super::io::own_bytes;
use super::pdu::{
    COMMAND_BYTES, COMMON_BYTES, Common, DIGEST_BYTES, Fatal, Form, HOST_DATA_BYTES_MAX, is_intact,
    kind, parse_init, u16_at, u32_at,
};
use super::status::{Done, Outcome, Status};
use super::subsystem::{Subsystem, count};
use crate::budget::STALLED;
use crate::connection::{Connection, End, HANDSHAKE_TIME, Input, Protocol};
use crate::drive::{Finished, Job, Kind};
use crate::server::Server;
use crate::stream::Stream;
use hybridsim_engine::Flags;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::collections::hash_map::Entry;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Data of a command, as a power of two of 4 KiB: 1 MiB.
pub const TRANSFER_SHIFT: u8 = 8;
pub const TRANSFER_BYTES_MAX: usize = 4096 << TRANSFER_SHIFT;
/// Data in the capsule of a command.
pub const CAPSULE_BYTES_MAX: usize = 8 << 10;
/// Interval at which the keep-alive timer is checked.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// The health of the drive, a sum over all blocks, is checked once in so many intervals.
const HEALTH_EVERY: u32 = 4;
/// Interval at which the end of outstanding jobs is checked for.
const SETTLE_EVERY: Duration = Duration::from_millis(5);

/// The end of a job: bytes of a read, or a message.
type Ended = Result<Vec<u8>, &'static str>;

/// The jobs of a connection that commands wait for.
#[derive(Default)]
struct Jobs {
    waiting: RefCell<FxHashMap<u64, oneshot::Sender<Ended>>>,
    begun: Cell<u64>,
}

impl Protocol for Jobs {
    fn finished(&self, _connection: &Connection, finished: Finished) {
        if let Some(sender) = self.waiting.borrow_mut().remove(&finished.number) {
            drop(sender.send(finished.outcome));
        }
    }
}

/// Data of a command on their way from the host.
struct Transfer {
    command: u16,
    length: usize,
    data: Vec<u8>,
    is_damaged: bool,
    complete: oneshot::Sender<Result<Vec<u8>, Status>>,
}

/// Why reading ends.
enum Stop {
    End(End),
    Fatal(Fatal, Vec<u8>),
}

impl From<End> for Stop {
    fn from(end: End) -> Self {
        Self::End(end)
    }
}

/// A queue.
pub struct Queue {
    pub connection: Rc<Connection>,
    pub server: Rc<Server>,
    pub subsystem: Rc<Subsystem>,
    jobs: Rc<Jobs>,
    form: Cell<Form>,
    controller: RefCell<Option<Rc<Controller>>>,
    /// 0 for the admin queue.
    pub id: Cell<u16>,
    size: Cell<u16>,
    head: Cell<u16>,
    outstanding: Cell<u16>,
    transfers: RefCell<FxHashMap<u16, Transfer>>,
    /// The time at which data were last asked for, with none on their way, or arrived.
    data_moved: Cell<Instant>,
    transfers_begun: Cell<u16>,
    tasks: RefCell<JoinSet<()>>,
}

/// Serves the host at the other end of `stream` until its connection ends.
pub async fn serve(stream: Stream, server: Rc<Server>, subsystem: Rc<Subsystem>) {
    let jobs = Rc::new(Jobs::default());
    let Some(connection) = server.connect(stream, Rc::clone(&jobs) as Rc<dyn Protocol>) else {
        return;
    };
    let queue = Rc::new(Queue {
        connection: Rc::clone(&connection),
        server: Rc::clone(&server),
        subsystem,
        jobs,
        form: Cell::default(),
        controller: RefCell::default(),
        id: Cell::new(0),
        size: Cell::new(1),
        head: Cell::new(0),
        outstanding: Cell::new(0),
        transfers: RefCell::default(),
        data_moved: Cell::new(Instant::now()),
        transfers_begun: Cell::new(0),
        tasks: RefCell::default(),
    });
    let end = tokio::select! {
        // After a power failure no further command is read.
        biased;
        () = connection.closed.notified() => End::Left,
        stop = queue.run() => queue.stopped(stop),
        end = connection.write_out() => end.err().unwrap_or(End::Left),
        () = queue.supervise() => End::Violation,
    };
    queue.settle().await;
    queue.end();
    server.disconnected(&connection, end);
}

impl Queue {
    pub fn controller(&self) -> Option<Rc<Controller>> {
        self.controller.borrow().clone()
    }

    /// The queue belongs to `controller` from now on, and has `size` entries.
    pub fn attach(&self, controller: Rc<Controller>, id: u16, size: u16) {
        *self.controller.borrow_mut() = Some(controller);
        self.id.set(id);
        self.size.set(size.min(ENTRIES_MAX));
        // The first entry is the connect command.
        self.head.set(1);
        self.server.connected();
    }

    /// Waits for writes and management of zones, whose order other hosts rely on.
    async fn settle(&self) {
        while self.server.with_drive(|drive| drive.changes_zones(self.connection.id)) {
            tokio::time::sleep(SETTLE_EVERY).await;
        }
    }

    /// Ends the tasks of the queue, and with the admin queue the controller.
    fn end(&self) {
        drop(self.tasks.take());
        self.jobs.waiting.borrow_mut().clear();
        self.transfers.borrow_mut().clear();
        let Some(controller) = self.controller.take() else { return };
        match self.id.get() {
            0 => self.subsystem.remove(&controller),
            id => controller.remove_queue(id),
        }
    }

    /// Sends a termination request if the host violated the protocol.
    fn stopped(&self, stop: Stop) -> End {
        match stop {
            Stop::End(end) => end,
            Stop::Fatal(reason, header) => {
                self.connection.reply(|out| Form::terminate(out, reason, &header));
                self.connection.send();
                // A host that does not take it is not waited for.
                End::Violation
            }
        }
    }

    /// Returns when the host has been silent for too long, or does not introduce itself.
    async fn supervise(self: &Rc<Self>) {
        let began = Instant::now();
        for interval in (0..HEALTH_EVERY).cycle() {
            tokio::time::sleep(CHECK_EVERY).await;
            // Other commands do not excuse a host that keeps memory for data it does not send.
            if !self.transfers.borrow().is_empty() && self.data_moved.get().elapsed() > STALLED {
                return;
            }
            match self.controller() {
                None if began.elapsed() > HANDSHAKE_TIME => return,
                Some(controller) if self.id.get() == 0 => {
                    if controller.is_silent() {
                        return;
                    }
                    if interval == 0 {
                        self.check_health(&controller);
                    }
                }
                _ => {}
            }
        }
    }

    async fn run(self: &Rc<Self>) -> Stop {
        let mut input = Input::new(&self.connection);
        if let Err(stop) = self.initialize(&mut input).await {
            return stop;
        }
        loop {
            // PDUs that are already buffered must not keep other tasks from running.
            tokio::task::consume_budget().await;
            self.connection.wait_for_client().await;
            if let Err(stop) = self.pdu(&mut input).await {
                return stop;
            }
        }
    }

    async fn initialize(&self, input: &mut Input<'_>) -> Result<(), Stop> {
        let header: [u8; COMMON_BYTES] = input.array().await?;
        let common = Common::parse(&header);
        if common.kind != kind::INIT_REQUEST {
            return Err(Stop::Fatal(Fatal::Sequence, header.to_vec()));
        }
        if common.length != 128 || common.header != 128 || common.flags != 0 {
            return Err(Stop::Fatal(Fatal::Header, header.to_vec()));
        }
        let rest: [u8; 120] = input.array().await?;
        let form = parse_init(&rest).map_err(|fatal| Stop::Fatal(fatal, header.to_vec()))?;
        self.form.set(form);
        self.connection.reply(|out| form.init_response(out));
        self.connection.send();
        Ok(())
    }

    /// Reads a PDU.
    async fn pdu(self: &Rc<Self>, input: &mut Input<'_>) -> Result<(), Stop> {
        let form = self.form.get();
        let mut header = [0; COMMON_BYTES + COMMAND_BYTES];
        let first: [u8; COMMON_BYTES] = input.array().await?;
        header[..COMMON_BYTES].copy_from_slice(&first);
        let common = Common::parse(&first);
        let fatal = |reason| Stop::Fatal(reason, first.to_vec());
        if common.kind == kind::HOST_TERMINATE {
            return Err(Stop::End(End::Left));
        }
        let (gap, data) = common.check(form).map_err(fatal)?;
        let limit = match common.kind {
            kind::COMMAND => CAPSULE_BYTES_MAX,
            _ => HOST_DATA_BYTES_MAX as usize,
        };
        if data > limit + DIGEST_BYTES {
            return Err(fatal(Fatal::DataLimit));
        }
        let end = usize::from(common.header);
        header[COMMON_BYTES..end].copy_from_slice(&input.take(end - COMMON_BYTES).await?);
        let between = input.take(gap).await?;
        if form.header && !is_intact(&header[..end], &between[..DIGEST_BYTES]) {
            return Err(fatal(Fatal::HeaderDigest));
        }
        let mut data = input.take(data).await?;
        let mut is_damaged = false;
        if form.data && !data.is_empty() {
            let digest = data.split_off(data.len() - DIGEST_BYTES);
            is_damaged = !is_intact(&data, &digest);
        }
        if let Some(controller) = &*self.controller.borrow() {
            controller.hear();
        }
        if common.kind == kind::HOST_DATA {
            return self.host_data(&header, &data, is_damaged).map_err(fatal);
        }
        let mut bytes = [0; COMMAND_BYTES];
        bytes.copy_from_slice(&header[COMMON_BYTES..]);
        self.begin(Command::parse(bytes), data, is_damaged).map_err(fatal)
    }

    /// Data of a command arrive, in order.
    fn host_data(&self, header: &[u8], data: &[u8], is_damaged: bool) -> Result<(), Fatal> {
        let (command, number) = (u16_at(header, 8), u16_at(header, 10));
        let (offset, length) = (u32_at(header, 12) as usize, u32_at(header, 16) as usize);
        let mut transfers = self.transfers.borrow_mut();
        let transfer = transfers.get_mut(&number).filter(|it| it.command == command);
        let transfer = transfer.ok_or(Fatal::Header)?;
        if length != data.len() || length == 0 {
            return Err(Fatal::Header);
        }
        if offset != transfer.data.len() || offset + length > transfer.length {
            return Err(Fatal::DataRange);
        }
        transfer.data.extend_from_slice(data);
        transfer.is_damaged |= is_damaged;
        self.connection.arrived(length);
        self.data_moved.set(Instant::now());
        if transfer.data.len() == transfer.length {
            let Transfer { data, is_damaged, complete, .. } =
                transfers.remove(&number).ok_or(Fatal::Header)?;
            let received = if is_damaged { Err(Status::TRANSIENT_TRANSPORT) } else { Ok(data) };
            drop(complete.send(received));
        }
        Ok(())
    }

    /// Begins a command: a task that ends with its completion.
    fn begin(
        self: &Rc<Self>,
        command: Command,
        capsule: Vec<u8>,
        is_damaged: bool,
    ) -> Result<(), Fatal> {
        if self.outstanding.get() >= self.size.get() {
            return Err(Fatal::Sequence);
        }
        self.outstanding.set(self.outstanding.get() + 1);
        self.head.set((self.head.get() + 1) % self.size.get());
        let queue = Rc::clone(self);
        let mut tasks = self.tasks.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(async move { queue.execute(command, capsule, is_damaged).await });
        Ok(())
    }

    async fn execute(self: Rc<Self>, command: Command, capsule: Vec<u8>, is_damaged: bool) {
        let reserved = match self.reserved(&command) {
            // Administration does not wait for memory that other hosts keep.
            Ok(bytes) if self.id.get() == 0 && bytes <= CAPSULE_BYTES_MAX => {
                self.connection.take_space(bytes);
                Ok(bytes)
            }
            Ok(bytes) => {
                self.connection.wait_for_space(bytes, || self.server.drop_stalled()).await;
                Ok(bytes)
            }
            Err(status) => Err(status),
        };
        let outcome = match reserved {
            Err(status) => Err(status),
            Ok(_) if is_damaged => Err(Status::TRANSIENT_TRANSPORT),
            Ok(_) => match self.host_bytes(&command, capsule).await {
                Ok(data) => self.dispatch(&command, data).await,
                Err(status) => Err(status),
            },
        };
        self.complete(&command, outcome);
        if let Ok(bytes) = reserved {
            self.connection.release(bytes);
        }
    }

    /// Bytes of memory that the data of a command take.
    fn reserved(&self, command: &Command) -> Result<usize, Status> {
        command.check()?;
        let (length, _) = command.data()?;
        if length > TRANSFER_BYTES_MAX {
            return Err(Status::INVALID_FIELD);
        }
        let transferred = if command.direction() == Direction::None { 0 } else { length };
        Ok(if self.id.get() == 0 { transferred } else { transferred + own_bytes(command, length) })
    }

    /// The data that come with a command, or that the host sends when the controller is ready.
    async fn host_bytes(&self, command: &Command, mut capsule: Vec<u8>) -> Result<Vec<u8>, Status> {
        let (length, place) = command.data()?;
        if command.direction() != Direction::FromHost || length == 0 {
            return Ok(Vec::new());
        }
        if let Place::Capsule(offset) = place {
            let end = offset.checked_add(length).ok_or(Status::SGL_OFFSET)?;
            if end > capsule.len() {
                return Err(Status::SGL_OFFSET);
            }
            capsule.truncate(end);
            return Ok(capsule.split_off(offset));
        }
        let (complete, received) = oneshot::channel();
        let number = self.add_transfer(Transfer {
            command: command.id,
            length,
            data: Vec::new(),
            is_damaged: false,
            complete,
        });
        self.connection.expect(length);
        let form = self.form.get();
        self.connection.reply(|out| form.ready(out, (command.id, number), length as u32));
        self.connection.send_soon();
        received.await.map_err(|_| Status::INTERNAL_ERROR)?
    }

    fn add_transfer(&self, transfer: Transfer) -> u16 {
        let mut transfers = self.transfers.borrow_mut();
        if transfers.is_empty() {
            self.data_moved.set(Instant::now());
        }
        // Fewer than there are numbers, as a queue has few entries.
        loop {
            let number = self.transfers_begun.get();
            self.transfers_begun.set(number.wrapping_add(1));
            if let Entry::Vacant(entry) = transfers.entry(number) {
                entry.insert(transfer);
                return number;
            }
        }
    }

    async fn dispatch(self: &Rc<Self>, command: &Command, data: Vec<u8>) -> Outcome {
        if command.opcode == FABRICS {
            return self.fabrics(command, &data).await;
        }
        let controller = self.controller().ok_or(Status::COMMAND_SEQUENCE)?;
        match self.id.get() {
            0 => self.admin(&controller, command, &data).await,
            _ if !controller.is_ready() => Err(Status::COMMAND_SEQUENCE),
            _ => self.io(&controller, command, data).await,
        }
    }

    /// Completes a command.
    fn complete(&self, command: &Command, outcome: Outcome) {
        let fits = |done: &Done| {
            done.data.is_empty()
                || command.data().is_ok_and(|(length, _)| done.data.len() <= length)
        };
        let outcome = outcome.and_then(|done| match fits(&done) {
            true => Ok(done),
            false => Err(Status::SGL_LENGTH),
        });
        let done = match outcome {
            Ok(done) => done,
            Err(status) => Done { status, ..Done::default() },
        };
        if let Some(controller) = self.controller()
            && done.status != Status::SUCCESS
        {
            count(&self.subsystem.counts.errors, 1);
            controller.log(Failed {
                count: 0,
                queue: self.id.get(),
                command: command.id,
                status: done.status,
                lba: if self.id.get() == 0 { 0 } else { command.quad(10) },
                nsid: command.nsid,
            });
        }
        let completion = Completion {
            result: done.result,
            head: self.head.get(),
            queue: self.id.get(),
            command: command.id,
            status: done.status,
        };
        let form = self.form.get();
        self.connection.reply(|out| {
            if !done.data.is_empty() {
                form.data(out, command.id, &done.data);
            }
            form.response(out, &completion.to_bytes());
        });
        self.outstanding.set(self.outstanding.get() - 1);
        self.connection.send_soon();
    }

    /// Serves a job, and waits for its end.
    pub async fn job(&self, kind: Kind, first: u64, sectors: u64, flags: Flags) -> Ended {
        let number = self.jobs.begun.replace(self.jobs.begun.get() + 1);
        let (sender, receiver) = oneshot::channel();
        self.jobs.waiting.borrow_mut().insert(number, sender);
        let job = Job { client: self.connection.id, number, kind, first, sectors, flags };
        self.server.receive(job, Instant::now());
        receiver.await.unwrap_or(Err("the connection has ended"))
    }
}
