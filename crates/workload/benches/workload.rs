//! How fast workloads come: native traces written, read, profiled and replayed, and generators.
//!
//! Prints the best of several rounds, in millions per second of one core.

use hybridsim_config::check;
use hybridsim_config::param::Value;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Flags, Lba, Op, Request, SimDuration, SimTime, Source, Stream};
use hybridsim_workload::native::{Header, NativeReader, NativeWriter};
use hybridsim_workload::profile::Profiler;
use hybridsim_workload::record::{Record, RecordReader};
use hybridsim_workload::shape::{self, replay};
use hybridsim_workload::synthetic::addresses::{Popularity, Region};
use hybridsim_workload::synthetic::arrivals::{Interarrival, Limits};
use hybridsim_workload::synthetic::histogram::{Histogram, Sizes};
use hybridsim_workload::synthetic::{GeneratedWorkload, mixes, uniform::Popular};
use std::hint::black_box;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

const RECORDS: u64 = 2_000_000;
const ROUNDS: usize = 5;

fn measure(what: &str, mut run: impl FnMut() -> u64) {
    let mut best = 0.0f64;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let count = black_box(run());
        best = best.max(count as f64 / start.elapsed().as_secs_f64());
    }
    println!("{what:32} {:8.2} M/s", best / 1e6);
}

/// Three volumes, runs and jumps, times in microseconds, half with response times.
fn records() -> Vec<Record> {
    let mut stream = Stream::new(1, "bench");
    let (mut at, mut ends) = (0, [0u64; 3]);
    (0..RECORDS)
        .map(|_| {
            at += stream.below(2_000) * 1_000;
            let volume = stream.below(3) as usize;
            let sequential = stream.chance(0.3);
            let lba = if sequential { ends[volume] } else { stream.below(1 << 27) * 8 };
            let sectors = 8 << stream.below(4);
            ends[volume] = lba + sectors;
            let op = if stream.chance(0.4) { Op::Read } else { Op::Write };
            let mut request = Request::new(op, Lba(lba), sectors as u32);
            request.volume = volume as u16;
            request.flags = if stream.chance(0.2) { Flags::SYNC } else { Flags::NONE };
            let response = Some(SimDuration::from_us(50 + stream.below(10_000)));
            Record { at: SimTime::from_ns(at), request, response }
        })
        .collect()
}

fn native(records: &[Record]) -> Vec<u8> {
    let out = Vec::with_capacity(32 << 20);
    let mut writer = NativeWriter::new(out, &Header::default()).expect("memory takes it");
    for record in records {
        writer.write(record).expect("in order");
    }
    writer.finish().expect("nothing announced")
}

fn drain(source: &mut dyn Source) -> u64 {
    let (mut count, mut sum) = (0, 0u64);
    while let Some(arrival) = source.next().expect("generators do not fail") {
        count += 1;
        sum = sum.wrapping_add(arrival.request.lba.0);
    }
    black_box(sum);
    count
}

fn generators() {
    let region = Region::whole(1 << 31);
    let stream = || Stream::new(1, "bench");
    let count = 20_000_000;
    measure("uniform 4 KiB writes", || {
        let uniform = Popular::new(region, 8, Popularity::Uniform(1 << 28), 0.0, stream());
        let mut source: Box<dyn Source> =
            Box::new(GeneratedWorkload::new(uniform, Interarrival::None, Limits::requests(count)));
        drain(&mut *source)
    });
    measure("uniform 4 KiB, 70 % reads", || {
        let uniform = Popular::new(region, 8, Popularity::Uniform(1 << 28), 0.7, stream());
        drain(&mut GeneratedWorkload::new(uniform, Interarrival::None, Limits::requests(count)))
    });
    let count = 4_000_000;
    measure("zipf 0.9", || {
        let zipf = Popular::new(region, 8, Popularity::zipf(1 << 28, 0.9), 0.0, stream());
        drain(&mut GeneratedWorkload::new(zipf, Interarrival::None, Limits::requests(count)))
    });
    measure("histogram (untar)", || {
        let mix = &mixes::MIXES[3];
        let sizes = Sizes::new(mix.sizes);
        let histogram = Histogram::new(region, sizes, mix.random, 0.0, 8, stream());
        drain(&mut GeneratedWorkload::new(histogram, Interarrival::None, Limits::requests(count)))
    });
}

fn main() {
    let records = records();
    let bytes: Rc<[u8]> = native(&records).into();
    println!("native: {:.2} bytes a record", bytes.len() as f64 / RECORDS as f64);
    measure("native write", || {
        black_box(native(&records));
        RECORDS
    });
    let path = Path::new("bench.hst");
    measure("native read", || {
        let mut reader = NativeReader::new(&bytes[..], path, None).expect("its header");
        let (mut count, mut sum) = (0, 0u64);
        while let Some(record) = reader.next().expect("whole") {
            count += 1;
            sum = sum.wrapping_add(record.request.lba.0);
        }
        black_box(sum);
        count
    });
    measure("profile", || {
        let mut profiler = Profiler::new(true);
        records.iter().for_each(|record| profiler.take(record));
        black_box(profiler.finish(&[]));
        RECORDS
    });
    let settings = check::defaults(shape::PARAMS, &Registry::default())
        .and("volume_layout", Value::Text("overlay".to_owned()))
        .and("address", Value::Text("wrap".to_owned()));
    measure("replay of a native trace", || {
        let bytes = Rc::clone(&bytes);
        let open = move || {
            let input = std::io::Cursor::new(Rc::clone(&bytes));
            NativeReader::new(input, path, None).map(|r| Box::new(r) as Box<dyn RecordReader>)
        };
        drain(&mut replay(&settings, open, 1 << 31).expect("sound settings"))
    });
    generators();
}
