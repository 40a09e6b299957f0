//! Scaling of addresses and sizes, for traces in other units or with other offsets.

use crate::block_events::BlockEvents;
use crate::record::{Record, RecordReader, SourceLocation, TraceError, TraceResult, Warning};
use hybridsim_config::param::{Kind, Problem};
use hybridsim_engine::{Lba, Op, SECTOR_BYTES};
use std::path::Path;

hybridsim_config::params! {
    /// Parameters of the scaling.
    pub struct Parameters {
        address_unit: u64 = Kind::Bytes, default "\"512B\"",
            "Bytes of one address unit of the trace: a multiple or a divisor of 512 bytes \
             (DiskSim's locScale). Sizes are unchanged.";
        size_scale: u64 = Kind::Count { min: 1, max: 1 << 20 }, default "1",
            "Factor on request sizes (DiskSim's sizeScale).";
        address_offset: u64 = Kind::Bytes, default "\"0B\"",
            "Added to every address within its volume (DiskSim's offset).";
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rescale {
    /// Sectors per address unit, and address units per sector.
    sectors_per_unit: u64,
    units_per_sector: u64,
    size_scale: u64,
    offset: u64,
}

impl Rescale {
    const NONE: Self = Self { sectors_per_unit: 1, units_per_sector: 1, size_scale: 1, offset: 0 };

    pub fn new(params: &Parameters, problems: &mut Vec<Problem>) -> Self {
        let unit = params.address_unit;
        let fits =
            unit > 0 && (unit.is_multiple_of(SECTOR_BYTES) || SECTOR_BYTES.is_multiple_of(unit));
        if !fits {
            let message = "must be a multiple or a divisor of 512 bytes";
            problems.push(Problem::new("address_unit", message));
            return Self::NONE;
        }
        let offset = params.address_offset;
        if !offset.is_multiple_of(SECTOR_BYTES) {
            problems.push(Problem::new("address_offset", "must be a multiple of 512 bytes"));
        }
        Self {
            sectors_per_unit: (unit / SECTOR_BYTES).max(1),
            units_per_sector: (SECTOR_BYTES / unit).max(1),
            size_scale: params.size_scale,
            offset: offset / SECTOR_BYTES,
        }
    }

    /// Applies the scaling to all records of `reader`.
    pub fn over(self, reader: Box<dyn RecordReader>) -> Box<dyn RecordReader> {
        if self == Self::NONE {
            return reader;
        }
        Box::new(Rescaled { rescale: self, reader, number: 0 })
    }

    fn apply(self, record: &mut Record) -> Result<(), String> {
        let request = &mut record.request;
        if request.op == Op::Flush {
            return Ok(());
        }
        if !request.lba.0.is_multiple_of(self.units_per_sector) {
            return Err(format!(
                "address {} is not a multiple of {}, as `address_unit` requires",
                request.lba.0, self.units_per_sector
            ));
        }
        let moved = (request.lba.0 / self.units_per_sector).checked_mul(self.sectors_per_unit);
        let lba = moved.and_then(|lba| lba.checked_add(self.offset));
        let sectors = u64::from(request.sectors) * self.size_scale;
        match (lba, u32::try_from(sectors)) {
            (Some(lba), Ok(sectors)) if lba.checked_add(u64::from(sectors)).is_some() => {
                (request.lba, request.sectors) = (Lba(lba), sectors);
                Ok(())
            }
            _ => Err(format!(
                "address {} or size {} is too large after scaling",
                request.lba.0, request.sectors
            )),
        }
    }
}

struct Rescaled {
    rescale: Rescale,
    reader: Box<dyn RecordReader>,
    number: u64,
}

impl RecordReader for Rescaled {
    fn next(&mut self) -> TraceResult<Option<Record>> {
        let Some(mut record) = self.reader.next()? else { return Ok(None) };
        self.number += 1;
        self.rescale.apply(&mut record).map_err(|message| {
            TraceError::new(Path::new("the trace"), SourceLocation::Record(self.number), message)
        })?;
        Ok(Some(record))
    }

    fn warnings(&self) -> &[Warning] {
        self.reader.warnings()
    }

    fn progress(&self) -> Option<f64> {
        self.reader.progress()
    }

    fn has_times(&self) -> bool {
        self.reader.has_times()
    }

    fn block_events(&self) -> Option<BlockEvents> {
        self.reader.block_events()
    }

    fn volumes(&self) -> &[String] {
        self.reader.volumes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_config::param::{Settings, Value};
    use hybridsim_engine::Request;

    fn rescale(unit: u64, sizes: u64, offset: u64) -> Result<Rescale, String> {
        let settings = Settings::default()
            .and("address_unit", Value::Bytes(unit))
            .and("size_scale", Value::Count(sizes))
            .and("address_offset", Value::Bytes(offset));
        let mut problems = Vec::new();
        let read = Rescale::new(&Parameters::from_settings(&settings), &mut problems);
        problems.first().map_or(Ok(read), |problem| Err(problem.to_string()))
    }

    #[test]
    fn addresses_and_sizes_are_multiplied() {
        let check = |unit, sizes, offset, (lba, sectors), expect: Result<(u64, u32), &str>| {
            let request = Request::new(Op::Read, Lba(lba), sectors);
            let at = hybridsim_engine::SimTime::ZERO;
            let mut record = Record { at, request, response: None };
            let done = rescale(unit, sizes, offset).expect("fine").apply(&mut record);
            let done = done.map(|()| (record.request.lba.0, record.request.sectors));
            match (done, expect) {
                (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
                (done, expect) => assert_eq!(done.ok(), expect.ok(), "{unit} {sizes} {offset}"),
            }
        };
        check(512, 1, 0, (7, 3), Ok((7, 3)));
        check(1024, 1, 0, (7, 3), Ok((14, 3)));
        check(256, 1, 0, (14, 3), Ok((7, 3)));
        check(256, 1, 0, (7, 3), Err("not a multiple of 2"));
        check(512, 8, 5120, (7, 3), Ok((17, 24)));
        check(512, 1 << 20, 0, (7, 1 << 20), Err("too large"));
        check(1 << 40, 1, 0, (u64::MAX / 2, 1), Err("too large"));
        assert!(rescale(300, 1, 0).expect_err("odd").contains("multiple or a divisor"));
        assert!(rescale(0, 1, 0).expect_err("nothing").contains("multiple or a divisor"));
        assert!(rescale(512, 1, 100).expect_err("odd").contains("multiple of 512"));
    }
}
