"""Measures the speed of whole runs of the program on one core.

    bench.py PROGRAM [WORD...]      only cases whose names contain one of the words

Each case runs a short and a long workload and divides the differences, so that start-up, building
and preconditioning do not count. Rates are per processor time, medians of five. Instructions are
counted by callgrind where valgrind is installed (`-` otherwise), with shorter workloads and, for
flash, a smaller device.
"""

import gzip
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 5
PIN = ["taskset", "-c", "0"] if shutil.which("taskset") else []

HOST = '[host]\nmode = "closed"\nqueue_depth = {depth}\n'
DISK = HOST + '[component.disk]\npreset = "{preset}"\n'
SPTF = DISK + 'cache_segments = 0\ncache_write_segments = 0\nscheduler = "sptf"\nqueue_depth = 32\n'
# As many requests as given wait in the host, one is at the drive.
HOST_SPTF = """[host]
mode = "closed"
queue_depth = 1
outstanding = {depth}
scheduler = {{ kind = "sptf", window = {depth} }}
[component.disk]
preset = "{preset}"
"""
SSD = HOST + """[component.ssd]
kind = "ssd"
channels = 8
dies_per_channel = 4
planes_per_die = 2
blocks_per_plane = {blocks}
pages_per_block = 256
page_size = "4KiB"
over_provisioning = {spare}
timing = "{timing}"
copy_back = {{ within = "die" }}
channel_rate = "800MB/s"
controller = {{ host_rate = "3360MB/s" }}
read_time = "30us"
program_time = "185us"
erase_time = "3ms"
endurance = 100000
precondition = "steady"
"""
HYBRID = 'system = "hybrid"\n' + HOST + """[component.hybrid]
kind = "hybrid-disk"
flash = "flash"
disk = "disk"
cleanup = "on-demand-complete"
[component.flash]
preset = "konanki-hybrid-flash-256mb"
[component.disk]
preset = "generic-sata-7200-250gb"
"""
# The SSD of the comparison with other simulators: 16,384 blocks, three quarters exported.
PEER_SSD = HOST.format(depth=32) + """[component.ssd]
kind = "ssd"
channels = 8
dies_per_channel = 1
planes_per_die = 1
blocks_per_plane = 2048
pages_per_block = 64
page_size = "4KiB"
over_provisioning = 0.3333
ftl = {ftl}
timing = "{timing}"
read_time = "25us"
program_time = "200us"
erase_time = "1.5ms"
channel_rate = "200MB/s"
precondition = "{precondition}"
"""
PEER_ARRAY = 'system = "array"\n' + HOST.format(depth=8) + """[component.array]
kind = "{kind}"
members = ["a", "b", "c", "d", "e"]
""" + "".join(f'[component.{name}]\npreset = "seagate-cheetah-9lp"\n' for name in "abcde")
CONSTANT = HOST + """[component.device]
kind = "constant-device"
capacity = "1TiB"
latency = "10us"
"""
UNIFORM = 'kind = "uniform", read = {read}'
MILLION = 1_000_000


def ssd(spare, timing="interleaved"):
    """A device of 64 GiB, and one of 4 GiB for counting instructions."""
    def text(gib):
        # Blocks of 1 MiB, in 64 planes.
        blocks = -(-int(gib * 1024 * (1 + spare)) // 64)
        return SSD.format(depth=32, blocks=blocks, spare=spare, timing=timing)
    return text(64), text(4)


def disk(preset, text=DISK, depth=1):
    return (text.format(preset=preset, depth=depth),) * 2


def peer_ssd(ftl, timing="interleaved", precondition="steady"):
    return (PEER_SSD.format(ftl=ftl, timing=timing, precondition=precondition),) * 2


# What a folder in the command line is replaced with: one that is deleted afterwards.
FOLDER = "FOLDER"
OUT = ["--out", FOLDER, "--force"]

# Among the options of a case: its command, instead of `run`.
COUNT = "write-amplification"

# Name, system (and a small one), generator without its count, requests of the long run, options.
CASES = [
    ("disk 9LP, FCFS depth 1", disk("seagate-cheetah-9lp"), UNIFORM.format(read=1), 3 * MILLION),
    ("disk 15K.5, FCFS depth 1", disk("seagate-cheetah-15k5-146gb"), UNIFORM.format(read=1),
     3 * MILLION),
    ("disk SATA, FCFS depth 1", disk("generic-sata-7200-250gb"), UNIFORM.format(read=1),
     3 * MILLION),
    ("disk SATA, SPTF depth 32", disk("generic-sata-7200-250gb", SPTF, 32), UNIFORM.format(read=1),
     2 * MILLION),
    ("disk 15K.5, SPTF depth 32", disk("seagate-cheetah-15k5-146gb", SPTF, 32),
     UNIFORM.format(read=1), 2 * MILLION),
    ("disk 9LP, SPTF of 128 waiting", disk("seagate-cheetah-9lp", HOST_SPTF, 128),
     UNIFORM.format(read=1), MILLION),
    ("disk 9LP, SPTF of 512 waiting", disk("seagate-cheetah-9lp", HOST_SPTF, 512),
     UNIFORM.format(read=1), MILLION),
    ("SSD 64 GiB, 28 % spare", ssd(0.28), UNIFORM.format(read=0), 8 * MILLION),
    ("SSD 64 GiB, 7 % spare", ssd(0.07), UNIFORM.format(read=0), 4 * MILLION),
    ("SSD 64 GiB, 28 %, untimed", ssd(0.28, "none"), UNIFORM.format(read=0), 8 * MILLION),
    ("hybrid, half of it writes", (HYBRID.format(depth=4),) * 2,
     UNIFORM.format(read=0.5) + ', span = "4GiB"', MILLION),
    ("peers' SSD, page map, writes", peer_ssd('"page"'), UNIFORM.format(read=0), 4 * MILLION),
    ("peers' SSD, page map, untimed", peer_ssd('{ kind = "page", gc_pace = "blocking" }', "none"),
     UNIFORM.format(read=0), 8 * MILLION),
    ("peers' SSD, page map, counted", peer_ssd('{ kind = "page", gc_pace = "blocking" }', "none"),
     UNIFORM.format(read=0), 32 * MILLION, COUNT),
    ("peers' SSD, DFTL, counted", peer_ssd('"dftl"', "none"), UNIFORM.format(read=0), 8 * MILLION,
     COUNT),
    ("peers' SSD, writes, --out", peer_ssd('"page"'), UNIFORM.format(read=0), 2 * MILLION, *OUT),
    ("peers' SSD, writes, --requests", peer_ssd('"page"'), UNIFORM.format(read=0), 2 * MILLION,
     *OUT, "--requests"),
    ("peers' SSD, writes, --verify", peer_ssd('"page"'), UNIFORM.format(read=0), 2 * MILLION,
     "--verify"),
    ("peers' SSD, page map, reads", peer_ssd('"page"'), UNIFORM.format(read=1), 8 * MILLION),
    ("peers' SSD, DFTL, writes", peer_ssd('"dftl"'), UNIFORM.format(read=0), 2 * MILLION),
    ("peers' SSD, FAST, writes", peer_ssd('"fast"', precondition="fill"), UNIFORM.format(read=0),
     100_000),
    ("peers' SSD, BAST, writes", peer_ssd('"bast"', precondition="fill"), UNIFORM.format(read=0),
     100_000),
    ("peers' array, RAID 5", (PEER_ARRAY.format(kind="raid5"),) * 2, UNIFORM.format(read=0.67),
     MILLION),
    ("peers' array, RAID 0", (PEER_ARRAY.format(kind="stripe"),) * 2, UNIFORM.format(read=0.67),
     MILLION),
    ("generator uniform, no device", (CONSTANT.format(depth=1),) * 2, UNIFORM.format(read=0.7),
     4 * MILLION),
    ("generator zipf, no device", (CONSTANT.format(depth=1),) * 2, 'kind = "zipf"', 4 * MILLION),
]


def run(command):
    """Processor seconds, peak memory in MiB, output."""
    done = subprocess.Popen(command, stdout=subprocess.PIPE)
    output = done.stdout.read()
    _, status, usage = os.wait4(done.pid, 0)
    done.returncode = os.waitstatus_to_exitcode(status)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output


def instructions(command, folder):
    counts = folder / "callgrind"
    tool = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={counts}"]
    run([*PIN, *tool, *command[len(PIN) :]])
    for line in counts.read_text().splitlines():
        if line.startswith(("summary:", "totals:")):
            return int(line.split()[1])
    sys.exit("callgrind reported no total")


def scenario(folder, text, generator, requests):
    path = folder / f"case-{requests}.toml"
    system, newline, rest = text.partition("\n") if text.startswith("system") else ("", "", text)
    workload = f"[workload]\ngenerator = {{ {generator}, requests = {requests} }}\n"
    path.write_text(system + newline + workload + rest)
    return path


def simulate(program, folder, case):
    name, (text, small), generator, requests, *given = case
    verb = COUNT if COUNT in given else "run"
    given = [str(folder / "out") if it == FOLDER else it for it in given if it != COUNT]
    def command(text, count, *options):
        path = scenario(folder, text, generator, count)
        options = [*given, *options]
        return [*PIN, program, verb, *options, "--json", "--progress", "never", path]
    short = requests // 4
    # The first run brings a device to its steady state, the others take it from the cache.
    run(command(text, 1))
    rates, peak, document = [], 0, {}
    for _ in range(ROUNDS):
        before, _, _ = run(command(text, short))
        after, memory, output = run(command(text, requests))
        rates.append((requests - short) / max(after - before, 1e-9))
        peak, document = max(peak, memory), json.loads(output)
    counted = None
    if shutil.which("valgrind"):
        few = 100_000
        low, high = (
            instructions(command(small, count, "--no-cache"), folder) for count in (few, 3 * few)
        )
        counted = (high - low) / (2 * few)
    amplification = document.get("totals", document).get("write_amplification")
    row(name, statistics.median(rates), counted, peak, amplification)


def traces(program, folder):
    """Reading traces: the native format, and compressed text, whole files of two lengths."""
    for name, ending, task in (
        ("native trace, read", "hst", "check"),
        ("native trace, profiled", "hst", "info"),
        ("gzipped text, read", "csv.gz", "check"),
        ("gzipped text, profiled", "csv.gz", "info"),
    ):
        if not wanted(name):
            continue
        counts = (10**5, 10**6, 4 * 10**6)
        paths = {count: trace(program, folder, ending, count) for count in counts}

        def command(count):
            return [*PIN, program, "trace", task, paths[count]]
        rates, peak = [], 0
        for _ in range(ROUNDS):
            before, _, _ = run(command(10**6))
            after, memory, _ = run(command(4 * 10**6))
            rates.append(3 * 10**6 / max(after - before, 1e-9))
            peak = max(peak, memory)
        row(name, statistics.median(rates), None, peak, None)


def trace(program, folder, ending, records):
    draw, path = random.Random(records), folder / f"trace-{records}.csv.gz"
    if not path.exists():
        with gzip.open(path, "wt", compresslevel=1) as out:
            for number in range(records):
                op = "Read" if draw.random() < 0.4 else "Write"
                out.write(f"{128166372003061629 + number * 1000},host,0,{op},"
                          f"{draw.randrange(1 << 24) * 4096},4096,100\n")
    if ending == "csv.gz":
        return path
    native = path.with_suffix("").with_suffix(".hst")
    if not native.exists():
        run([program, "trace", "convert", "--progress", "never", path, native])
    return native


def row(name, rate, counted, peak, amplification):
    instructions = "-" if counted is None else f"{counted:,.0f}"
    written = "-" if amplification is None else f"{amplification:.3f}"
    print(f"| {name:<30} | {rate:>12,.0f} | {instructions:>12} | {peak:>8,.0f} | {written:>8} |",
          flush=True)


def wanted(name):
    return not sys.argv[2:] or any(word in name for word in sys.argv[2:])


def main():
    program = Path(sys.argv[1]).resolve()
    print(f"Load of the machine: {os.getloadavg()[0]:.2f}\n")
    print(f"| {'case':<30} | {'per CPU-s':>12} | {'instr. each':>12} | {'peak MiB':>8} | "
          f"{'write a.':>8} |")
    print(f"|{'-' * 32}|{'-' * 13}:|{'-' * 13}:|{'-' * 9}:|{'-' * 9}:|")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HYBRIDSIM_CACHE"] = str(Path(folder) / "cache")
        for case in filter(lambda case: wanted(case[0]), CASES):
            simulate(program, Path(folder), case)
        traces(program, Path(folder))


if __name__ == "__main__":
    main()
