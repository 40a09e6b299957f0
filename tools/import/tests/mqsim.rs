//! MQSim's configuration and workload file become the keys that they mean.

use hybridsim_import::{FileSource, Imported, MqsimRequest, mqsim};

const CONFIG: &str = include_str!("mqsim/ssdconfig.xml");
const WORKLOAD: &str = include_str!("mqsim/workload.xml");
const WORDS: &str = include_str!("../../../docs/reference/words.md");

struct Files([String; 2]);

impl FileSource for Files {
    fn read(&mut self, name: &str, _: &str) -> Result<(String, String), String> {
        let text = self.0[usize::from(name == "workload.xml")].clone();
        Ok((name.to_owned(), text))
    }
}

fn imported(config: &str, workload: Option<&str>, scenario: usize) -> Result<Imported, String> {
    let mut files = Files([config, workload.unwrap_or_default()].map(str::to_owned));
    let config = "ssdconfig.xml".to_owned();
    let workload = workload.map(|_| "workload.xml".to_owned());
    let request = MqsimRequest { config, workload, scenario, folder: None };
    mqsim(&request, &mut files).map_err(|error| error.to_string())
}

/// The lines of `text` without comments.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.split("  # ").next().unwrap_or(line)).collect()
}

#[test]
fn a_flow_becomes_a_workload_and_the_configuration_an_ssd() {
    let made = imported(CONFIG, Some(WORKLOAD), 1).expect("valid files");
    let lines = lines(&made.text);
    for line in [
        "mode = \"closed\"",
        "queue_depth = 8",
        "generator.kind = \"uniform\"",
        "generator.read = 0.5",
        "generator.block = \"8192B\"",
        "generator.duration = \"1000000000ns\"",
        // 85 % of four fifths of 1 GiB, in whole requests.
        "generator.span = \"730136576B\"",
        "dies_per_channel = 2",
        "over_provisioning = 0.25",
        // The means of the LSB and MSB pages of MLC.
        "read_time = \"80000ns\"",
        "program_time = \"750000ns\"",
        "channel_rate = \"333MB/s\"",
        "controller.host_rate = \"4000MB/s\"",
        "timing.read_spread = 0.125",
        "timing.erase_suspend_time = \"700000ns\"",
        "timing.write_buffer = \"4194304B\"",
        "ftl.kind = \"page\"",
        // 256 blocks, of which fewer than 12 are free.
        "ftl.gc_free_blocks = 11",
        "ftl.gc = { kind = \"d-choices\", choices = 8 }",
        "ftl.wear = { kind = \"static\", threshold = 100 }",
        "precondition = \"steady-drawn\"",
        "precondition_fill = 0.7",
    ] {
        assert!(lines.contains(&line), "{line}\n{}", made.text);
    }
    assert!(!made.text.contains("program_suspend_time"), "only erases are suspended");
    assert!(made.text.contains("# Page_No_Per_Block = 64, ssdconfig.xml:"), "{}", made.text);
    let left = ["Data_Cache_DRAM_tCL", "GC_Hard_Threshold", "Preferred_suspend"];
    assert_eq!(made.warnings.len(), left.len(), "{:?}", made.warnings);
    for (warning, name) in made.warnings.iter().zip(left) {
        assert!(warning.contains(name) && warning.starts_with("ssdconfig.xml:"), "{warning}");
    }
}

#[test]
fn several_flows_divide_the_drive() {
    let made = imported(CONFIG, Some(WORKLOAD), 2).expect("valid files");
    let lines = lines(&made.text);
    for line in [
        // What the device fetches at once; more wait in the host.
        "queue_depth = 512",
        "[workload.flow-1]",
        "priority = \"urgent\"",
        "generator.hot_fraction = 0.2",
        "generator.hot_probability = 0.8",
        // 4 KiB at 8,192,000 bytes per second.
        "generator.interarrival_ms = { kind = \"exponential\", mean = 0.5 }",
        "generator.requests = 5000",
        "[workload.flow-2]",
        "namespace_start = \"429490176B\"",
        "trace = \"traces/small.trace\"",
        "address = \"wrap\"",
        "format = { kind = \"mqsim\", time_unit = \"ns\" }",
        "loops = 2",
    ] {
        assert!(lines.contains(&line), "{line}\n{}", made.text);
    }
    let warns = |what: &str| made.warnings.iter().any(|it| it.contains(what));
    assert!(warns("the write buffer serves all flows"), "{:?}", made.warnings);
    // Without priorities in the scheduling of transactions, classes are alike.
    let config = CONFIG.replace("PRIORITY_OUT_OF_ORDER", "OUT_OF_ORDER");
    let alike = imported(&config, Some(WORKLOAD), 2).expect("valid files");
    assert!(!alike.text.contains("urgent"), "{}", alike.text);
    // A flow on a part of the resources.
    let workload = WORKLOAD.replace("<Channel_IDs>0,1<", "<Channel_IDs>0<");
    let part = imported(CONFIG, Some(&workload), 1).expect("valid files").warnings;
    assert!(part.iter().any(|it| it.contains("`Channel_IDs` is left out")), "{part:?}");
}

#[test]
fn a_configuration_alone_becomes_a_preset() {
    let made = imported(CONFIG, None, 1).expect("a valid file");
    assert!(made.is_preset && !made.text.contains("[workload]"), "{}", made.text);
    assert!(lines(&made.text).contains(&"kind = \"ssd\""));
    // A table of the mapping in flash has no wear levelling of its own.
    let config = CONFIG.replace("<Ideal_Mapping_Table>true", "<Ideal_Mapping_Table>false");
    let made = imported(&config, None, 1).expect("a valid file");
    let lines = lines(&made.text);
    // Two addresses of 2^17 pages and 16 sectors are 50 bits: 2 MiB of entries of 7 bytes.
    assert!(lines.contains(&"ftl.cache_entries = 299593"), "{}", made.text);
    assert!(made.warnings.iter().any(|it| it.contains("does not level wear")), "{made:?}");
    assert!(lines.contains(&"precondition = \"steady\""), "{}", made.text);
}

#[test]
fn wrong_files_are_refused_with_their_place() {
    let of =
        |config: &str, scenario| imported(config, Some(WORKLOAD), scenario).expect_err("wrong");
    let change = |from: &str, to: &str| {
        assert!(CONFIG.contains(from), "{from}");
        of(&CONFIG.replacen(from, to, 1), 1)
    };
    assert_eq!(of(CONFIG, 3), "workload.xml:2:1: has 2 scenarios (`IO_Scenario`), not 3");
    assert_eq!(of(CONFIG, 0), "workload.xml:2:1: has 2 scenarios (`IO_Scenario`), not 0");
    for (from, to, message) in [
        (CONFIG, "channels = 8", "ssdconfig.xml:1:1: not XML: "),
        (CONFIG, WORKLOAD, "expected `Execution_Parameter_Set`, found `MQSim_IO_Scenarios`"),
        ("<Page_Capacity>8192</Page_Capacity>", "", "`Page_Capacity` is missing"),
        (">8192</Page_C", ">8 KiB</Page_C", "`Page_Capacity` is `8 KiB`; expected a whole number"),
        (">8192</Page_C", ">5000</Page_C", "is `5000`; expected a multiple of 512"),
        (">2</Flash_Channel_Count", ">0</Flash_Channel_Count", "is `0`; expected at least 1"),
        (">256</Block_No", ">99999999999999999</Block_No", "these are too many pages"),
        (">0.2</Overp", ">1.2</Overp", "`Overprovisioning_Ratio` is `1.2`; expected 0 to 1"),
        (">RGA<", ">BEST<", "`BEST`; expected GREEDY, RGA, FIFO, RANDOM, RANDOM_P, RANDOM_PP"),
        (">PAGE_LEVEL<", ">HYBRID<", "`Address_Mapping` is `HYBRID`; expected PAGE_LEVEL"),
        (">1.0</PCIe", ">-1</PCIe", "`PCIe_Lane_Bandwidth` is `-1`; expected a rate in GB/s"),
        (">true</Static", ">yes</Static", "is `yes`; expected true, false"),
    ] {
        let error = change(from, to);
        assert!(error.contains(message), "{error}");
    }
    // Entities that expand without end are not expanded.
    let bomb = format!("<!DOCTYPE a [<!ENTITY b \"{}\">]><a>&b;</a>", "x".repeat(1000));
    assert!(of(&bomb, 1).contains("not XML"), "{}", of(&bomb, 1));
    let workload = |from: &str, to: &str| {
        assert!(WORKLOAD.contains(from), "{from}");
        imported(CONFIG, Some(&WORKLOAD.replacen(from, to, 1)), 1)
    };
    let error = workload(">16</Address_A", ">99999999999999999999</Address_A").expect_err("wrong");
    assert!(error.contains("expected a whole number"), "{error}");
    workload(">16</Address_A", ">9223372036854775808</Address_A").expect("only a warning");
    let error = workload(">16</Average", ">9223372036854775808</Average").expect_err("wrong");
    assert!(error.contains("these are more sectors than the flow has"), "{error}");
    let error = workload(">FIXED<", ">GAUSS<").expect_err("wrong");
    assert!(error.contains("`GAUSS`; expected FIXED, NORMAL"), "{error}");
    // Of a value with a comment in it, all text; of a tag given twice, the last.
    let odd = CONFIG.replacen(">8192</Page_C", ">8<!-- KiB -->192</Page_C", 1);
    let odd = odd.replacen("<Seed>", "<Page_Capacity>4096</Page_Capacity><Seed>", 1);
    let made = imported(&odd, None, 1).expect("valid");
    assert!(made.text.contains("page_size = \"8192B\""), "{}", made.text);
    let again = "`Page_Capacity` is given again; the last value is used";
    assert!(made.warnings.iter().any(|it| it.ends_with(again)), "{:?}", made.warnings);
    let unknown = CONFIG.replacen("<Seed>", "<Novelty>1</Novelty><Seed>", 1);
    let made = imported(&unknown, None, 1).expect("an unknown tag is left out");
    let novelty = "`Novelty` is left out: it is not known";
    assert!(made.warnings[0].ends_with(novelty), "{:?}", made.warnings);
}

#[test]
fn the_words_of_other_tools_have_every_tag() {
    let tags = [CONFIG, WORKLOAD].into_iter().flat_map(|text| text.split('<'));
    for tag in tags.filter_map(|it| it.split_once('>')).map(|(name, _)| name) {
        let is_value = !tag.starts_with(['?', '/']) && !tag.contains("_Set") && tag.contains('_');
        if is_value && !tag.ends_with("_Scenarios") && tag != "IO_Scenario" {
            assert!(WORDS.contains(&format!("`{tag}`")), "{tag}");
        }
    }
}
