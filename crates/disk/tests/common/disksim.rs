//! Reads a drive's DiskSim 4 files (`.diskspecs`, `.model`, layout, seek curve) into the table of
//! a `hard-disk`: enough for the drives that have measured logs.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use toml::Value as Toml;

/// A value of the format.
#[derive(Clone, Debug)]
pub enum Value {
    Word(String),
    List(Vec<Value>),
    Block(BTreeMap<String, Value>),
}

impl Value {
    pub fn get(&self, key: &str) -> &Value {
        let Self::Block(block) = self else { panic!("no block around {key}") };
        block.get(key).unwrap_or_else(|| panic!("{key} is missing"))
    }
    pub fn has(&self, key: &str) -> bool {
        matches!(self, Self::Block(block) if block.contains_key(key))
    }
    pub fn word(&self) -> &str {
        let Self::Word(word) = self else { panic!("{self:?} is no word") };
        word
    }
    pub fn number(&self) -> f64 {
        self.word().parse().unwrap_or_else(|_| panic!("{self:?} is no number"))
    }
    pub fn list(&self) -> &[Value] {
        let Self::List(list) = self else { panic!("{self:?} is no list") };
        list
    }
    pub fn n(&self, key: &str) -> f64 {
        self.get(key).number()
    }
}

/// Reads `path`, or `path.gz`.
pub fn text(path: &Path) -> String {
    let mut text = String::new();
    if let Ok(mut file) = std::fs::File::open(path) {
        file.read_to_string(&mut text).expect("text");
    } else {
        let file = std::fs::File::open(format!("{}.gz", path.display())).expect("a file");
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
    }
    text
}

struct Parser<'a> {
    folder: &'a Path,
    tokens: std::iter::Peekable<std::vec::IntoIter<String>>,
}

fn tokens(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for line in text.lines() {
        let mut word = String::new();
        let end = |word: &mut String, out: &mut Vec<String>| {
            if !word.trim().is_empty() {
                out.push(word.trim().to_owned());
            }
            word.clear();
        };
        for c in line.split('#').next().unwrap_or("").chars() {
            if "{}[]=,".contains(c) {
                end(&mut word, &mut out);
                out.push(c.to_string());
            } else {
                word.push(c);
            }
        }
        end(&mut word, &mut out);
    }
    out
}

impl Parser<'_> {
    fn value(&mut self) -> Value {
        let token = self.tokens.next().expect("a value");
        if token == "[" {
            let mut list = Vec::new();
            loop {
                match self.tokens.peek().expect("]").as_str() {
                    "]" => {
                        self.tokens.next();
                        return Value::List(list);
                    }
                    "," => {
                        self.tokens.next();
                    }
                    _ => list.push(self.value()),
                }
            }
        }
        if let Some(file) = token.strip_prefix("source ") {
            return parse(&self.folder.join(file.trim()));
        }
        if self.tokens.peek().is_some_and(|next| next == "{") {
            return self.block();
        }
        Value::Word(token)
    }

    fn block(&mut self) -> Value {
        assert_eq!(self.tokens.next().as_deref(), Some("{"));
        let mut block = BTreeMap::new();
        loop {
            let key = self.tokens.next().expect("a key or }");
            match key.as_str() {
                "}" => return Value::Block(block),
                "," => continue,
                _ => {}
            }
            assert_eq!(self.tokens.next().as_deref(), Some("="), "after {key}");
            let value = self.value();
            block.insert(key, value);
        }
    }
}

/// The first block of a file.
pub fn parse(path: &Path) -> Value {
    let tokens = tokens(&text(path)).into_iter().peekable();
    let folder = path.parent().expect("a folder");
    let mut parser = Parser { folder, tokens };
    parser.tokens.next().expect("the type and name");
    parser.block()
}

fn ms(ms: f64) -> Toml {
    Toml::String(format!("{}ns", (ms * 1e6).round()))
}

fn int(n: f64) -> Toml {
    Toml::Integer(n as i64)
}

fn table<const N: usize>(pairs: [(&str, Toml); N]) -> toml::Table {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn ints(list: &[Value]) -> Toml {
    Toml::Array(list.iter().map(|n| int(n.number())).collect())
}

/// Milliseconds per sector, read and written, of the slowest bus or controller in a `.parv` file.
fn bus_ms(parv: &Path) -> (f64, f64) {
    let text = text(parv);
    let slowest = |keys: &[&str]| {
        let value = |line: &str| {
            let (key, value) = line.split_once('=')?;
            let value = value.trim().trim_end_matches(',').parse::<f64>().ok()?;
            keys.contains(&key.trim()).then_some(value)
        };
        text.lines().filter_map(value).fold(0.0, f64::max)
    };
    let controller = "Bulk sector transfer time";
    let read = slowest(&["Read block transfer time", controller]);
    (read, slowest(&["Write block transfer time", controller]))
}

/// The table of the drive described by the `.diskspecs` file `specs`, behind the buses of `parv`.
pub fn drive(specs: &Path, parv: &Path) -> toml::Table {
    let folder = specs.parent().expect("a folder");
    let spec = parse(specs);
    let model = spec.get("Model");
    let mechanics = model.get("Mechanical Model");
    let mut out = table([
        ("kind", "hard-disk".into()),
        ("rpm", format!("{}rpm", mechanics.n("Rotation speed (in rpms)")).into()),
        ("heads", int(model.n("Number of data surfaces"))),
        ("sectors", int(model.n("Block count"))),
        ("write_settle", ms(mechanics.n("Add. write settling delay"))),
        ("head_switch", ms(mechanics.n("Head switch time"))),
        ("seek", Toml::Table(seek(mechanics, folder))),
    ]);
    let layout = model.get("Layout Model");
    if layout.has("IDX") {
        index(&mut out, layout)
    } else {
        zones(&mut out, layout)
    }
    electronics(&mut out, &spec, bus_ms(parv));
    buffer(&mut out, &spec);
    out
}

fn seek(mechanics: &Value, folder: &Path) -> toml::Table {
    if mechanics.get("Seek type").word() == "hplplus10" {
        let list = |key: &str| -> Toml {
            mechanics.get(key).list().iter().map(Value::number).collect::<Vec<_>>().into()
        };
        // The sixth is the single-cylinder seek, which is the first of the ten.
        let equation = list("HPL seek equation values");
        let equation = equation.as_array().expect("a list")[..5].to_vec();
        return table([
            ("kind", "hpl-plus-10".into()),
            ("first_ten", list("First ten seek times")),
            ("values", Toml::Array(equation)),
        ]);
    }
    let text = text(&folder.join(mechanics.get("Full seek curve").word()));
    let row = |line: &str| {
        let mut columns = line.split(',').map(|column| column.trim().parse::<f64>());
        let (distance, time) = (columns.next()?.ok()?, columns.next()?.ok()?);
        Some(Toml::Array(vec![Toml::Float(distance), ms(time)]))
    };
    let points = text.lines().filter_map(row).collect();
    table([("kind", "table".into()), ("points", Toml::Array(points))])
}

const SPARING: [&str; 11] = [
    "none",
    "zone-tracks",
    "cylinder-end",
    "track-end",
    "cylinder-end-slip",
    "cylinder-front",
    "cylinder-front-slip",
    "disk-end",
    "cylinder-range",
    "zone-end",
    "zone-end-slip",
];

fn zones(out: &mut toml::Table, layout: &Value) {
    let mapping = ["cylinder", "serpentine", "serpentine-odd"];
    let number = layout.n("LBN-to-PBN mapping scheme") as usize;
    out.insert("mapping".into(), mapping[number].into());
    out.insert("sparing".into(), SPARING[layout.n("Sparing scheme used") as usize].into());
    let range = layout.n("Rangesize for sparing").max(1.0);
    out.insert("sparing_range_cylinders".into(), int(range));
    let zone = |zone: &Value| {
        Toml::Table(table([
            ("first_cylinder", int(zone.n("First cylinder number"))),
            ("last_cylinder", int(zone.n("Last cylinder number"))),
            ("sectors_per_track", int(zone.n("Blocks per track"))),
            ("first_sector_offset", Toml::Float(zone.n("Offset of first block"))),
            ("reserved_sectors", int(zone.n("Empty space at zone front"))),
            ("track_skew", Toml::Float(zone.n("Skew for track switch"))),
            ("cylinder_skew", Toml::Float(zone.n("Skew for cylinder switch"))),
            ("spares", int(zone.n("Number of spares"))),
            ("slips", ints(zone.get("slips").list())),
            ("defects", ints(zone.get("defects").list())),
        ]))
    };
    let zones = layout.get("Zones").list().iter().map(zone).collect();
    out.insert("zones".into(), Toml::Array(zones));
}

fn index(out: &mut toml::Table, layout: &Value) {
    out.insert("track_patterns".into(), ints(layout.get("TP").list()));
    out.insert("slips".into(), ints(layout.get("Slips").list()));
    let tables = layout.get("IDX").list().iter().map(|rows| {
        let (mut numbers, mut columns) = (Vec::new(), 0);
        for value in rows.list() {
            match value.word() {
                kind @ ("IDX" | "TRACK") => numbers.push(f64::from(u8::from(kind == "IDX"))),
                _ => numbers.push(value.number()),
            }
            columns += 1;
            // A row of a table has no surface.
            if columns == 10 && numbers[numbers.len() - 2] == 1.0 {
                numbers.push(0.0);
                columns = 0;
            } else if columns == 11 {
                columns = 0;
            }
        }
        Toml::Table(table([("rows", numbers.into())]))
    });
    out.insert("layout_index".into(), Toml::Array(tables.collect()));
}

fn electronics(out: &mut toml::Table, spec: &Value, bus: (f64, f64)) {
    for (key, name) in [
        ("Read hit over. after read", "read_hit_overhead"),
        ("Read hit over. after write", "read_hit_overhead_after_write"),
        ("Read miss over. after read", "read_miss_overhead"),
        ("Read miss over. after write", "read_miss_overhead_after_write"),
        ("Write hit over. after read", "write_hit_overhead"),
        ("Write hit over. after write", "write_hit_overhead_after_write"),
        ("Write miss over. after read", "write_miss_overhead"),
        ("Write miss over. after write", "write_miss_overhead_after_write"),
    ] {
        out.insert(name.into(), ms(spec.n(key)));
    }
    for (key, name) in [
        ("Read completion overhead", "read_completion_overhead"),
        ("Write completion overhead", "write_completion_overhead"),
        ("Data preparation overhead", "data_preparation_overhead"),
        ("First reselect overhead", "first_reselect_overhead"),
        ("Other reselect overhead", "other_reselect_overhead"),
        ("Read disconnect afterread", "read_disconnect_overhead"),
        ("Read disconnect afterwrite", "read_disconnect_overhead_after_write"),
        ("Write disconnect overhead", "write_disconnect_overhead"),
        ("Minimum seek delay", "minimum_seek_delay"),
    ] {
        out.insert(name.into(), ms(spec.n(key)));
    }
    if spec.n("Extra write disconnect") > 0.0 {
        for (key, name) in [
            ("Extradisc command overhead", "extra_disconnect_command_overhead"),
            ("Extradisc disconnect overhead", "extra_disconnect_overhead"),
            ("Extradisc inter-disconnect delay", "extra_disconnect_delay"),
            ("Extradisc 2nd disconnect overhead", "extra_disconnect_second_overhead"),
            ("Extradisc seek delta", "extra_disconnect_seek_delay"),
        ] {
            out.insert(name.into(), ms(spec.n(key)));
        }
    }
    out.insert("read_watermark".into(), spec.n("High (read) water mark").into());
    // The slowest of drive, bus and controller sets the pace.
    for (name, bus_ms) in [("host_rate", bus.0), ("host_write_rate", bus.1)] {
        let sector_ms = spec.n("Bulk sector transfer time").max(bus_ms);
        if sector_ms > 0.0 {
            let rate = (512.0 / (sector_ms * 1e-3)).round();
            out.insert(name.into(), format!("{rate}B/s").into());
        }
    }
    out.insert("queue_depth".into(), int(spec.n("Max queue length").max(1.0)));
}

fn buffer(out: &mut toml::Table, spec: &Value) {
    let caching = spec.n("Enable caching in buffer") > 0.0;
    let segments = spec.n("Number of buffer segments");
    out.insert("cache_segments".into(), int(if caching { segments } else { 0.0 }));
    let bytes = spec.n("Segment size (in blks)") * 512.0;
    out.insert("cache_segment_size".into(), format!("{bytes}B").into());
    if caching {
        let writes = spec.n("Maximum number of write segments");
        out.insert("cache_write_segments".into(), int(writes.min(segments)));
    }
    let ahead = ["none", "track", "cylinder", "segment", "next-track"];
    let limit = ahead[spec.n("Buffer continuous read") as usize];
    out.insert("read_ahead".into(), limit.into());
    out.insert("read_ahead_min".into(), int(spec.n("Minimum read-ahead (blks)")));
    out.insert("read_ahead_max".into(), int(spec.n("Maximum read-ahead (blks)")));
    let over = spec.n("Read-ahead over requested") != 0.0;
    out.insert("read_ahead_over_requested".into(), over.into());
    let on_hit = spec.n("Read-ahead on idle hit") > 0.0;
    out.insert("read_ahead_on_hit".into(), on_hit.into());
    let on_writes = spec.n("Allow read hits on write data") > 0.0;
    out.insert("read_hits_on_writes".into(), on_writes.into());
    out.insert("write_cache".into(), (spec.n("Fast write level") > 0.0).into());
    let prebuffering = spec.n("Allow write prebuffering") > 0.0;
    out.insert("write_prebuffering".into(), prebuffering.into());
    let level_one = spec.n("Fast write level") == 1.0;
    out.insert("write_cache_appends_only".into(), level_one.into());
    let at_once = spec.n("Stop prefetch in sector") > 0.0;
    out.insert("read_ahead_stops_in_sector".into(), at_once.into());
    let free = spec.n("Read any free blocks") > 0.0;
    out.insert("read_free_blocks".into(), free.into());
    if segments > 1.0 && caching {
        let separate = spec.n("Use separate write segment") > 0.0;
        out.insert("separate_write_segment".into(), separate.into());
    }
    out.insert("combine_writes".into(), (spec.n("Combine seq writes") > 0.0).into());
}
