//! Reads traces as fast as it can and prints how fast that was: `trace_speed FILE...`.

use hybridsim_workload::record::RecordReader;
use hybridsim_workload::trace::{OpenOptions, open};
use std::path::Path;
use std::time::Instant;

fn main() {
    for path in std::env::args().skip(1) {
        let begun = Instant::now();
        let mut trace = match open(Path::new(&path), &OpenOptions::default()) {
            Ok(trace) => trace,
            Err(error) => {
                eprintln!("{error}");
                continue;
            }
        };
        let (mut records, mut sectors) = (0u64, 0u64);
        let end = loop {
            match trace.next() {
                Ok(Some(record)) => {
                    records += 1;
                    sectors += u64::from(record.request.sectors);
                }
                Ok(None) => break "",
                Err(error) => {
                    eprintln!("{error}");
                    break " (with an error)";
                }
            }
        };
        let seconds = begun.elapsed().as_secs_f64();
        let rate = records as f64 / seconds / 1e6;
        let (format, packed) = (trace.format.name, trace.compression.unwrap_or("plain"));
        println!(
            "{path}: {format}, {packed}: {records} records, {sectors} sectors, {seconds:.3} s, \
             {rate:.2} million records/s{end}"
        );
    }
}
