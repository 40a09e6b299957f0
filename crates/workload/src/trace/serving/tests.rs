use super::*;
use crate::record::TraceResult;
use crate::trace::OpenOptions;
use std::path::PathBuf;

fn read_bytes(bytes: &[u8], options: &OpenOptions) -> TraceResult<ServingTrace> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    std::fs::write(&path, bytes).unwrap();
    read(&path, options)
}

fn sample(name: &str) -> ServingTrace {
    let entry = ENTRIES.iter().find(|entry| entry.description.name == name).unwrap();
    read_bytes(entry.sample, &OpenOptions::default()).unwrap()
}

#[test]
fn every_sample_is_detected_and_read() {
    for entry in ENTRIES {
        let trace = sample(entry.description.name);
        assert_eq!(trace.format, entry.description.name);
        assert!(trace.warnings.is_empty(), "{}: {:?}", trace.format, trace.warnings);
    }
}

#[test]
fn samples_say_what_they_say() {
    let mooncake = sample("mooncake");
    assert_eq!(mooncake.references, [0, 1, 2, 0, 1, 3]);
    assert_eq!(mooncake.parents, [NO_BLOCK, 0, 1, 1]);
    let [first, second] = &mooncake.requests[..] else { panic!() };
    assert_eq!((first.block_tokens, second.at.as_ns()), (512, 3_052_000_000));
    assert_eq!([0, 1, 2, 3].map(|at| first.tokens_of(at)), [512, 512, 76, 0]);

    let bailian = sample("bailian");
    assert_eq!(bailian.requests[1].at.as_ns(), 1_750_000_000);
    assert_eq!(bailian.requests[1].block_tokens, 16);

    let lookups = sample("lmcache-lookups");
    assert_eq!(lookups.block_bytes, Some(2 * 32 * 256 * 1024 * 2));
    assert_eq!((lookups.distinct(), lookups.requests[0].tokens_of(1)), (3, 256));

    let events = sample("kv-events");
    assert_eq!(events.parents, [NO_BLOCK, 0, 1]);
    assert_eq!(events.residence_ns, [750_000_000]);
    assert!(!events.whole_prompts);

    let azure = sample("azure-llm");
    assert_eq!((azure.requests.len(), azure.distinct()), (2, 0));
}

#[test]
fn samples_cut_anywhere_give_fewer_requests_or_an_error() {
    for entry in ENTRIES {
        let name = Some(entry.description.name.to_owned());
        let options = OpenOptions { format: name, ..OpenOptions::default() };
        let whole = read_bytes(entry.sample, &options).unwrap().requests.len();
        for end in 1..entry.sample.len() {
            match read_bytes(&entry.sample[..end], &options) {
                Ok(trace) => assert!(trace.requests.len() <= whole),
                Err(error) => assert!(!error.message.is_empty()),
            }
        }
    }
}

#[test]
fn bad_lines_are_located_errors_or_counted() {
    let line = |text: &str| {
        let good =
            "{\"timestamp\":0,\"input_length\":1100,\"output_length\":1,\"hash_ids\":[1,2,3]}";
        format!("{good}\n{text}\n{good}\n")
    };
    let cases = [
        ("{\"timestamp\":1}", "has no `hash_ids`"),
        ("{\"timestamp\":-1,\"input_length\":9,\"output_length\":1,\"hash_ids\":[1]}", "no time"),
        ("{\"timestamp\":1,\"input_length\":9.5,\"output_length\":1,\"hash_ids\":[1]}", "no whole"),
        ("{\"timestamp\":1,\"input_length\":1,\"output_length\":1,\"hash_ids\":[1,2]}", "2 blocks"),
        ("{\"timestamp\":1,\"input_length\":9,\"output_length\":1,\"hash_ids\":[[]]}", "a name"),
        ("{\"timestamp\":1,\"input_length\":9,\"output_length\":1,\"hash_ids\":{}}", "no list"),
        ("[1]", "no JSON object"),
        ("nonsense", "not a line of JSON"),
    ];
    let strict = OpenOptions::default();
    let lenient = OpenOptions { skip_bad_lines: true, ..OpenOptions::default() };
    for (text, expect) in cases {
        let expect = expect.replace("no JSON object", "not a JSON object");
        let error = read_bytes(line(text).as_bytes(), &strict).expect_err(text);
        assert!(error.message.contains(&expect), "{text}: {error}");
        assert_eq!(error.location.number(), 2, "{error}");
        let trace = read_bytes(line(text).as_bytes(), &lenient).unwrap();
        assert_eq!((trace.requests.len(), trace.warnings.len()), (2, 1), "{text}");
    }
}

#[test]
fn times_out_of_order_are_sorted_and_blocks_numbered_by_time() {
    let text = concat!(
        r#"{"timestamp":5,"input_length":16,"output_length":1,"hash_ids":["b"],"block_size":16}"#,
        "\n",
        r#"{"timestamp":2,"input_length":32,"output_length":1,"hash_ids":["a","b"],"#,
        r#""block_size":16}"#,
        "\n"
    );
    let trace = read_bytes(text.as_bytes(), &OpenOptions::default()).unwrap();
    assert_eq!(trace.references, [0, 1, 1]);
    assert_eq!(trace.requests[1].at.as_ns(), 3_000_000);
    let messages: Vec<_> = trace.warnings.iter().map(|warning| &warning.message[..]).collect();
    assert!(
        messages[0].contains("sorted") && messages[1].contains("another block"),
        "{messages:?}"
    );
}

#[test]
fn unlike_block_sizes_are_refused() {
    let text = "{\"timestamp\":0,\"input_length\":1000,\"output_length\":1,\"hash_ids\":[1]}\n";
    let error = read_bytes(text.as_bytes(), &OpenOptions::default()).expect_err("any size fits");
    assert!(error.message.contains("block_tokens = 512"), "{error}");
}

#[test]
fn a_slice_starts_its_own_time_and_numbers() {
    let trace = sample("mooncake");
    let part = trace.slice(1, 2);
    assert_eq!((part.requests[0].at.as_ns(), &part.references[..]), (0, &[0, 1, 2][..]));
}

#[test]
fn block_traces_are_not_serving_traces_and_the_reverse() {
    for entry in crate::trace::ENTRIES {
        let head = FileHead { bytes: entry.sample, whole: true };
        assert!(sniff(&head).is_none(), "{}", entry.description.name);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    std::fs::write(&path, ENTRIES[2].sample).unwrap();
    let error = crate::trace::open(&path, &OpenOptions::default()).err().expect("no addresses");
    assert!(error.message.contains("hybridsim kv"), "{error}");
}

/// A file of the shared data, where they are.
fn data(name: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("HYBRIDSIM_DATA") else {
        println!("skipped: HYBRIDSIM_DATA names no folder with data");
        return None;
    };
    Some(PathBuf::from(folder).join("kv").join(name)).filter(|path| path.exists())
}

#[test]
fn published_traces_have_the_figures_of_their_summary() {
    let Some(summary) = data("tables/mooncake_summary.csv") else { return };
    let text = std::fs::read_to_string(summary).unwrap();
    for row in text.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let path = data(&format!("mooncake_{}.jsonl.gz", cells[0])).expect("the trace of the row");
        let trace = read(&path, &OpenOptions::default()).unwrap();
        let mean = |sum: u64| format!("{:.1}", sum as f64 / trace.requests.len() as f64);
        let mut uses = vec![0u32; trace.distinct()];
        trace.references.iter().for_each(|block| uses[*block as usize] += 1);
        let partial =
            |request: &&ServingRequest| u64::from(request.blocks) * 512 != request.input_tokens;
        let got = [
            trace.requests.len().to_string(),
            format!("{:.1}", trace.span_ns() as f64 / 1e9),
            mean(trace.requests.iter().map(|request| request.input_tokens).sum()),
            mean(trace.requests.iter().map(|request| request.output_tokens).sum()),
            format!("{:.2}", trace.references.len() as f64 / trace.requests.len() as f64),
            trace.references.len().to_string(),
            trace.distinct().to_string(),
            uses.iter().filter(|uses| **uses == 1).count().to_string(),
            uses.iter().max().unwrap().to_string(),
            trace.requests.iter().filter(partial).count().to_string(),
        ];
        assert_eq!(got[..], cells[1..], "{}", cells[0]);
        assert!(trace.requests.iter().all(|request| request.block_tokens == 512));
    }
}
