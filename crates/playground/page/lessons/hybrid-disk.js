"use strict";
// Lesson 5: flash in front of a disk.
{
  const BLOCKS = "component.flash.blocks_per_plane", SPARE = "component.flash.over_provisioning";
  const load = ({ requests = 20000, read = "0.0", think = "0ms", warmup = 0 }) => `
[workload.generator]
kind = "hotcold"
requests = ${requests}
read = ${read}
span = "512MiB"
hot_fraction = 0.05
hot_probability = 0.9
scatter = true

[host]
mode = "closed"
queue_depth = 1
${think === "0ms" ? "" : `think_time = "${think}"\n`}${warmup ? `
[run]
warmup_requests = ${warmup}   # fills the cache; not measured
` : ""}`;
  const DISK = `
[component.disk]
preset = "hitachi-travelstar-5k160"
write_cache = false   # a write completes when the data are on the medium
`;
  const flash = ({ blocks = 1024, spare = 0.28 }) => `
[component.flash]
preset = "konanki-hybrid-flash-256mb"
blocks_per_plane = ${blocks}   # of 128 KiB
over_provisioning = ${spare}
precondition = "steady"
`;
  const disk = (title, options) => `title = "${title}"
system = "disk"
${load(options)}${DISK}`;
  const hybrid = (title, options) => `title = "${title}"
system = "hybrid"
${load(options)}
[component.hybrid]
kind = "hybrid-disk"
flash = "flash"
disk = "disk"
cleanup = "${options.cleanup || "low-watermark"}"
${flash(options)}${DISK}`;
  const flashCache = (title, options) => `title = "${title}"
system = "hybrid"
${load(options)}
[component.hybrid]
kind = "flash-cache"
flash = "flash"
disk = "disk"
over_provisioning = 0.28   # that of the flash
${flash(options)}${DISK}`;
  const policies = ["on-demand-complete", "on-demand-partial", "low-watermark"];
  const reads = { requests: 40000, read: "0.95", warmup: 20000 };

  lessons.define({
    id: "hybrid-disk",
    title: "A hybrid disk",
    steps: [
      {
        title: "Flash as a write cache",
        text: [
          `A hybrid disk has some flash in front of its platters. Like a disk without a write
            cache, it completes a write when the data survive a power failure, but that takes a
            program of flash instead of a seek and a rotation. The data are destaged to the disk
            later.`,
          `Both systems serve random writes of 4 KiB, 90 % of them to 5 % of 512 MiB. The hybrid
            has 1,024 blocks of flash, 128 MiB, in their steady state.`,
        ],
        look: "Compare the mean write latency.",
        systems: [disk("Disk", {}), hybrid("Hybrid disk", {})],
        shows: ["writeMean", "iops", "writeAmplification"],
        ask: {
          text: "By what factor does the flash reduce the mean write latency?",
          unit: "times",
          number: ([alone, both]) => alone.writeMean / both.writeMean,
          within: 0.03,
        },
        hint: `Run both systems and divide the mean write latency of the disk by that of the
          hybrid.`,
        why: `A write of 4 KiB is two programs of 0.4 ms on this flash. Most of the rest of its
          latency is garbage collection, as in lesson 1.`,
        solution: 3,
      },
      {
        title: "How much flash?",
        text: [
          `The hot pages take 5 % of 512 MiB, 25.6 MiB. A write to a page that is in flash
            replaces it there, and saves a write to the disk. The scenario begins with 128 blocks,
            16 MiB with the over-provisioned space, and the host pauses between requests, so that
            the cache can destage in the background.`,
        ],
        look: "See hits rise and destaged data fall as the hot pages begin to fit.",
        systems: [hybrid("Hybrid disk", {
          blocks: 128, requests: 80000, warmup: 60000, think: "10ms",
        })],
        vary: [BLOCKS],
        shows: ["hits", "destaged", "writeMean", "writeAmplification"],
        curve: { key: BLOCKS, figure: "destaged" },
        ask: {
          text: `Find the knee: run a number of blocks with at least 85 % hits, and half of it with
            less.`,
          goal: (last, runs) => runs.some(run => run.hits >= 85 && runs.some(other =>
            other.hits < 85 && other.value(BLOCKS) === run.value(BLOCKS) / 2)),
        },
        hint: `A block has 128 KiB, and over-provisioning leaves 1 / 1.28 of it for data. How many
          blocks hold 25.6 MiB and some cold pages?`,
        why: `A hybrid disk needs flash for the working set of writes, not for all data: the disk
          gets less to do. The latency of writes does not fall, because destaging was already in
          the background, and write amplification in the flash rises.`,
        solution: [{ [BLOCKS]: "256" }, { [BLOCKS]: "512" }],
      },
      {
        title: "The flash needs over-provisioning, too",
        text: [
          `All of the capacity of the flash is cache, and the cache is full most of the time, so
            that its FTL has only the over-provisioned space to collect garbage with. With 3 %,
            the flash holds as much cache as possible.`,
        ],
        look: "Compare the hybrid with the disk alone.",
        systems: [disk("Disk", {}), hybrid("Hybrid disk", { spare: 0.03 })],
        current: 1,
        vary: [SPARE],
        shows: ["writeMean", "writeAmplification"],
        ask: {
          text: `Which over-provisioning makes the hybrid at least twice as fast as the disk, by the
            mean write latency?`,
          goal: ([alone, both]) => both.writeMean <= alone.writeMean / 2,
        },
        hint: `Your last run of the hybrid takes more than half of the latency of the disk. Write
          amplification has to fall.`,
        why: `With too little over-provisioning the hybrid is slower than its own disk. A cache on
          flash has to balance what it holds with what it leaves free; the flash cache OP-FCL makes
          this decision while it runs.`,
        solution: { [SPARE]: "0.28" },
      },
      {
        title: "When to destage",
        text: [
          `128 blocks are too few for the hot pages, so that pages have to be destaged all the
            time. <code>on-demand-complete</code> destages everything when a write finds no free
            page, <code>on-demand-partial</code> just enough for this write, and
            <code>low-watermark</code> begins in the background while some pages are free.`,
        ],
        look: "Compare the mean with the longest latency.",
        systems: policies.map(cleanup => hybrid(cleanup, { blocks: 128, think: "10ms", cleanup })),
        shows: ["mean", "longest", "hits", "destaged"],
        ask: {
          text: "Which policy has the lowest mean latency?",
          choices: policies.map(name => `<code>${name}</code>`),
          right: runs => {
            const means = runs.map(run => run.mean);
            return means.indexOf(Math.min(...means));
          },
        },
        hint: "Run all systems, and compare the column of the mean latency.",
        why: `Destaging everything at once stops the drive for seconds. Destaging page by page has
          the lowest maximum latency, but puts a write to the disk before most writes to flash.
          Destaging in the background uses the time in which the host pauses.`,
        solution: 2,
      },
      {
        title: "Reads",
        text: [
          `A write cache holds what was written. With 95 % reads, few of the pages that are read
            are in it. The third system is a flash cache that also caches pages that were read.`,
        ],
        look: "Compare hits and the mean read latency.",
        systems: [
          disk("Disk", reads), hybrid("Hybrid disk", reads), flashCache("Flash cache", reads),
        ],
        shows: ["hits", "readMean", "writeMean"],
        ask: {
          text: "By what factor does the flash cache reduce the mean read latency of the disk?",
          unit: "times",
          number: ([alone, , cached]) => alone.readMean / cached.readMean,
          within: 0.03,
        },
        hint: "Divide the mean read latency of the disk by that of the flash cache.",
        why: `The same flash serves one workload well as a write cache, and another as a read
          cache. Look at your trace before you choose.`,
        solution: 5.5,
      },
    ],
  });
}
