//! The test suite of zone semantics, for every device with zones and every component that presents
//! the zones of its children.
//!
//! A reference model of the NVMe Zoned Namespace Command Set (1.1, Zone State Machine) serves the
//! same requests. Outcome and status of each request, the reported state and write pointer of each
//! zone, and the data of reads have to agree: for every action in every state, at the limits of
//! open and active zones, over random requests in any order, within random write areas (NVMe
//! TP 4076), and across power failures.

use hybridsim_engine::zone_table::ZoneStatus;
use hybridsim_engine::{
    Arrival, CommonEvent, ComponentTree, EventRecord, Flags, Lba, Machine, Op, Request,
    SimDuration, SimTime, Stream, ZoneAction, ZoneInfo, ZoneLayout, ZoneState,
};
use hybridsim_host::scheduler::fcfs::Fcfs;
use hybridsim_host::{Answer, Answered, Host, HostOptions, QueuePair};

/// A zone of the reference model.
#[derive(Clone, Debug)]
struct Zone {
    state: ZoneState,
    written: u64,
    /// Presence of a random write area (ZRWA).
    is_random: bool,
    /// Number of the request that last opened or wrote it.
    used: u64,
    /// By sector, what a read returns.
    data: Vec<u64>,
}

/// The reference model: the zones of one device.
#[derive(Clone, Debug)]
struct Model {
    /// First sector of the device.
    first: u64,
    layout: ZoneLayout,
    zones: Vec<Zone>,
    clock: u64,
}

impl Model {
    fn new((first, layout): (u64, ZoneLayout)) -> Self {
        let data = vec![0; layout.size as usize];
        let zone = Zone { state: ZoneState::Empty, written: 0, is_random: false, used: 0, data };
        Self { first, layout, zones: vec![zone; layout.zones as usize], clock: 0 }
    }

    fn count(&self, is: impl Fn(ZoneState) -> bool) -> u32 {
        self.zones.iter().filter(|zone| is(zone.state)).count() as u32
    }

    /// Opens a zone; closes the least recently used of those opened implicitly if it has to.
    fn open(&mut self, at: usize, explicitly: bool) -> Result<(), &'static str> {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen};
        let is_open = |state| matches!(state, ImplicitlyOpen | ExplicitlyOpen);
        let state = self.zones[at].state;
        if state == Full {
            return Err("invalid_zone_state_transition");
        }
        let active = self.count(|state| is_open(state) || state == Closed);
        if state == Empty && self.layout.active_max.is_some_and(|max| active >= max) {
            return Err("too_many_active_zones");
        }
        let open = self.count(is_open);
        if !is_open(state) && self.layout.open_max.is_some_and(|max| open >= max) {
            let implicit = self.zones.iter_mut().filter(|zone| zone.state == ImplicitlyOpen);
            let oldest = implicit.min_by_key(|zone| zone.used).ok_or("too_many_open_zones")?;
            oldest.state = Closed;
        }
        self.clock += 1;
        let zone = &mut self.zones[at];
        zone.used = self.clock;
        if explicitly {
            zone.state = ExplicitlyOpen;
        } else if !is_open(state) {
            zone.state = ImplicitlyOpen;
        }
        Ok(())
    }

    /// Serves request number `number`, whose address is that of the system.
    fn serve(&mut self, request: &Request, number: u64) -> Result<(), &'static str> {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen};
        let ZoneLayout { size, capacity, page, .. } = self.layout;
        let (at, within) =
            ((request.lba.0 - self.first) / size, (request.lba.0 - self.first) % size);
        let (at, sectors) = (at as usize, u64::from(request.sectors));
        match request.op {
            Op::Read | Op::Trim | Op::Flush => Ok(()),
            Op::Write => {
                if !within.is_multiple_of(page) || !sectors.is_multiple_of(page) {
                    return Err("invalid_field");
                }
                let Zone { state, written, is_random, .. } = self.zones[at];
                let is_append = request.flags.contains(Flags::APPEND);
                if is_append && is_random {
                    return Err("invalid_zone_operation_request");
                }
                let first = if is_append && within == 0 { written } else { within };
                if state == Full {
                    return Err("zone_is_full");
                }
                if first + sectors > capacity {
                    return Err("zone_boundary_error");
                }
                let area = self.layout.random.filter(|_| is_random);
                let (size, step) =
                    area.map_or((0, 1), |it| (u64::from(it.size), u64::from(it.granularity)));
                let end = first + sectors;
                let fits = match is_random {
                    true => written <= first && end <= written + 2 * size,
                    false => first == written,
                };
                if !fits {
                    return Err("zone_invalid_write");
                }
                self.open(at, false)?;
                let zone = &mut self.zones[at];
                zone.data[first as usize..(first + sectors) as usize].fill(number + 1);
                match is_random {
                    // The write pointer moves until the area contains the write.
                    true => {
                        while zone.written + size < end {
                            zone.written = (zone.written + step).min(capacity);
                        }
                    }
                    false => zone.written = end,
                }
                if zone.written == capacity {
                    (zone.state, zone.is_random) = (Full, false);
                }
                Ok(())
            }
            Op::Zone(ZoneAction::Commit) => {
                if !within.is_multiple_of(page) || !sectors.is_multiple_of(page) {
                    return Err("invalid_field");
                }
                let zone = &mut self.zones[at];
                let area = self.layout.random.filter(|_| zone.is_random);
                let area = area.ok_or("invalid_zone_operation_request")?;
                let (to, size) = (within + sectors, u64::from(area.size));
                let in_area = zone.written < to && to <= (zone.written + size).min(capacity);
                let is_step = (to - zone.written.min(to)).is_multiple_of(area.granularity.into());
                if !in_area || !(is_step || to == capacity) {
                    return Err("invalid_field");
                }
                zone.written = to;
                if to == capacity {
                    (zone.state, zone.is_random) = (Full, false);
                }
                Ok(())
            }
            Op::Zone(_) if within != 0 || sectors != size => Err("invalid_field"),
            Op::Zone(ZoneAction::Open) if request.flags.contains(Flags::RANDOM_WRITE_AREA) => {
                let area = self.layout.random.ok_or("invalid_field")?;
                if self.zones[at].state != Empty {
                    return Err("invalid_zone_operation_request");
                }
                let random = self.zones.iter().filter(|zone| zone.is_random).count() as u32;
                let mut opened = self.clone();
                opened.open(at, true)?;
                if random >= area.zones_max {
                    return Err("zrwa_resources_unavailable");
                }
                *self = opened;
                self.zones[at].is_random = true;
                Ok(())
            }
            Op::Zone(action) => match (action, self.zones[at].state) {
                (ZoneAction::Open, _) => self.open(at, true),
                (ZoneAction::Close, ImplicitlyOpen | ExplicitlyOpen | Closed) => {
                    self.zones[at].state = Closed;
                    Ok(())
                }
                (ZoneAction::Close, _) => Err("invalid_zone_state_transition"),
                (ZoneAction::Finish, _) => {
                    let zone = &mut self.zones[at];
                    if std::mem::take(&mut zone.is_random) {
                        // What the area holds counts as written.
                        let page_end = |last: usize| (last as u64 / page + 1) * page;
                        let last = zone.data.iter().rposition(|version| *version != 0);
                        zone.written = last.map_or(0, page_end).max(zone.written);
                    }
                    zone.state = Full;
                    Ok(())
                }
                (ZoneAction::Reset, _) => {
                    let zone = &mut self.zones[at];
                    (zone.state, zone.written, zone.is_random) = (Empty, 0, false);
                    zone.data.fill(0);
                    Ok(())
                }
                (ZoneAction::Commit, _) => unreachable!("above"),
            },
        }
    }

    /// Open zones are closed, and active ones without data empty; random write areas survive.
    fn cut_power(&mut self) {
        for zone in &mut self.zones {
            zone.state = match zone.state {
                ZoneState::Full => ZoneState::Full,
                _ if zone.written == 0 && !zone.is_random => ZoneState::Empty,
                _ => ZoneState::Closed,
            };
        }
    }
}

/// A system with zones beside the reference model.
pub struct ZoneRig {
    machine: Machine,
    pair: QueuePair,
    models: Vec<Model>,
    /// Whether states can be read from the system.
    lists_zones: bool,
    verifies: bool,
    appends: bool,
    submitted: u64,
    events: Vec<EventRecord>,
}

/// A disagreement with the model.
pub type Disagreement = String;

impl ZoneRig {
    /// A rig around `system`, whose path begins with `host/`. With `verifies`, reads are compared,
    /// and appends name the sector that they are written to.
    ///
    /// # Errors
    /// A system without zones of one size.
    pub fn new(system: ComponentTree, verifies: bool) -> Result<Self, Disagreement> {
        let whole = system.zone_layout().ok_or("it has no zones of one size")?;
        let pair = QueuePair::default();
        let options = HostOptions { outstanding_max: u64::MAX, ..HostOptions::open(1 << 16) };
        let host = Host::attached(options, pair.clone(), verifies, Box::new(Fcfs::default()));
        let root = ComponentTree::inner("host", host, vec![system]);
        let mut machine = Machine::new(root, verifies);
        machine.power_may_fail();
        let listed: Vec<_> =
            machine.zoned_devices().map(|(first, it)| (first, it.layout())).collect();
        let lists_zones = !listed.is_empty();
        let devices = if lists_zones { listed } else { vec![(0, whole)] };
        let models = devices.into_iter().map(Model::new).collect();
        let events = Vec::new();
        let appends = true;
        Ok(Self { machine, pair, models, lists_zones, verifies, appends, submitted: 0, events })
    }

    /// Random requests include no zone appends, which the system lacks.
    #[must_use]
    pub fn without_appends(self) -> Self {
        Self { appends: false, ..self }
    }

    /// The zones of the first device.
    pub fn layout(&self) -> ZoneLayout {
        self.models[0].layout
    }

    fn model(&mut self, request: &Request) -> &mut Model {
        let at = self.models.partition_point(|model| model.first <= request.lba.0) - 1;
        &mut self.models[at]
    }

    fn submit(&mut self, request: &Request) {
        let at = self.machine.earliest_arrival();
        self.pair.submit(Arrival { at, request: *request });
        self.machine.wake_root(at);
        self.submitted += 1;
    }

    fn answers(&mut self, count: usize) -> Result<Vec<Answer>, Disagreement> {
        // Those that completed before a power failure are there already.
        let mut answers: Vec<_> = std::iter::from_fn(|| self.pair.pop()).collect();
        while answers.len() < count {
            let stepped = self.machine.step(None, &mut self.events);
            if !stepped.map_err(|fault| fault.to_string())? {
                return Err("a request never completes".to_owned());
            }
            answers.extend(std::iter::from_fn(|| self.pair.pop()));
        }
        self.machine.flush_events(&mut self.events);
        answers.sort_by_key(|answer| answer.number);
        Ok(answers)
    }

    /// The statuses reported since the last call, sorted.
    fn statuses(&mut self) -> Vec<&'static str> {
        let infos = self.machine.describe();
        let status = |record: &EventRecord| match record.event() {
            Some(CommonEvent::Custom { name, .. }) => {
                infos[record.component().0 as usize].1.custom.get(name as usize).copied()
            }
            _ => None,
        };
        let mut statuses: Vec<_> = self.events.iter().filter_map(status).collect();
        statuses.retain(|name| ZoneStatus::NAMES.contains(name));
        statuses.sort_unstable();
        self.events.clear();
        statuses
    }

    /// Serves `requests`, which arrive at once, and compares everything with the model. The
    /// management of a zone has to be the only request for it.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn serve(&mut self, requests: &[Request]) -> Result<(), Disagreement> {
        let first = self.submitted;
        let mut expected = Vec::new();
        for (number, request) in (first..).zip(requests) {
            self.submit(request);
            expected.push(self.model(request).serve(request, number));
        }
        let answers = self.answers(requests.len())?;
        for ((answer, expected), request) in answers.iter().zip(&expected).zip(requests) {
            let succeeds = answer.outcome == Answered::Done;
            if succeeds != expected.is_ok() {
                return Err(format!("{request:?}: {:?}, not {expected:?}", answer.outcome));
            }
        }
        let mut wanted: Vec<_> = expected.iter().filter_map(|it| it.err()).collect();
        wanted.sort_unstable();
        let statuses = self.statuses();
        if statuses != wanted {
            return Err(format!("{requests:?}: {statuses:?}, not {wanted:?}"));
        }
        self.compare_states()
    }

    /// Compares states and write pointers, where the system lists them.
    fn compare_states(&self) -> Result<(), Disagreement> {
        if !self.lists_zones {
            return Ok(());
        }
        for ((first, device), model) in self.machine.zoned_devices().zip(&self.models) {
            for (at, zone) in (0..).zip(&model.zones) {
                let ZoneInfo { state, written, is_random } = device.zone(at);
                let (found, wanted) =
                    ((state, written, is_random), (zone.state, zone.written, zone.is_random));
                if found != wanted {
                    return Err(format!("zone {at} from {first}: {found:?}, not {wanted:?}"));
                }
            }
            let open =
                |state| matches!(state, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen);
            let active = model.count(|state| open(state) || state == ZoneState::Closed);
            if device.active() != (model.count(open), active) {
                return Err(format!("{:?} zones open and active", device.active()));
            }
        }
        Ok(())
    }

    /// Reads back all zones.
    ///
    /// # Errors
    /// The first zone with other data than those of the model.
    pub fn read_back(&mut self) -> Result<(), Disagreement> {
        for device in 0..self.models.len() {
            let Model { first, layout, .. } = self.models[device];
            for zone in 0..layout.zones {
                let lba = Lba(first + zone * layout.size);
                self.submit(&Request::new(Op::Read, lba, layout.size as u32));
                let answer = self.answers(1)?.swap_remove(0);
                let data = &self.models[device].zones[zone as usize].data;
                if self.verifies && answer.versions != *data {
                    let differs = |(got, wanted): (&u64, &u64)| got != wanted;
                    let at = answer.versions.iter().zip(data).position(differs).unwrap_or(0);
                    return Err(format!(
                        "sector {at} of zone {zone} from {first} has version {:?}, not {:?}",
                        answer.versions.get(at),
                        data.get(at)
                    ));
                }
            }
        }
        self.events.clear();
        Ok(())
    }

    /// The power fails, after all requests have completed.
    ///
    /// # Errors
    /// The first disagreement afterwards.
    pub fn cut_power(&mut self) -> Result<(), Disagreement> {
        let at = self.machine.now() + SimDuration::from_ns(1);
        self.fail_power(at)?;
        self.models.iter_mut().for_each(Model::cut_power);
        self.compare_states()
    }

    fn fail_power(&mut self, at: SimTime) -> Result<(), Disagreement> {
        let fault = |fault: hybridsim_engine::Fault| fault.to_string();
        while self.machine.step(Some(at), &mut self.events).map_err(fault)? {}
        self.machine.pass_time(at.max(self.machine.now()));
        self.machine.cut_power_now(&mut self.events).map_err(fault)
    }

    /// The power fails `after` the arrival of `requests`, which may have been served in part. The
    /// model then takes the write pointers that are reported, if they are possible; where none are
    /// reported, the zones are reset.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn cut_power_during(
        &mut self,
        requests: &[Request],
        after: SimDuration,
    ) -> Result<(), Disagreement> {
        let before = self.models.clone();
        for (number, request) in (self.submitted..).zip(requests) {
            self.submit(request);
            let _refused = self.model(request).serve(request, number);
        }
        self.fail_power(self.machine.earliest_arrival() + after)?;
        let answers = self.answers(requests.len())?;
        self.models.iter_mut().for_each(Model::cut_power);
        let lost = answers.iter().any(|answer| answer.outcome == Answered::Lost);
        if !self.lists_zones {
            let touched = |request: &Request| {
                let size = self.models[0].layout.size;
                Lba(request.lba.0 / size * size)
            };
            let mut zones: Vec<Lba> = requests.iter().map(touched).collect();
            zones.dedup();
            let sectors = self.layout().size as u32;
            self.events.clear();
            for lba in zones {
                self.serve(&[Request::new(Op::Zone(ZoneAction::Reset), lba, sectors)])?;
            }
            return Ok(());
        }
        if lost {
            self.adopt(&before)?;
            self.adopt_data(&before)?;
        }
        self.events.clear();
        self.compare_states()
    }

    /// Takes over which sectors of writes in flight reached the medium; the others read as zeros.
    fn adopt_data(&mut self, before: &[Model]) -> Result<(), Disagreement> {
        for (device, before) in before.iter().enumerate() {
            for (at, before) in before.zones.iter().enumerate() {
                let Model { first, layout, ref zones, .. } = self.models[device];
                let has_area = zones[at].is_random || before.is_random;
                if !self.verifies || (zones[at].written == before.written && !has_area) {
                    continue;
                }
                let lba = Lba(first + at as u64 * layout.size);
                self.submit(&Request::new(Op::Read, lba, layout.size as u32));
                let answer = self.answers(1)?.swap_remove(0);
                let data = &mut self.models[device].zones[at].data;
                let pairs = answer.versions.iter().zip(&*data).zip(&before.data).enumerate();
                let mut wrong =
                    pairs.filter(|(_, ((got, wanted), before))| got != wanted && got != before);
                if let Some(sector) = wrong.next() {
                    return Err(format!("zone {at} after a power failure: {sector:?}"));
                }
                data.clone_from(&answer.versions);
            }
        }
        Ok(())
    }

    /// Takes over what a power failure left of requests in flight.
    fn adopt(&mut self, before: &[Model]) -> Result<(), Disagreement> {
        let devices = self.machine.zoned_devices().map(|(_, device)| device);
        for ((device, model), before) in devices.zip(&mut self.models).zip(before) {
            for (at, (zone, before)) in model.zones.iter_mut().zip(&before.zones).enumerate() {
                let ZoneInfo { state, written, is_random } = device.zone(at as u64);
                let is_possible = match state {
                    ZoneState::Empty => written == 0,
                    ZoneState::Closed => {
                        (0 < written || is_random) && written < model.layout.capacity
                    }
                    ZoneState::Full => true,
                    _ => false,
                };
                let [low, high] =
                    [zone.written.min(before.written), zone.written.max(before.written)];
                if !is_possible || !(low..=high).contains(&written) {
                    return Err(format!("zone {at}: {state:?} at {written} after a power failure"));
                }
                if (zone.state, zone.written) != (state, written) {
                    // An action that was not carried out: the zone is as before.
                    zone.data.clone_from(&before.data);
                }
                (zone.state, zone.written, zone.is_random) = (state, written, is_random);
            }
        }
        Ok(())
    }

    /// A random request for zone number `zone` of device number `device`: mostly one that succeeds.
    fn draw(&self, stream: &mut Stream, (device, zone): (usize, u64)) -> Request {
        let Model { first, layout, ref zones, .. } = self.models[device];
        let Zone { written, is_random, .. } = zones[zone as usize];
        let start = first + zone * layout.size;
        let manage = |action| Request::new(Op::Zone(action), Lba(start), layout.size as u32);
        let pages = |most: u64, stream: &mut Stream| (1 + stream.below(most)) * layout.page;
        if let Some(area) = layout.random.filter(|_| stream.chance(0.6)) {
            let step = u64::from(area.granularity);
            return match stream.below(8) {
                _ if !is_random => {
                    Request { flags: Flags::RANDOM_WRITE_AREA, ..manage(ZoneAction::Open) }
                }
                0..2 => {
                    let to = written + (1 + stream.below(u64::from(area.size) / step)) * step;
                    let to = to.min(layout.capacity) as u32;
                    manage(ZoneAction::Commit).part(0, to.max(1), Lba(start))
                }
                _ => {
                    let within = stream.below(2 * u64::from(area.size) / layout.page) * layout.page;
                    let at = (written + within).min(layout.size - layout.page);
                    Request::new(Op::Write, Lba(start + at), pages(3, stream) as u32)
                }
            };
        }
        match stream.below(40) {
            0..4 => manage(ZoneAction::Reset),
            4..6 => manage(ZoneAction::Finish),
            6..9 => manage(ZoneAction::Open),
            9..11 => manage(ZoneAction::Close),
            11 => Request { sectors: layout.page as u32, ..manage(ZoneAction::Reset) },
            12 => Request::new(Op::Write, Lba(start + 1), layout.page as u32),
            13 => {
                let within = stream.below(layout.capacity / layout.page) * layout.page;
                Request::new(Op::Write, Lba(start + within), pages(3, stream) as u32)
            }
            14 => Request::new(Op::Trim, Lba(start), layout.size as u32),
            kind => {
                let rest = (layout.capacity - written.min(layout.capacity)) / layout.page;
                let longest = if kind < 20 { rest.max(1) + 1 } else { rest.clamp(1, 5) };
                let sectors = pages(longest, stream) as u32;
                let append = self.appends && stream.chance(0.3);
                let names_start = append && !self.verifies;
                let lba = if names_start { start } else { start + written };
                // A full zone ends where the next begins.
                let lba = if written >= layout.size { start } else { lba };
                let flags = if append { Flags::APPEND } else { Flags::NONE };
                Request { flags, ..Request::new(Op::Write, Lba(lba), sectors) }
            }
        }
    }

    /// Serves `batches` of random requests, whose power fails between some of them and during
    /// others; then reads all zones back.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check_random(&mut self, seed: u64, batches: usize) -> Result<(), Disagreement> {
        let mut stream = Stream::new(seed, "zones");
        for batch in 0..batches {
            // Most requests go to few zones, so that limits are met and zones filled.
            let mut requests: Vec<Request> = Vec::new();
            let mut managed: Vec<(usize, u64)> = Vec::new();
            for _ in 0..1 + stream.below(6) {
                let device = stream.below(self.models.len() as u64) as usize;
                let Model { first, layout: ZoneLayout { zones, size, .. }, .. } =
                    self.models[device];
                let reach = if stream.chance(0.8) { zones.min(7) } else { zones };
                let zone = stream.below(reach);
                if managed.contains(&(device, zone)) {
                    continue;
                }
                managed.push((device, zone));
                let mut request = self.draw(&mut stream, (device, zone));
                // The last zone may end with the device.
                let end = first + zones * size;
                request.sectors = request.sectors.min((end - request.lba.0) as u32);
                requests.push(request);
            }
            let checked = match stream.below(50) {
                0 => self.cut_power(),
                1 => {
                    let after = SimDuration::from_ns(stream.below(3_000_000));
                    self.cut_power_during(&requests, after)
                }
                _ => self.serve(&requests),
            };
            let checked = checked.and_then(|()| match stream.below(100) {
                0 => self.read_back(),
                _ => Ok(()),
            });
            checked.map_err(|error| format!("seed {seed}, batch {batch}: {error}"))?;
        }
        self.read_back().map_err(|error| format!("seed {seed}: {error}"))
    }

    /// Brings zone 0, which is empty, into `state`, then serves `action`, or a write without one.
    /// The state has to become that of the specification's figure.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check_transition(
        &mut self,
        state: ZoneState,
        action: Option<ZoneAction>,
    ) -> Result<(), Disagreement> {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen};
        let ZoneLayout { size, page, .. } = self.layout();
        let manage = |action| Request::new(Op::Zone(action), Lba(0), size as u32);
        let write = Request::new(Op::Write, Lba(0), page as u32);
        let way: &[Request] = match state {
            Empty | ZoneState::Offline => &[],
            ImplicitlyOpen => &[write],
            ExplicitlyOpen => &[manage(ZoneAction::Open)],
            Closed => &[write, manage(ZoneAction::Close)],
            Full => &[write, manage(ZoneAction::Finish)],
        };
        for request in way {
            self.serve(&[*request])?;
        }
        let written = self.models[0].zones[0].written;
        let after = match (state, action) {
            (Empty | ImplicitlyOpen | ExplicitlyOpen | Closed, Some(ZoneAction::Open)) => {
                ExplicitlyOpen
            }
            (ImplicitlyOpen | ExplicitlyOpen | Closed, Some(ZoneAction::Close)) => Closed,
            (_, Some(ZoneAction::Finish)) => Full,
            (_, Some(ZoneAction::Reset)) => Empty,
            (Empty | Closed, None) => ImplicitlyOpen,
            // A refused request, or a write of an open zone.
            (state, _) => state,
        };
        let request = match action {
            Some(action) => manage(action),
            None => Request { lba: Lba(written), ..write },
        };
        self.serve(&[request])?;
        let found = self.models[0].zones[0].state;
        match found == after {
            true => Ok(()),
            false => Err(format!("{action:?} of {state:?}: {found:?}, not {after:?}")),
        }
    }
}
