//! The traces of the ARC paper: `start_block number_of_blocks ignored request_number`.

use super::lines::{Blanks, LineError, LineParser, ParsedLine, open_lines, sniff_lines};
use super::normalise::RawRequest;
use super::{Confidence, FormatEntry};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::{Op, SECTOR_BYTES};

hybridsim_config::params! {
    struct Parameters {
        block_bytes: u64 = Kind::Bytes, default "\"512B\"",
            "Size of a block: a multiple of 512 bytes, up to 1 GiB.";
    }
}

pub(super) const ENTRY: FormatEntry = FormatEntry {
    description: Description {
        name: "arc",
        summary: "ARC .lis: first block, blocks. No times, reads only: for closed-loop replay.",
        origin: "Megiddo and Modha, ARC (FAST 2003)",
        params: Parameters::PARAMS,
    },
    sniff: |head| sniff_lines(head, &mut Arc { block_sectors: 1 }, Confidence::Certain),
    open: |input| {
        let block_sectors = Parameters::from_settings(&input.settings).block_bytes / SECTOR_BYTES;
        open_lines(input, Arc { block_sectors })
    },
    same_as: &[],
    sample: b"2300 8 0 0\n18400 64 0 1\n2160 8 0 2\n42000 8 50 300\n",
};

struct Arc {
    block_sectors: u64,
}

impl LineParser for Arc {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, LineError> {
        let mut fields = Blanks::new(line);
        let start = fields.whole("the first block")?.saturating_mul(self.block_sectors);
        let sectors = fields.whole("the number of blocks")?.saturating_mul(self.block_sectors);
        fields.whole("the third column")?;
        fields.whole("the request number")?;
        fields.end()?;
        Ok(ParsedLine::Request(RawRequest::sectors(0, 0, Op::Read, start, sectors)))
    }

    fn has_times(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::lines::check_line;

    #[test]
    fn lines() {
        let check = |block_sectors, line, expect: &str| {
            check_line(&mut Arc { block_sectors }, line, expect);
        };
        check(1, "2300 8 0 0", "0 ns, volume 0: read 2300+8");
        check(8, "5 2 0 1", "0 ns, volume 0: read 40+16");
        check(1, "2300 8 0", "the request number is missing");
    }
}
