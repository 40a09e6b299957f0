//! Work of a zoned device without a request: moving data whose bit errors would become too many,
//! erasing blocks of zones that were reset, and filling zones before a run.

use super::stripe::Stripe;
use super::translation::{Refresh, ZoneTranslation};
use super::zone::Zone;
use super::{NO_OWNER, NONE};
use crate::device::FlashBackEnd;
use hybridsim_engine::SimTime;
use hybridsim_engine::ZoneState;
use hybridsim_flash::event::Cause;
use hybridsim_flash::geometry::{BlockId, Ppn};
use hybridsim_flash::ops::After;

impl ZoneTranslation {
    /// These groups belong to no zone any more.
    pub(super) fn release(&mut self, groups: impl IntoIterator<Item = u32>) {
        for group in groups {
            self.free.push_back(group);
            self.free_is_erased = false;
        }
    }

    /// Erases one block of each plane of a free group, if there is one that is not erased. Returns
    /// whether there was.
    pub(super) fn erase_free_row(&mut self) -> bool {
        if self.free_is_erased {
            return false;
        }
        for at in 0..self.free.len() {
            let group = self.free[at];
            let programmed = |row: &u32| {
                let mut blocks = self.stripe.blocks(group, *row..*row + 1);
                blocks.any(|(block, _)| self.back_end.array().next_page(block) > 0)
            };
            if let Some(row) = (0..self.stripe.rows).find(programmed) {
                if !self.erase(group, row..row + 1, (u32::MAX, Cause::Host)) {
                    self.free.remove(at);
                }
                return true;
            }
        }
        self.free_is_erased = true;
        false
    }

    /// Begins to move the data of the next zone that needs it. Returns whether one does.
    pub(super) fn begin_refresh(&mut self, now: SimTime) -> bool {
        let mut begins = None;
        let Self { back_end, zones, stripe, free, operations, .. } = self;
        back_end.begin_refresh(now, |block, _| {
            let group = stripe.group_of(block);
            let zone = (0..zones.len()).find(|zone| zones.get(*zone).group == group);
            // An open zone is written: its turn comes when it is closed or full.
            begins = zone.filter(|zone| {
                let rests = matches!(zones.get(*zone).state, ZoneState::Full | ZoneState::Closed);
                rests && !free.is_empty() && !operations.iter().any(|it| it.zone == *zone)
            });
            begins.is_some()
        });
        let Some(zone) = begins else { return false };
        // Without a usable group the zone stays where it is.
        let group = self.take_group();
        self.refresh = group.map(|to| Refresh { zone, to, next: 0 });
        group.is_some()
    }

    /// Moves a stripe of the zone that is being moved, if there is one. Returns whether there was.
    pub(super) fn refresh_step(&mut self) -> bool {
        let Some(Refresh { zone, to, next }) = self.refresh else { return false };
        let Zone { group, written, programmed, .. } = self.zones.get(zone);
        let end = programmed.min(next + self.stripe.geometry.planes() * self.stripe.pages);
        let flash = &mut self.back_end.flash;
        for index in next..end {
            let (from, page) = (self.stripe.page(group, index), self.stripe.page(to, index));
            if index < written {
                let read = flash.read(from, Cause::Refresh, After::NOTHING);
                flash.write_back((from, read), page, NO_OWNER, Cause::Refresh);
            } else {
                flash.program(page, NO_OWNER, Cause::Padding, After::NOTHING);
            }
        }
        if end < programmed {
            self.refresh = Some(Refresh { zone, to, next: end });
            return true;
        }
        self.refresh = None;
        self.zones.assign(zone, to);
        self.invalidate(group);
        self.release([group]);
        true
    }

    /// The data of `zone` change: they stay where they are.
    pub(super) fn abandon_refresh(&mut self, zone: u32) {
        if let Some(Refresh { to, .. }) = self.refresh.take_if(|it| it.zone == zone) {
            self.invalidate(to);
            self.release([to]);
        }
    }

    pub(super) fn invalidate(&mut self, group: u32) {
        for (block, _) in self.stripe.blocks(group, 0..self.stripe.rows) {
            self.back_end.flash.invalidate_block(block);
        }
    }

    /// Writes the first `pages` pages of all zones, as far as they can be opened and are not
    /// written: one zone after the other; the last may be closed with a part written. Calls
    /// `programmed` after each page, and `filled` with the pages that are left after each zone,
    /// until that returns false.
    pub(super) fn fill_zones(
        &mut self,
        pages: u64,
        mut programmed: impl FnMut(&mut FlashBackEnd),
        mut filled: impl FnMut(u64) -> bool,
    ) {
        let mut left = pages;
        for zone in 0..self.zones.len() {
            if left == 0 {
                break;
            }
            let end = left.min(u64::from(self.zones.capacity_pages())) as u32;
            left -= u64::from(end);
            self.fill_zone(zone, end, &mut programmed);
            if !filled(left) {
                break;
            }
        }
    }

    fn fill_zone(&mut self, zone: u32, end: u32, programmed: &mut impl FnMut(&mut FlashBackEnd)) {
        let Zone { state, written, is_random, .. } = self.zones.get(zone);
        let takes_none = matches!(state, ZoneState::Full | ZoneState::Offline);
        // What is in a random write area stays where it is.
        if written >= end || takes_none || is_random || self.has_operation(zone) {
            return;
        }
        self.abandon_refresh(zone);
        if self.zones.open(zone, false).is_err() {
            return;
        }
        if self.zones.get(zone).group == NONE {
            match self.take_group() {
                Some(group) => self.zones.assign(zone, group),
                None => return self.zones.take_offline(zone),
            }
        }
        let group = self.zones.get(zone).group;
        for index in written..end {
            let page: Ppn = self.stripe.page(group, index);
            self.back_end.flash.host_program(page, NO_OWNER, After::NOTHING);
            programmed(&mut self.back_end);
        }
        self.zones.advance(zone, end - written);
        if self.zones.get(zone).state == ZoneState::ImplicitlyOpen
            && state != ZoneState::ImplicitlyOpen
        {
            // It can be closed: it is open.
            let _closed = self.zones.close(zone);
        }
    }
}

impl Stripe {
    fn group_of(&self, block: BlockId) -> u32 {
        (block.0 % self.geometry.blocks_per_plane()) / self.rows
    }
}
