//! How busy the dies and channels of flash devices were, and what they did while one of the
//! slowest requests waited.

use crate::busy_map::BusyMaps;
use crate::pictures::{Activity, ActivityRow, BusyMap};
use crate::results::{Busy, Utilisation, ratio};
use hybridsim_engine::{CommonEvent, ComponentInfo, EventRecord, EventSink, Op};
use hybridsim_flash::{Cause, FlashAct, FlashBusy, FlashUnit};
use std::collections::BTreeMap;

const CAUSES: usize = Cause::ALL.len();
/// Busy intervals kept per device in case a completing request is a slow one.
const RECENT_MAX: usize = 4096;
/// Capacity of the list of them; the oldest are dropped in batches.
const ROOM: usize = 4 * RECENT_MAX;
/// A request is drawn when it is this much slower than the last one drawn: 1 in 64. So a run whose
/// latencies keep growing is not copied each time.
const SLOWER: u32 = 6;

/// Activity of a unit, for a picture: begin, length, and kind of each piece.
type Strip = Vec<(u64, u64, usize)>;

/// Something a unit did. Ordered by when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    end: u64,
    begin: u64,
    unit: FlashUnit,
    act: FlashAct,
    cause: Cause,
}

impl Piece {
    /// The part of it between two instants.
    #[inline]
    fn within(&self, from: u64, to: u64) -> u64 {
        self.end.min(to).saturating_sub(self.begin.max(from))
    }
}

/// Busy time of a unit in the measured window, by cause.
type Unit = [u64; CAUSES];

/// The sums over the intervals of one device.
struct Count<'a> {
    maps: &'a mut BusyMaps,
    node: usize,
    /// The measured window begins here.
    from: u64,
    /// Nothing later counts.
    now: u64,
}

#[derive(Clone, Debug, Default)]
struct Device {
    channels: Vec<Unit>,
    dies: Vec<Unit>,
    /// The intervals that end last, and others until they are dropped; some timing models report
    /// them long before they begin. None is counted yet.
    recent: Vec<Piece>,
    /// Dropped before they ended, and not counted yet: the run may end before they do.
    open: Vec<Piece>,
    /// Number of open intervals that were left when they were last counted.
    open_left: usize,
    /// All intervals that ended after this are still in `recent`.
    known_from: u64,
}

impl Device {
    #[inline]
    fn count(&mut self, piece: &Piece, count: &mut Count<'_>) {
        let (units, number) = match piece.unit {
            FlashUnit::Channel(number) => (&mut self.channels, number),
            FlashUnit::Die(number) => (&mut self.dies, number),
        };
        let at = usize::from(number);
        if at >= units.len() {
            units.resize(at + 1, Unit::default());
        }
        units[at][piece.cause as usize] += piece.within(count.from, count.now);
        count.maps.add(count.node, piece.unit, piece.begin, piece.end.min(count.now));
    }

    /// Counts an interval that is not among those that end last.
    #[inline]
    fn drop_piece(&mut self, piece: &Piece, count: &mut Count<'_>) {
        self.known_from = self.known_from.max(piece.end);
        if piece.end <= count.now {
            self.count(piece, count);
        } else {
            self.open.push(*piece);
        }
    }

    /// Makes room: drops intervals that end before the [`RECENT_MAX`] reported last do.
    #[cold]
    fn make_room(&mut self, count: &mut Count<'_>) {
        // A backlog is not searched again before it has doubled.
        if self.open.len() >= 2 * self.open_left {
            self.count_open(count, false);
            self.open_left = self.open.len();
        }
        let mut recent = std::mem::take(&mut self.recent);
        let older = recent.len().saturating_sub(RECENT_MAX);
        let first_end = recent[older..].iter().map(|piece| piece.end).min().unwrap_or(0);
        let mut kept = 0;
        for at in 0..older {
            let piece = recent[at];
            if piece.end < first_end {
                self.drop_piece(&piece, count);
            } else {
                recent[kept] = piece;
                kept += 1;
            }
        }
        recent.drain(kept..older);
        self.recent = recent;
        if self.recent.len() > ROOM / 2 {
            self.drop_oldest(count);
        }
    }

    /// Keeps the [`RECENT_MAX`] intervals that end last.
    #[cold]
    fn drop_oldest(&mut self, count: &mut Count<'_>) {
        let Some(excess) = self.recent.len().checked_sub(RECENT_MAX + 1) else { return };
        let mut recent = std::mem::take(&mut self.recent);
        recent.select_nth_unstable(excess);
        recent.drain(..=excess).for_each(|piece| self.drop_piece(&piece, count));
        self.recent = recent;
    }

    /// Counts the dropped intervals that are over, or all of them if the run `is_over`.
    fn count_open(&mut self, count: &mut Count<'_>, is_over: bool) {
        let mut open = std::mem::take(&mut self.open);
        open.retain(|piece| {
            let counts = is_over || piece.end <= count.now;
            if counts {
                self.count(piece, count);
            }
            !counts
        });
        self.open = open;
    }

    /// Counts every interval of a run that ended at `count.now`.
    fn count_all(&mut self, count: &mut Count<'_>) {
        self.count_open(count, true);
        let recent = std::mem::take(&mut self.recent);
        recent.iter().for_each(|piece| self.count(piece, count));
    }
}

/// Activity of the units while a request waited.
#[derive(Clone, Debug)]
struct Slow {
    op: Op,
    latency_ns: u64,
    from: u64,
    to: u64,
    pieces: Vec<(usize, Piece)>,
}

/// The fold.
#[derive(Clone, Debug, Default)]
pub struct BusyFold {
    from: u64,
    devices: Vec<Device>,
    maps: BusyMaps,
    slow: Option<Slow>,
}

impl BusyFold {
    /// Starts the measured window at `from`.
    pub fn measure_from(&mut self, from: u64) {
        self.from = from;
        self.slow = None;
        let units = |device: &'_ mut Device| {
            let Device { channels, dies, .. } = device;
            channels.iter_mut().chain(dies).for_each(|unit| *unit = Unit::default());
        };
        self.devices.iter_mut().for_each(units);
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, record: &EventRecord) {
        if record.is_detail() {
            if let Some(busy) = record.event() {
                self.add_busy(record, busy);
            }
            return;
        }
        if let Some(CommonEvent::Completed { op, latency, .. }) = record.event() {
            let latency_ns = latency.as_ns();
            let drawn = self.slow.as_ref().map_or(0, |slow| slow.latency_ns);
            if latency_ns > drawn + (drawn >> SLOWER) {
                self.remember(op, latency_ns, record.time.as_ns());
            }
        }
    }

    #[inline(always)]
    fn add_busy(&mut self, record: &EventRecord, busy: FlashBusy) {
        let FlashBusy { unit, act, cause, begin, end } = busy;
        let (begin, end) = (begin.as_ns(), end.as_ns());
        let piece = Piece { unit, act, cause, begin, end };
        let (node, now) = (usize::from(record.component().0), record.time.as_ns());
        if node >= self.devices.len() {
            self.devices.resize_with(node + 1, Device::default);
        }
        let device = &mut self.devices[node];
        if device.recent.len() >= ROOM {
            let Self { maps, from, .. } = self;
            device.make_room(&mut Count { maps, node, from: *from, now });
        }
        device.recent.push(piece);
        // Some timing models report afterwards.
        if let Some(slow) = &mut self.slow
            && piece.within(slow.from, slow.to) > 0
            && slow.pieces.len() < 2 * RECENT_MAX
        {
            slow.pieces.push((node, piece));
        }
    }

    #[cold]
    fn remember(&mut self, op: Op, latency_ns: u64, to: u64) {
        let Self { maps, from, .. } = self;
        for (node, device) in self.devices.iter_mut().enumerate() {
            device.drop_oldest(&mut Count { maps, node, from: *from, now: to });
        }
        let known = self.devices.iter().map(|device| device.known_from);
        let from = known.max().unwrap_or(to).max(to.saturating_sub(latency_ns)).max(self.from);
        if from >= to {
            return;
        }
        let of = |(node, device): (usize, &Device)| {
            let seen = device.recent.iter().filter(|piece| piece.within(from, to) > 0);
            seen.map(|piece| (node, *piece)).collect::<Vec<_>>()
        };
        let pieces = self.devices.iter().enumerate().flat_map(of).collect();
        self.slow = Some(Slow { op, latency_ns, from, to, pieces });
    }

    /// Utilisation up to `end` by component; `None` for components without busy intervals.
    pub fn utilisation(
        &mut self,
        nodes: &[(String, ComponentInfo)],
        end: u64,
    ) -> Vec<Option<Utilisation>> {
        let (from, maps) = (self.from, &mut self.maps);
        let mut shares = Vec::new();
        for (node, (device, (_, info))) in self.devices.iter_mut().zip(nodes).enumerate() {
            device.count_all(&mut Count { maps, node, from, now: end });
            let reported = !device.dies.is_empty() || !device.channels.is_empty();
            let of = |units: &mut Vec<Unit>, name: &str| {
                let count = info.constants.iter().find(|constant| constant.0 == name);
                let count = count.map_or(0, |constant| constant.1.min(65_536.0) as usize);
                units.resize(units.len().max(count), Unit::default());
                units.iter().map(|unit| share(unit, from, end)).collect()
            };
            shares.push(reported.then(|| Utilisation {
                channels: of(&mut device.channels, "channels"),
                dies: of(&mut device.dies, "dies"),
            }));
        }
        shares
    }

    /// Utilisation of all units over time; [`BusyFold::utilisation`] comes first.
    pub fn maps(&mut self, nodes: &[(String, ComponentInfo)], end: u64) -> Vec<BusyMap> {
        let devices = self.devices.iter().zip(nodes).enumerate();
        let of = |(node, (device, (path, _))): (usize, (&Device, &(String, ComponentInfo)))| {
            self.maps.of(node, path, [device.channels.len(), device.dies.len()], end)
        };
        devices.flat_map(of).collect()
    }

    /// Activity of all units while one of the slowest requests waited; `None` if not recorded.
    pub fn activity(self, nodes: &[(String, ComponentInfo)]) -> Option<Activity> {
        let Slow { op, latency_ns, from, to, pieces } = self.slow?;
        let mut rows: BTreeMap<(usize, FlashUnit), Strip> = BTreeMap::new();
        for (node, piece) in pieces {
            let begin = piece.begin.max(from) - from;
            let kind = piece.act as usize * CAUSES + piece.cause as usize;
            let row = rows.entry((node, piece.unit)).or_default();
            row.push((begin, piece.within(from, to), kind));
        }
        let row = |((node, unit), mut pieces): ((usize, FlashUnit), Strip)| {
            pieces.sort_unstable();
            let unit = match unit {
                FlashUnit::Channel(number) => format!("channel {number}"),
                FlashUnit::Die(number) => format!("die {number}"),
            };
            let path = nodes.get(node).map_or_else(String::new, |node| node.0.clone());
            ActivityRow { path, unit, pieces }
        };
        let rows: Vec<ActivityRow> = rows.into_iter().map(row).collect();
        (!rows.is_empty()).then(|| Activity {
            op: op.name().to_owned(),
            latency_ns,
            from_ns: from,
            to_ns: to,
            acts: FlashAct::ALL.map(|act| act.name().to_owned()).to_vec(),
            causes: Cause::ALL.map(|cause| cause.name().to_owned()).to_vec(),
            rows,
        })
    }
}

fn share(unit: &Unit, from: u64, end: u64) -> Busy {
    let window = end.saturating_sub(from) as f64;
    let of = |(cause, ns): (Cause, u64)| {
        let share = ratio(ns as f64, window).filter(|_| ns > 0)?;
        Some((cause.name().to_owned(), share))
    };
    let total: u64 = unit.iter().sum();
    Busy {
        busy_fraction: ratio(total as f64, window),
        busy_by_cause: Cause::ALL.into_iter().zip(*unit).filter_map(of).collect(),
    }
}

impl EventSink for BusyFold {
    fn take(&mut self, events: &[EventRecord]) {
        events.iter().for_each(|record| self.add(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ns, record};
    use hybridsim_engine::{Lba, SimTime};

    fn busy(now: u64, unit: FlashUnit, cause: Cause, begin: u64, end: u64) -> EventRecord {
        let (begin, end) = (SimTime::from_ns(begin), SimTime::from_ns(end));
        let busy = FlashBusy { unit, act: FlashAct::Program, cause, begin, end };
        record(now, 1, busy)
    }

    fn done(now: u64, latency: u64) -> EventRecord {
        let (op, lba) = (Op::Write, Lba(0));
        record(now, 0, CommonEvent::Completed { op, sectors: 8, lba, latency: ns(latency) })
    }

    fn nodes() -> Vec<(String, ComponentInfo)> {
        let constants = vec![("channels", 1.0), ("dies", 3.0)];
        let ssd = ComponentInfo { constants, ..ComponentInfo::default() };
        vec![("host".into(), ComponentInfo::default()), ("host/ssd".into(), ssd)]
    }

    #[test]
    fn shares_are_of_the_measured_window_alone() {
        let die = FlashUnit::Die(1);
        let mut fold = BusyFold::default();
        // Before the window, across its begin, inside, across its end, after it.
        fold.take(&[busy(10, die, Cause::Host, 10, 30), busy(20, die, Cause::Gc, 90, 120)]);
        fold.measure_from(100);
        let bus = FlashUnit::Channel(0);
        fold.take(&[busy(150, die, Cause::Gc, 150, 160), busy(150, bus, Cause::Host, 150, 200)]);
        for at in 0..1000 {
            fold.take(&[busy(160, FlashUnit::Die(0), Cause::Wear, 160, 160 + at % 2)]);
        }
        fold.take(&[busy(190, die, Cause::Host, 195, 230), busy(190, die, Cause::Host, 250, 260)]);
        let all = fold.utilisation(&nodes(), 200);
        assert_eq!(all[0], None, "the host has no dies");
        let ssd = all[1].as_ref().expect("it was busy");
        let share = |unit: &Busy| (unit.busy_fraction, unit.busy_by_cause.clone());
        let shares = |of: &[(&str, f64)]| of.iter().map(|&(n, v)| (n.to_owned(), v)).collect();
        assert_eq!(share(&ssd.channels[0]), (Some(0.5), shares(&[("host", 0.5)])));
        assert_eq!(share(&ssd.dies[0]), (Some(5.0), shares(&[("wear", 5.0)])));
        assert_eq!(share(&ssd.dies[1]), (Some(0.35), shares(&[("gc", 0.3), ("host", 0.05)])));
        assert_eq!(share(&ssd.dies[2]), (Some(0.0), shares(&[])), "a die that did nothing");
    }

    #[test]
    fn a_slow_request_is_remembered_with_what_went_on_meanwhile() {
        let die = FlashUnit::Die(0);
        let mut fold = BusyFold::default();
        fold.take(&[busy(0, die, Cause::Host, 0, 50), done(50, 50)]);
        fold.take(&[busy(60, die, Cause::Gc, 60, 300), busy(60, die, Cause::Host, 300, 400)]);
        fold.take(&[done(400, 310), done(405, 312)]);
        // A clock that only now knows what its other die did.
        fold.take(&[busy(410, FlashUnit::Die(2), Cause::Host, 200, 450), done(500, 5)]);
        let activity = fold.activity(&nodes()).expect("one was slow");
        assert_eq!((activity.from_ns, activity.to_ns, activity.latency_ns), (90, 400, 310));
        let [first, second] = &activity.rows[..] else { panic!("{:?}", activity.rows) };
        let program = FlashAct::Program as usize * CAUSES;
        assert_eq!((&*first.path, &*first.unit), ("host/ssd", "die 0"));
        assert_eq!(first.pieces, [(0, 210, program + 1), (210, 100, program)]);
        assert_eq!((&*second.unit, &second.pieces[..]), ("die 2", &[(110, 200, program)][..]));
    }

    #[test]
    fn a_request_that_outlasts_what_is_remembered_is_drawn_from_there_on() {
        let mut fold = BusyFold::default();
        for at in 0..RECENT_MAX as u64 + 100 {
            fold.take(&[busy(at * 10, FlashUnit::Die(0), Cause::Host, at * 10, at * 10 + 10)]);
        }
        // Reported long before it begins: the intervals that end last are kept.
        fold.take(&[busy(7, FlashUnit::Die(1), Cause::Gc, 500, 600)]);
        let end = (RECENT_MAX as u64 + 100) * 10;
        fold.take(&[done(end, end)]);
        let activity = fold.activity(&nodes()).expect("its end is known");
        assert_eq!((activity.from_ns, activity.rows[0].pieces.len()), (1000, RECENT_MAX));
    }
}
