//! The parameters of a bus.

use super::{Arbitration, Bus, Medium, Shared, Tenured, Times};
use crate::targets::Targets;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Component, SECTOR_BYTES, SimDuration};
use slab::Slab;

/// Devices on a bus at most (konanki, section 2.3: as in DiskSim).
const DEVICES_MAX: usize = 15;
/// No phase may be longer: such a value is a slip of the unit.
const DURATION_MAX: SimDuration = SimDuration::from_s(60);

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "bus",
        summary: "A bus devices and controllers share: arbitration, commands, data, messages",
        origin: "vocabulary of DiskSim 4.0 (disksim_bus); phases as in SCSI-2, ANSI X3.131-1994",
        params: Parameters::PARAMS,
    },
    build,
);

hybridsim_config::choices! {
    enum BusType { Tenured = "tenured", Interleaved = "interleaved" }
}

hybridsim_config::params! {
    struct Parameters {
        devices: Vec<String> = Kind::Components, required,
            "The devices and controllers on it, at most 15; the one listed first has the highest \
             priority";
        r#type: BusType = Kind::Choice(BusType::NAMES), default "\"tenured\"",
            "tenured: one owner at a time; interleaved: transfers share it evenly";
        arbitration: Arbitration = Kind::Choice(Arbitration::NAMES), default "\"slot-priority\""
            needs &[Needs::Is("type", &["tenured"])],
            "Who gets a tenured bus next: the device listed first, or who asked first";
        arbitration_time: SimDuration = Kind::Duration, default "\"0us\"",
            "Time to win the bus, each time";
        command_time: SimDuration = Kind::Duration, default "\"0us\"",
            "Time a command keeps the bus";
        message_time: SimDuration = Kind::Duration, default "\"0us\"",
            "Time the message at the end keeps the bus";
        read_block_time: SimDuration = Kind::Duration, default "\"0us\"",
            "Time a sector of 512 bytes takes towards the host";
        write_block_time: SimDuration = Kind::Duration, default "\"0us\"",
            "Time a sector of 512 bytes takes towards the device";
        rate: Option<u64> = Kind::Rate, optional,
            "Instead of both block times: the rate of the bus in either direction";
        block_time_min: SimDuration = Kind::Duration, default "\"0us\"",
            "The slowest block time of the controllers and devices at its ends; a sector takes no \
             less";
        overlap: bool = Kind::Flag, default "true"
            needs &[Needs::Any(&[
                Needs::given("rate"),
                Needs::above_zero("read_block_time"),
                Needs::above_zero("write_block_time"),
                Needs::above_zero("block_time_min"),
            ])],
            "Whether data cross while the medium is read, or while the arm moves to write";
        disconnect: bool = Kind::Flag, default "true",
            "Whether the bus is free while the device works; a tenured bus only";
    }
}

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let listed = params.devices.len();
    if listed > DEVICES_MAX {
        let message = format!(
            "{listed} devices; a bus takes at most {DEVICES_MAX}: put the others on a bus of their \
             own"
        );
        problems.push(Problem::new("devices", message));
    }
    for (name, time) in [
        ("arbitration_time", params.arbitration_time),
        ("command_time", params.command_time),
        ("message_time", params.message_time),
        ("read_block_time", params.read_block_time),
        ("write_block_time", params.write_block_time),
        ("block_time_min", params.block_time_min),
    ] {
        if time > DURATION_MAX {
            problems.push(Problem::new(name, format!("{time} is longer than a minute")));
        }
    }
    let blocks = [params.read_block_time, params.write_block_time];
    let [read_block, write_block] = match params.rate {
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
    let (shared, disconnect) = (params.r#type == BusType::Interleaved, params.disconnect);
    if shared && !disconnect {
        let message =
            "an interleaved bus has no owner that could hold it; use `type = \"tenured\"`";
        problems.push(Problem::new("disconnect", message));
    }
    let targets =
        Targets::new(input.children, "devices").map_err(|more| problems.extend(more)).ok();
    let (Some(targets), true) = (targets, problems.is_empty()) else { return Err(problems) };
    let least = params.block_time_min;
    Ok(Box::new(Bus {
        targets,
        times: Times {
            arbitration: params.arbitration_time,
            command: params.command_time,
            message: params.message_time,
            read_block: read_block.max(least),
            write_block: write_block.max(least),
        },
        overlap: params.overlap,
        disconnect,
        medium: if shared {
            Medium::Shared(Shared::default())
        } else {
            Medium::Tenured(Tenured::new(params.arbitration))
        },
        ops: Slab::new(),
        finished: Vec::new(),
    }))
}
