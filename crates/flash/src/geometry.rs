//! Device geometry: channels, dies, planes, blocks, pages, and their numbering.
//!
//! Plane `p` of the device holds blocks `p * blocks_per_plane ..`, and a block holds pages `block *
//! pages_per_block ..`. Consecutive planes lie on different channels first, then on different dies,
//! then on different planes of one die, so an FTL that takes planes round-robin stripes over all
//! parallel units.

use crate::timing::{ONE_SHOT, TIMES};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Problem};
use hybridsim_engine::SECTOR_BYTES;
use serde::{Deserialize, Serialize};

/// A physical page number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ppn(pub u32);

/// A logical page number; logical pages are what an FTL maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lpn(pub u32);

/// A block of the device, the unit of an erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockId(pub u32);

/// A die of the device, which executes one command at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DieId(pub u16);

/// A plane of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaneId(pub u32);

impl Ppn {
    /// No page.
    pub const NONE: Self = Self(u32::MAX);
}

impl Lpn {
    /// No page.
    pub const NONE: Self = Self(u32::MAX);
}

impl BlockId {
    /// No block.
    pub const NONE: Self = Self(u32::MAX);
}

/// The physical address of a page by level (flashsim, section 3.2: the address class). Each number
/// counts within the level above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhysicalAddress {
    pub channel: u32,
    pub die: u32,
    pub plane: u32,
    pub block: u32,
    pub page: u32,
}

/// Exact division of 32-bit numbers by an invariant divisor, with one multiplication.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Divisor {
    by: u32,
    /// ceil(2^64 / by); exact for every 32-bit dividend (Lemire, Kaser, Kurz 2019).
    factor: u64,
}

impl Divisor {
    const fn new(by: u32) -> Self {
        Self { by, factor: (u64::MAX / by as u64).wrapping_add(1) }
    }

    #[inline]
    const fn divide(self, value: u32) -> u32 {
        if self.by == 1 {
            return value;
        }
        ((self.factor as u128 * value as u128) >> 64) as u32
    }
}

/// The geometry of a flash device.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Geometry {
    channels: u32,
    planes_per_die: u32,
    blocks_per_plane: u32,
    pages_per_block: u32,
    page_bytes: u32,
    spare_bytes: u32,
    read_pages: u32,
    program_pages: u32,
    /// Pages in a page of the chip, where the mapping unit is smaller.
    units_per_page: u32,
    /// Pages of the chip in a page, which lie in as many planes.
    planes_per_page: u32,
    /// Products of the numbers above, needed at every operation.
    dies: u32,
    planes: u32,
    blocks: u32,
    pages: u32,
    by_pages_per_block: Divisor,
    by_blocks_per_plane: Divisor,
    by_channels: Divisor,
    by_dies: Divisor,
}

/// The parameters of a [`Geometry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub channels: u64,
    pub dies_per_channel: u64,
    pub planes_per_die: u64,
    pub blocks_per_plane: u64,
    pub pages_per_block: u64,
    /// Data bytes of a page, a multiple of 512.
    pub page_bytes: u64,
    /// Spare (out-of-band) bytes of a page; they are transferred with it but hold no user data.
    pub spare_bytes: u64,
}

const COUNT: Kind = Kind::Count { min: 1, max: u32::MAX as u64 };
const PAGES: Kind = Kind::Count { min: 1, max: 1024 };

hybridsim_config::params! {
    /// Parameters of the flash array.
    pub struct GeometryParams {
        channels: u64 = Kind::Count { min: 1, max: 4096 }, default "8", "Flash channels.";
        dies_per_channel: u64 = Kind::Count { min: 1, max: 4096 }, default "4",
            "Dies per channel; a die executes one command at a time.";
        planes_per_die: u64 = Kind::Count { min: 1, max: 64 }, default "2", "Planes per die.";
        blocks_per_plane: u64 = COUNT, required, "Erase blocks per plane, spare blocks included.";
        pages_per_block: u64 = Kind::Count { min: 1, max: 65_536 }, default "256",
            "Pages per block.";
        page_size: u64 = Kind::Bytes, default "4KiB", "Data bytes per page, a multiple of 512.";
        pub map_unit: Option<u64> = Kind::Bytes, optional,
            "Mapping unit (indirection unit, IU) of the drive; `page_size` if absent. A write of a \
             part of it reads the rest. Several units below the page size share a page of the \
             chip, which reads and programs them together; a larger unit lies in the same page of \
             several planes of a die, which work as one, and reads of a part of it transfer whole \
             pages of the chip. Pages in counts and results, and those of the energy of an \
             operation, are then of this unit, and planes and blocks those that work as one. A \
             zoned drive refuses writes of a part of it.";
        spare_size: u64 = Kind::Bytes, default "0B"
            needs &[Needs::Provides("timing", TIMES), Needs::above_zero("channel_rate")],
            "Spare bytes per page, transferred with its data.";
        read_pages: u32 = PAGES, default "1" needs &[Needs::Any(&[
            Needs::Provides("timing", TIMES),
            Needs::Not("errors", &["none"]),
        ])],
            "Consecutive pages of a block that the chip reads in one operation. A chip with pages \
             of 16 KiB behind a map of 4 KiB units reads 4: of the reads of a request, and of \
             copies that follow each other, only the first of each page of the chip takes \
             `read_time`. Each die keeps the page that was read last for a request, and one more \
             for copies; with the timing model `serial` there is one of each for all dies. Counts \
             of reads and `read_energy` are per page of the map.";
        program_pages: u32 = PAGES, default "1" needs &[Needs::Provides("timing", ONE_SHOT)],
            "Consecutive pages of a block that the chip programs in one operation (one-shot \
             program), which begins with the first of them. Needs a write buffer.";
    }
}

impl GeometryParams {
    /// The geometry of the array.
    ///
    /// # Errors
    /// All problems with the parameters.
    pub fn geometry(&self) -> Result<Geometry, Vec<Problem>> {
        self.geometry_without(0)
    }

    /// The geometry without so many blocks of each plane, of which it has more.
    ///
    /// # Errors
    /// All problems with the parameters.
    pub fn geometry_without(&self, blocks: u64) -> Result<Geometry, Vec<Problem>> {
        let Pages { shape, units_per_page, planes_per_page } = self.pages()?;
        let left = shape.blocks_per_plane.saturating_sub(blocks);
        let geometry = Geometry::new(&Shape { blocks_per_plane: left, ..shape })?;
        let keys = [("read_pages", self.read_pages), ("program_pages", self.program_pages)];
        let problems: Vec<_> =
            keys.into_iter().filter_map(|(key, pages)| self.divides_block(key, pages)).collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let geometry = geometry
            .with_chip_pages(self.read_pages * units_per_page, self.program_pages * units_per_page);
        Ok(Geometry { units_per_page, planes_per_page, ..geometry })
    }

    /// The array in pages of the mapping unit.
    fn pages(&self) -> Result<Pages, Vec<Problem>> {
        let chip = Pages { shape: self.shape(), units_per_page: 1, planes_per_page: 1 };
        let Some(unit) = self.map_unit else { return Ok(chip) };
        let problems = chip.shape.problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        chip.of_map_unit(unit).map_err(|message| {
            let help = "change it, page_size or planes_per_die";
            vec![Problem::new("map_unit", format!("{message}; {help}"))]
        })
    }

    const fn shape(&self) -> Shape {
        Shape {
            channels: self.channels,
            dies_per_channel: self.dies_per_channel,
            planes_per_die: self.planes_per_die,
            blocks_per_plane: self.blocks_per_plane,
            pages_per_block: self.pages_per_block,
            page_bytes: self.page_size,
            spare_bytes: self.spare_size,
        }
    }

    /// The problem of a block that is no multiple of the pages of `key`.
    fn divides_block(&self, key: &'static str, pages: u32) -> Option<Problem> {
        let block = self.pages_per_block;
        let message = format!("{pages} pages do not divide a block of {block}");
        (!block.is_multiple_of(u64::from(pages))).then(|| Problem::new(key, message))
    }
}

/// The largest page and mapping unit.
const PAGE_BYTES_MAX: u64 = 1 << 24;

/// An array in pages of the mapping unit.
struct Pages {
    shape: Shape,
    /// Units in a page of the chip.
    units_per_page: u32,
    /// Pages of the chip in a unit.
    planes_per_page: u32,
}

impl Pages {
    /// The array of pages of a chip in mapping units of `unit` bytes. A page of the chip that is
    /// larger holds several units; a larger unit lies in the same page of several planes of a die,
    /// which work as one.
    fn of_map_unit(self, unit: u64) -> Result<Self, String> {
        let (shape, page) = (self.shape, self.shape.page_bytes);
        if unit == 0 || !unit.is_multiple_of(SECTOR_BYTES) || unit > PAGE_BYTES_MAX {
            return Err(format!("{unit} bytes is not a multiple of 512 bytes up to 16 MiB"));
        }
        if page.is_multiple_of(unit) {
            let units = page / unit;
            let shape = Shape {
                page_bytes: unit,
                spare_bytes: shape.spare_bytes / units,
                pages_per_block: shape.pages_per_block.saturating_mul(units),
                ..shape
            };
            return Ok(Self { shape, units_per_page: units as u32, ..self });
        }
        let planes = unit / page;
        if !unit.is_multiple_of(page) {
            return Err(format!(
                "pages of {page} bytes and units of {unit} do not divide each other"
            ));
        }
        if !shape.planes_per_die.is_multiple_of(planes) {
            let of = shape.planes_per_die;
            return Err(format!("a unit of {planes} pages does not fit the {of} planes of a die"));
        }
        let shape = Shape {
            page_bytes: unit,
            spare_bytes: shape.spare_bytes * planes,
            planes_per_die: shape.planes_per_die / planes,
            ..shape
        };
        Ok(Self { shape, planes_per_page: planes as u32, ..self })
    }
}

impl Shape {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let counts = [
            ("channels", self.channels),
            ("dies_per_channel", self.dies_per_channel),
            ("planes_per_die", self.planes_per_die),
            ("blocks_per_plane", self.blocks_per_plane),
            ("pages_per_block", self.pages_per_block),
        ];
        for (name, count) in counts {
            if count == 0 {
                problems.push(Problem::new(name, "must be at least 1"));
            }
        }
        if self.page_bytes == 0 || !self.page_bytes.is_multiple_of(SECTOR_BYTES) {
            let message = format!("{} bytes is not a multiple of 512 bytes", self.page_bytes);
            problems.push(Problem::new("page_size", message));
        }
        if self.page_bytes > PAGE_BYTES_MAX {
            problems.push(Problem::new("page_size", "must be at most 16 MiB"));
        }
        if self.spare_bytes > self.page_bytes {
            problems.push(Problem::new("spare_size", "must not exceed page_size"));
        }
        let dies = self.channels.saturating_mul(self.dies_per_channel);
        if dies > u64::from(u16::MAX) {
            let message = format!("{dies} dies; the maximum is 65,535");
            problems.push(Problem::new("dies_per_channel", message));
        }
        let pages = counts.iter().try_fold(1u64, |product, (_, count)| product.checked_mul(*count));
        if pages.is_none_or(|pages| pages >= u64::from(u32::MAX)) {
            let message =
                "more than 4,294,967,294 pages in total; use larger pages or fewer blocks";
            problems.push(Problem::new("blocks_per_plane", message));
        }
        problems
    }
}

/// The tables of a device take about this much memory per physical page.
const TABLE_BYTES_PER_PAGE: u64 = 6;
/// Tables of this size stay in the cache of a processor core.
const CACHE_BYTES: u64 = 512 << 10;

impl Geometry {
    /// # Errors
    /// All problems with `shape`.
    pub fn new(shape: &Shape) -> Result<Self, Vec<Problem>> {
        let problems = shape.problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        let dies = (shape.channels * shape.dies_per_channel) as u32;
        let planes = dies * shape.planes_per_die as u32;
        let blocks = planes * shape.blocks_per_plane as u32;
        Ok(Self {
            dies,
            planes,
            blocks,
            pages: blocks * shape.pages_per_block as u32,
            channels: shape.channels as u32,
            planes_per_die: shape.planes_per_die as u32,
            blocks_per_plane: shape.blocks_per_plane as u32,
            pages_per_block: shape.pages_per_block as u32,
            page_bytes: shape.page_bytes as u32,
            spare_bytes: shape.spare_bytes as u32,
            read_pages: 1,
            program_pages: 1,
            units_per_page: 1,
            planes_per_page: 1,
            by_pages_per_block: Divisor::new(shape.pages_per_block as u32),
            by_blocks_per_plane: Divisor::new(shape.blocks_per_plane as u32),
            by_channels: Divisor::new(shape.channels as u32),
            by_dies: Divisor::new(dies),
        })
    }

    /// The geometry of a chip that reads and programs so many consecutive pages of a block at once.
    #[must_use]
    pub const fn with_chip_pages(self, read_pages: u32, program_pages: u32) -> Self {
        Self { read_pages, program_pages, ..self }
    }

    /// Consecutive pages of a block that the chip reads at once: those of the chip's page.
    #[inline]
    pub const fn read_pages(&self) -> u32 {
        self.read_pages
    }

    /// Consecutive pages of a block that the chip programs at once.
    #[inline]
    pub const fn program_pages(&self) -> u32 {
        self.program_pages
    }

    /// Pages in a page of the chip: more than one where the mapping unit is smaller.
    pub const fn units_per_page(&self) -> u32 {
        self.units_per_page
    }

    /// Pages of the chip in a page: more than one where the mapping unit lies in several planes of
    /// a die, which read, program and erase together.
    #[inline]
    pub const fn planes_per_page(&self) -> u32 {
        self.planes_per_page
    }

    #[inline]
    pub const fn channels(&self) -> u32 {
        self.channels
    }

    #[inline]
    pub const fn dies(&self) -> u32 {
        self.dies
    }

    #[inline]
    pub const fn planes(&self) -> u32 {
        self.planes
    }

    #[inline]
    pub const fn blocks_per_plane(&self) -> u32 {
        self.blocks_per_plane
    }

    #[inline]
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    #[inline]
    pub const fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// Physical pages of the device.
    #[inline]
    pub const fn pages(&self) -> u32 {
        self.pages
    }

    /// Whether the tables of the device are larger than the cache of a processor core, so that it
    /// pays to prefetch their entries.
    pub const fn outgrows_caches(&self) -> bool {
        self.pages as u64 * TABLE_BYTES_PER_PAGE > CACHE_BYTES
    }

    /// Data bytes of a page.
    #[inline]
    pub const fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// Data and spare bytes of a page, as transferred over a channel.
    pub const fn raw_page_bytes(&self) -> u32 {
        self.page_bytes + self.spare_bytes
    }

    #[inline]
    pub const fn sectors_per_page(&self) -> u32 {
        self.page_bytes / SECTOR_BYTES as u32
    }

    #[inline]
    pub const fn block_of(&self, page: Ppn) -> BlockId {
        BlockId(self.by_pages_per_block.divide(page.0))
    }

    /// The offset of `page` in its block.
    #[inline]
    pub const fn offset_of(&self, page: Ppn) -> u32 {
        page.0 - self.block_of(page).0 * self.pages_per_block
    }

    /// The logical block of `lpn` and its offset there, where blocks are mapped as a whole.
    #[inline]
    pub const fn split(&self, lpn: Lpn) -> (u32, u32) {
        let block = self.block_of(Ppn(lpn.0)).0;
        (block, lpn.0 - block * self.pages_per_block)
    }

    /// The page at `offset` of `block`.
    #[inline]
    pub const fn page(&self, block: BlockId, offset: u32) -> Ppn {
        Ppn(block.0 * self.pages_per_block + offset)
    }

    #[inline]
    pub const fn plane_of(&self, block: BlockId) -> PlaneId {
        PlaneId(self.by_blocks_per_plane.divide(block.0))
    }

    pub const fn first_block(&self, plane: PlaneId) -> BlockId {
        BlockId(plane.0 * self.blocks_per_plane)
    }

    #[inline]
    pub const fn die_of_plane(&self, plane: PlaneId) -> DieId {
        DieId((plane.0 - self.by_dies.divide(plane.0) * self.dies()) as u16)
    }

    #[inline]
    pub const fn die_of(&self, block: BlockId) -> DieId {
        self.die_of_plane(self.plane_of(block))
    }

    #[inline]
    pub const fn die_of_page(&self, page: Ppn) -> DieId {
        self.die_of(self.block_of(page))
    }

    #[inline]
    pub const fn channel_of(&self, die: DieId) -> u32 {
        die.0 as u32 - self.by_channels.divide(die.0 as u32) * self.channels
    }

    pub fn address_of(&self, page: Ppn) -> PhysicalAddress {
        let block = self.block_of(page);
        let plane = self.plane_of(block);
        let die = u32::from(self.die_of_plane(plane).0);
        PhysicalAddress {
            channel: die % self.channels,
            die: die / self.channels,
            plane: plane.0 / self.dies(),
            block: block.0 - self.first_block(plane).0,
            page: self.offset_of(page),
        }
    }

    /// # Errors
    /// Every level at which the device has no such number.
    pub fn page_at(&self, address: &PhysicalAddress) -> Result<Ppn, String> {
        let levels = [
            ("channel", address.channel, self.channels),
            ("die", address.die, self.dies() / self.channels),
            ("plane", address.plane, self.planes_per_die),
            ("block", address.block, self.blocks_per_plane),
            ("page", address.page, self.pages_per_block),
        ];
        let missing: Vec<String> = (levels.iter())
            .filter(|(_, number, count)| number >= count)
            .map(|(level, number, count)| format!("{level} {number} of {count}"))
            .collect();
        if !missing.is_empty() {
            return Err(format!("there is no {}", missing.join(", no ")));
        }
        let die = address.die * self.channels + address.channel;
        let plane = PlaneId(address.plane * self.dies() + die);
        let block = BlockId(self.first_block(plane).0 + address.block);
        Ok(self.page(block, address.page))
    }

    /// Logical pages exported with an over-provisioning of `ratio` = (physical - exported) /
    /// exported.
    pub fn exported_pages(&self, ratio: f64) -> u32 {
        (f64::from(self.pages()) / (1.0 + ratio)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        channels: 3,
        dies_per_channel: 2,
        planes_per_die: 2,
        blocks_per_plane: 5,
        pages_per_block: 7,
        page_bytes: 2048,
        spare_bytes: 64,
    };

    #[test]
    fn division_by_multiplication_is_exact() {
        for by in [1, 2, 3, 5, 7, 64, 127, 1_000, 65_535, 65_536, 1 << 31, u32::MAX] {
            let divisor = Divisor::new(by);
            let near = [0, 1, by - 1, by, by.saturating_add(1), u32::MAX - 1, u32::MAX];
            let odd = (0..2_000u32).map(|i| i.wrapping_mul(2_654_435_761));
            for value in near.into_iter().chain(odd) {
                assert_eq!(divisor.divide(value), value / by, "{value} / {by}");
            }
        }
    }

    #[test]
    fn every_page_has_one_address() {
        let geometry = Geometry::new(&SHAPE).expect("a valid shape");
        assert_eq!((geometry.blocks(), geometry.pages()), (60, 420));
        for number in 0..geometry.pages() {
            let page = Ppn(number);
            let block = geometry.block_of(page);
            assert_eq!(geometry.page(block, geometry.offset_of(page)), page);
            assert!(u32::from(geometry.die_of(block).0) < geometry.dies());
            let address = geometry.address_of(page);
            assert_eq!(geometry.page_at(&address), Ok(page), "{address:?}");
            assert_eq!(address.channel, geometry.channel_of(geometry.die_of(block)));
        }
        let die = |plane| geometry.die_of_plane(PlaneId(plane));
        assert_eq!([die(0), die(5), die(6), die(11)], [DieId(0), DieId(5), DieId(0), DieId(5)]);
        let channels: Vec<u32> = (0..6).map(|die| geometry.channel_of(DieId(die))).collect();
        assert_eq!(channels, [0, 1, 2, 0, 1, 2], "neighbouring dies lie on different channels");
    }

    #[test]
    fn an_address_is_checked_at_every_level() {
        let geometry = Geometry::new(&SHAPE).expect("a valid shape");
        let last = geometry.address_of(Ppn(geometry.pages() - 1));
        let wrong = |change: fn(&mut PhysicalAddress), expected: &str| {
            let mut address = last;
            change(&mut address);
            let error = geometry.page_at(&address).expect_err("one too many");
            assert!(error.contains(expected), "{error}");
        };
        wrong(|a| a.channel += 1, "no channel 3 of 3");
        wrong(|a| a.die += 1, "no die 2 of 2");
        wrong(|a| a.plane += 1, "no plane 2 of 2");
        wrong(|a| a.block += 1, "no block 5 of 5");
        wrong(|a| a.page += 1, "no page 7 of 7");
        wrong(|a| (a.die, a.page) = (u32::MAX, 7), "no die 4294967295 of 2, no page 7");
    }

    #[test]
    fn all_problems_of_a_shape_are_reported() {
        let check = |shape: Shape, expected: &[&str]| {
            let problems = Geometry::new(&shape).expect_err("an invalid shape");
            let params: Vec<_> = problems.iter().map(|problem| problem.param).collect();
            assert_eq!(params, expected, "{problems:?}");
        };
        check(Shape { page_bytes: 1000, channels: 0, ..SHAPE }, &["channels", "page_size"]);
        check(Shape { page_bytes: u64::MAX - 511, ..SHAPE }, &["page_size"]);
        check(Shape { spare_bytes: 4096, ..SHAPE }, &["spare_size"]);
        check(Shape { channels: 4096, dies_per_channel: 4096, ..SHAPE }, &["dies_per_channel"]);
        let huge = Shape { blocks_per_plane: u64::MAX, pages_per_block: u64::MAX, ..SHAPE };
        check(huge, &["blocks_per_plane"]);
    }
}
