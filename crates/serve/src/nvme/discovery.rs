//! The discovery log page.

use super::command::Page;
use super::controller::ENTRIES_MAX;
use std::net::SocketAddr;

/// The qualified name that every discovery controller has.
pub const NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

const ENTRY_BYTES: usize = 1024;

/// The log page: one entry, the `subsystem` at `address`.
pub fn log_page(subsystem: &str, address: SocketAddr) -> Vec<u8> {
    let mut page = Page::new(2 * ENTRY_BYTES);
    // Generation, number of records, format.
    page.u64(0, 1).u64(8, 1).u16(16, 0);
    let at = ENTRY_BYTES;
    let family = if address.is_ipv4() { 1 } else { 2 };
    // TCP, address family, an NVM subsystem, no secure channel.
    page.u8(at, 3).u8(at + 1, family).u8(at + 2, 2).u8(at + 3, 2);
    // Port, any controller, entries of the admin queue.
    page.u16(at + 4, 1).u16(at + 6, 0xFFFF).u16(at + 8, ENTRIES_MAX);
    page.text(at + 32, 32, &address.port().to_string(), b' ');
    page.text(at + 256, 256, subsystem, 0);
    page.text(at + 512, 256, &address.ip().to_string(), b' ');
    page.into_bytes()
}
