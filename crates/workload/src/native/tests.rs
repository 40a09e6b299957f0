use super::*;
use crate::record::{Record, RecordReader, TraceResult};
use hybridsim_engine::{Flags, Lba, Op, Request, SimTime, Stream};
use proptest::prelude::*;
use std::path::Path;

fn records(count: usize) -> Vec<Record> {
    let mut stream = Stream::new(1, "native");
    let mut at = 0;
    (0..count)
        .map(|index| {
            at += stream.below(1_000) * 1_000;
            let op = if stream.chance(0.4) { Op::Read } else { Op::Write };
            let mut request = Request::new(op, Lba(stream.below(1 << 32) * 8), 8);
            request.volume = stream.below(3) as u16;
            request.flags = Flags(stream.below(64) as u16);
            let response = (index % 3 == 0).then(|| SimDuration::from_us(stream.below(9_000)));
            Record { at: SimTime::from_ns(at), request, response }
        })
        .collect()
}

fn written(records: &[Record], header: &Header, names: &[String]) -> Vec<u8> {
    let mut writer = NativeWriter::new(Vec::new(), header).expect("memory takes it");
    writer.name_volumes(names);
    for record in records {
        writer.write(record).expect("in order");
    }
    writer.finish().expect("announced nothing wrong")
}

fn read(bytes: &[u8]) -> TraceResult<(Vec<Record>, Vec<String>)> {
    let mut reader = NativeReader::new(bytes, Path::new("t.hst"), Some(bytes.len() as u64))?;
    let mut records = Vec::new();
    while let Some(record) = reader.next()? {
        records.push(record);
    }
    assert!(reader.totals().is_some());
    Ok((records, reader.volumes().to_vec()))
}

#[test]
fn records_names_and_notes_come_back() {
    let expected = records(BLOCK_RECORDS * 2 + 77);
    let names = ["8,0", "8,16", "md0"].map(str::to_owned);
    let notes = vec![("kernel".to_owned(), "6.1 \u{e4}".to_owned())];
    let span = expected.last().map(|last| last.at.since(SimTime::ZERO));
    let records = Some(expected.len() as u64);
    let header = Header { records, span, volumes: Some(3), has_times: false, notes };
    let bytes = written(&expected, &header, &names);
    let reader = NativeReader::new(&bytes[..], Path::new("t.hst"), None).expect("its header");
    assert_eq!(*reader.header(), header);
    assert!(!reader.has_times());
    assert_eq!(read(&bytes), Ok((expected, names.to_vec())));
}

/// The sample of the format's entry. HYBRIDSIM_BLESS=1 rewrites it after a change of version.
#[test]
fn the_sample_is_what_this_version_writes() {
    let notes = vec![("source".to_owned(), "sample".to_owned())];
    let names = ["8,0", "8,16", "md0"].map(str::to_owned);
    let bytes = written(&records(5), &Header { notes, ..Header::default() }, &names);
    if std::env::var_os("HYBRIDSIM_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/native/sample.hst");
        std::fs::write(path, &bytes).expect("the source tree can be written");
    }
    // Compressed bytes may differ between versions of zstd, their content may not.
    assert_eq!(read(crate::trace::native::ENTRY.sample), read(&bytes));
}

#[test]
fn a_false_announcement_is_refused_by_the_writer() {
    let header = Header { records: Some(3), ..Header::default() };
    let writer = NativeWriter::new(Vec::new(), &header).expect("memory takes it");
    assert!(writer.finish().is_err());
}

#[test]
fn time_that_goes_back_is_refused_by_the_writer() {
    let mut list = records(2);
    list[0].at = SimTime::from_ns(9);
    list[1].at = SimTime::from_ns(8);
    let mut writer = NativeWriter::new(Vec::new(), &Header::default()).expect("memory takes it");
    assert!(writer.write(&list[0]).is_ok());
    assert!(writer.write(&list[1]).is_err());
}

#[test]
fn a_trace_without_requests_is_an_error() {
    let bytes = written(&[], &Header::default(), &[]);
    let error = read(&bytes).expect_err("nothing in it");
    assert!(error.message.contains("no request"), "{error}");
}

#[test]
fn every_truncation_is_a_located_error() {
    let bytes = written(&records(300), &Header::default(), &["a".to_owned()]);
    for length in 0..bytes.len() {
        let error = read(&bytes[..length]).expect_err("it is cut off");
        let named = error.message.contains("header") || error.message.contains("block");
        assert!(named || length < 8, "{length}: {error}");
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let notes = vec![("source".to_owned(), "a test".to_owned())];
    let bytes = written(&records(60), &Header { notes, ..Header::default() }, &["a".to_owned()]);
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&damaged).is_err(), "bit {bit} of {}", bytes.len() * 8);
    }
}

#[test]
fn damage_names_its_block() {
    let bytes = written(&records(BLOCK_RECORDS * 3), &Header::default(), &[]);
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 4;
    let error = read(&damaged).expect_err("damaged");
    assert!(error.message.starts_with("block 2 at byte "), "{error}");
    assert_eq!(error.location.number(), BLOCK_RECORDS as u64 + 1);
    let mut longer = bytes;
    longer.push(0);
    let error = read(&longer).expect_err("too long");
    assert!(error.message.contains("data after the end"), "{error}");
}

/// A correct header and a block with a correct checksum and the given lengths.
fn forged(count: u32, length: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = written(&[], &Header::default(), &[]);
    bytes.truncate(bytes.len() - END_BYTES);
    let compressed = zstd::bulk::compress(content, 1).expect("memory takes it");
    let mut head = BLOCK_MARK.to_vec();
    for word in [count, length, compressed.len() as u32] {
        head.extend(word.to_le_bytes());
    }
    let sum = checksum(&[&head, &compressed]);
    bytes.extend(head);
    bytes.extend(sum.to_le_bytes());
    bytes.extend(compressed);
    bytes
}

#[test]
fn forged_blocks_with_true_checksums_are_errors() {
    let huge = vec![0u8; BLOCK_BYTES_MAX as usize + 1];
    for (count, length, content) in [
        (u32::MAX, 10, &[0u8; 10][..]),
        (0, 10, &[0; 10]),
        (5, u32::MAX, &[0; 10]),
        (5, 16, &[0; 10]),
        (5, BLOCK_BYTES_MAX, &huge),
        (5, 10, &huge),
        (5, 10, &[0; 10]),
        (5, 10, &[0xFF; 10]),
        (5, 16, &[0; 16]),
        (5, 17, &[0; 17]),
    ] {
        assert!(read(&forged(count, length, content)).is_err(), "{count} {length}");
    }
}

#[test]
fn a_newer_version_says_so() {
    let mut bytes = written(&records(3), &Header::default(), &[]);
    bytes[8] = 9;
    let error = read(&bytes).expect_err("version 9");
    assert!(error.message.contains("version 9"), "{error}");
}

#[test]
fn progress_ends_at_one() {
    let bytes = written(&records(40_000), &Header::default(), &[]);
    let total = Some(bytes.len() as u64);
    let mut reader = NativeReader::new(&bytes[..], Path::new("t.hst"), total).expect("header");
    let mut last = 0.0;
    while reader.next().expect("whole").is_some() {
        let progress = reader.progress().expect("length known");
        assert!(progress >= last);
        last = progress;
    }
    assert!(last > 0.99 && last <= 1.0, "{last}");
}

fn any_record() -> impl Strategy<Value = Record> {
    let request = (0..Op::COUNT, any::<u8>(), any::<u16>(), any::<u32>(), any::<u64>());
    (any::<u64>(), request, any::<Option<u32>>()).prop_map(|(at, parts, response)| {
        let (op, flags, volume, sectors, lba) = parts;
        let mut request = Request::new(Op::ALL[op], Lba(lba), sectors);
        request.flags = Flags(u16::from(flags));
        request.volume = volume;
        let response = response.map(|ns| SimDuration::from_ns(u64::from(ns)));
        Record { at: SimTime::from_ns(at), request, response }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_records_come_back(mut list in proptest::collection::vec(any_record(), 1..400)) {
        list.sort_by_key(|record| record.at);
        let bytes = written(&list, &Header::default(), &[]);
        prop_assert_eq!(read(&bytes).map(|(records, _)| records), Ok(list));
    }

    #[test]
    fn random_bytes_behind_the_magic_are_an_error(
        tail in proptest::collection::vec(any::<u8>(), 0..300)
    ) {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(tail);
        prop_assert!(read(&bytes).is_err());
    }
}

/// The recordings bundled with the project remain readable.
#[test]
fn bundled_recordings_are_read_to_their_end() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    let mut files = 0;
    for file in std::fs::read_dir(folder).expect("the bundled recordings").flatten() {
        let path = file.path();
        if path.extension().is_none_or(|extension| extension != "hst") {
            continue;
        }
        let input = std::fs::File::open(&path).expect("a file");
        let mut reader = NativeReader::new(input, &path, None).expect("its header");
        let mut count = 0;
        while reader.next().unwrap_or_else(|error| panic!("{error}")).is_some() {
            count += 1;
        }
        assert_eq!(reader.totals().map(|totals| totals.records), Some(count));
        files += 1;
    }
    assert!(files > 0, "no recordings in workloads/");
}
