//! The parameters of a bus.

use super::{Arbitration, Bus, Medium, Shared, Tenured, Times};
use crate::targets::Targets;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Component, SECTOR_BYTES, SimDuration};
use slab::Slab;

/// Devices on a bus at most (konanki, section 2.3: as in DiskSim).
const DEVICES_MAX: usize = 15;
/// No phase may be longer: such a value is a slip of the unit.
const DURATION_MAX: SimDuration = SimDuration::from_s(60);

const fn time(name: &'static str, help: &'static str) -> Param {
    Param::with(name, Kind::Duration, "\"0us\"", help)
}

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "bus",
        summary: "A bus devices and controllers share: arbitration, commands, data, messages",
        origin: "vocabulary of DiskSim 4.0 (disksim_bus); phases as in SCSI-2, ANSI X3.131-1994",
        params: &[
            Param::required(
                "devices",
                Kind::Components,
                "The devices and controllers on it, at most 15; the one listed first has the \
                 highest priority",
            ),
            Param::with(
                "type",
                Kind::Choice(&["tenured", "interleaved"]),
                "\"tenured\"",
                "tenured: one owner at a time; interleaved: transfers share it evenly",
            ),
            Param::with(
                "arbitration",
                Kind::Choice(&["slot-priority", "fcfs"]),
                "\"slot-priority\"",
                "Who gets a tenured bus next: the device listed first, or who asked first",
            )
            .needs(&[Needs::Is("type", &["tenured"])]),
            time("arbitration_time", "Time to win the bus, each time"),
            time("command_time", "Time a command keeps the bus"),
            time("message_time", "Time the message at the end keeps the bus"),
            time("read_block_time", "Time a sector of 512 bytes takes towards the host"),
            time("write_block_time", "Time a sector of 512 bytes takes towards the device"),
            Param::optional(
                "rate",
                Kind::Rate,
                "Instead of both block times: the rate of the bus in either direction",
            ),
            time(
                "block_time_min",
                "The slowest block time of the controllers and devices at its ends; a sector takes \
                 no less",
            ),
            Param::with(
                "overlap",
                Kind::Flag,
                "true",
                "Whether data cross while the medium is read, or while the arm moves to write",
            ),
            Param::with(
                "disconnect",
                Kind::Flag,
                "true",
                "Whether the bus is free while the device works; a tenured bus only",
            ),
        ],
    },
    build,
};

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let settings = input.settings;
    let mut problems = Vec::new();
    let listed = settings.texts("devices").len();
    if listed > DEVICES_MAX {
        let message = format!(
            "{listed} devices; a bus takes at most {DEVICES_MAX}: put the others on a bus of their \
             own"
        );
        problems.push(Problem::new("devices", message));
    }
    let names = [
        "arbitration_time",
        "command_time",
        "message_time",
        "read_block_time",
        "write_block_time",
        "block_time_min",
    ];
    for name in names {
        if settings.duration(name) > DURATION_MAX {
            let message = format!("{} is longer than a minute", settings.duration(name));
            problems.push(Problem::new(name, message));
        }
    }
    let blocks = [settings.duration("read_block_time"), settings.duration("write_block_time")];
    let [read_block, write_block] = match settings.rate_opt("rate") {
        None => blocks,
        Some(rate) => {
            if rate == 0 {
                problems.push(Problem::new("rate", "must be more than nothing"));
            }
            if blocks.iter().any(|time| !time.is_zero()) {
                let message = "says the same as the block times; leave one of them out";
                problems.push(Problem::new("rate", message));
            }
            [SimDuration::transfer(SECTOR_BYTES, rate); 2]
        }
    };
    let shared = settings.text("type") == "interleaved";
    let disconnect = settings.flag("disconnect");
    if shared && !disconnect {
        let message =
            "an interleaved bus has no owner that could hold it; use `type = \"tenured\"`";
        problems.push(Problem::new("disconnect", message));
    }
    let targets =
        Targets::new(input.children, "devices").map_err(|more| problems.extend(more)).ok();
    let (Some(targets), true) = (targets, problems.is_empty()) else { return Err(problems) };
    let least = settings.duration("block_time_min");
    let by_slot = settings.text("arbitration") == "slot-priority";
    Ok(Box::new(Bus {
        targets,
        times: Times {
            arbitration: settings.duration("arbitration_time"),
            command: settings.duration("command_time"),
            message: settings.duration("message_time"),
            read_block: read_block.max(least),
            write_block: write_block.max(least),
        },
        overlap: settings.flag("overlap"),
        disconnect,
        medium: if shared {
            Medium::Shared(Shared::default())
        } else {
            Medium::Tenured(Tenured::new(if by_slot {
                Arbitration::Slot
            } else {
                Arbitration::Arrival
            }))
        },
        ops: Slab::new(),
        finished: Vec::new(),
    }))
}
