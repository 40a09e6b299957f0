//! Small systems for tests over all registered kinds of components.

pub const SSD: &str = "kind = \"ssd\"\nchannels = 2\ndies_per_channel = 2\nblocks_per_plane = 12\n\
                   pages_per_block = 32\nover_provisioning = 0.5\nread_time = \"25us\"\n\
                   program_time = \"200us\"\nerase_time = \"1.5ms\"\nchannel_rate = \"100MB/s\"\n\
                   program_order = \"any\"\n";
pub const ZNS: &str = "kind = \"zns-ssd\"\nchannels = 2\ndies_per_channel = 2\n\
                   blocks_per_plane = 24\npages_per_block = 32\nzone_capacity = \"1000KiB\"\n\
                   zone_size = \"1MiB\"\nmax_open_zones = 3\nmax_active_zones = 5\n\
                   read_time = \"25us\"\nprogram_time = \"200us\"\nerase_time = \"1.5ms\"\n\
                   channel_rate = \"100MB/s\"\nreset_time = \"1ms\"\n";
pub const CONSTANT: &str =
    "kind = \"constant-device\"\ncapacity = \"64MiB\"\nlatency = \"100us\"\njitter = \"50us\"\n";
/// Management of a shingled disk whose cache is soon full, and cleaned between requests.
pub const SMR: &str = "kind = \"smr-disk\"\ndevice = \"disk\"\n\
                   management = { kind = \"drive-managed\", band_size = \"1MiB\", \
                   cache_size = \"4MiB\", cache_records = 100, stream_min = \"64KiB\", \
                   clean_after = \"20ms\" }\n";
pub const DISK: &str = "preset = \"seagate-cheetah-9lp\"\n";

/// The table of a component.
pub fn component(name: &str, keys: &str) -> String {
    format!("[component.{name}]\n{keys}")
}

/// A small system around one component of `kind`: the components of a scenario, the one in question
/// being `it`. A newly registered kind needs a system here.
pub fn system_around(kind: &str) -> String {
    let (ssd, disk) = (component("flash", SSD), component("disk", DISK));
    let members = |count: u32| -> String {
        (0..count).map(|at| component(&format!("m{at}"), DISK)).collect()
    };
    let array = |keys: &str| {
        let names = (0..4).map(|at| format!("\"m{at}\"")).collect::<Vec<_>>().join(", ");
        format!("{keys}members = [{names}]\n")
    };
    let nv = "[component.nv]\nkind = \"nv-cache-disk\"\nflash = \"card\"\ndisk = \"disk\"\n";
    let card = component("card", CONSTANT);
    let (keys, children) = match kind {
        "hard-disk" => (DISK.to_owned(), String::new()),
        "mems" | "curve-disk" => (format!("kind = \"{kind}\"\n"), String::new()),
        "ssd" => (SSD.to_owned(), String::new()),
        "slc-mlc-ssd" => (
            "kind = \"slc-mlc-ssd\"\ncapacity = \"16MiB\"\nmlc_size = \"20MiB\"\n\
             mlc_pages_per_block = 16\nslc_pages_per_block = 8\nthreshold_every = 50\n\
             mapping_cache = 4\nslc_size = \"256KiB\"\n"
                .to_owned(),
            String::new(),
        ),
        "zns-ssd" => (ZNS.to_owned(), String::new()),
        "constant-device" => (CONSTANT.to_owned(), String::new()),
        "hybrid-disk" | "flash-cache" => (
            format!("kind = \"{kind}\"\nflash = \"flash\"\ndisk = \"disk\"\n"),
            format!("{ssd}{disk}"),
        ),
        "nv-cache-disk" => (
            "kind = \"nv-cache-disk\"\nflash = \"card\"\ndisk = \"disk\"\n".to_owned(),
            format!("{card}{disk}"),
        ),
        "nv-cache-host" => (
            "kind = \"nv-cache-host\"\ndrive = \"nv\"\n\
             pin = [{ start = \"0B\", size = \"1MiB\" }]\n\
             power_mode = true\nspinning_min = \"1s\"\n"
                .to_owned(),
            format!("{nv}{card}{disk}"),
        ),
        "flash-backed" => {
            ("kind = \"flash-backed\"\ndrive = \"nv\"\n".to_owned(), format!("{nv}{card}{disk}"))
        }
        "bus" => ("preset = \"scsi-3-ultra-wide\"\ndevices = [\"disk\"]\n".to_owned(), disk),
        "pass-through-controller" | "queueing-controller" => (
            format!("kind = \"{kind}\"\nbuses = [\"scsi\"]\n"),
            format!(
                "[component.scsi]\npreset = \"scsi-3-ultra-wide\"\ndevices = [\"disk\"]\n{disk}"
            ),
        ),
        "io-queue" => (format!("kind = \"{kind}\"\ndevice = \"disk\"\n"), disk),
        "smr-disk" => (SMR.to_owned(), disk),
        "memory-cache" => {
            (format!("kind = \"{kind}\"\ndevice = \"disk\"\nsize = \"1MiB\"\n"), disk)
        }
        "cache-device" => (
            format!("kind = \"{kind}\"\ndevices = [\"card\", \"disk\"]\n"),
            format!("{card}{disk}"),
        ),
        "concat" | "stripe" | "raid1" | "raid10" | "raid4" | "raid5" | "raid6" => {
            (array(&format!("kind = \"{kind}\"\n")), members(4))
        }
        "log-structured" => (
            "kind = \"log-structured\"\ndevice = \"zoned\"\nover_provisioning = 0.9\n\
             idle_after = \"1ms\"\nidle_free_segments = 2\n"
                .to_owned(),
            component("zoned", ZNS),
        ),
        "declustered" => (array("kind = \"declustered\"\n"), members(4)),
        other => panic!("describe a small system around a `{other}` here"),
    };
    format!("{}{children}", component("it", &keys))
}
