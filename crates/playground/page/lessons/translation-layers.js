"use strict";
// Lesson 3: FTLs from a block map to a page map.
{
  const HOT = "kind = \"hotcold\"\nhot_fraction = 0.1\nhot_probability = 0.9";
  const SEQUENTIAL = "kind = \"sweep\"\nsequential = 1.0";
  const drive = (title, ftl, load = HOT) => `title = "${title}"

[workload.generator]
${load}
requests = 50000

[host]
mode = "closed"
queue_depth = 1

[component.ssd]
kind = "ssd"
ftl = ${ftl}
precondition = "fill"
over_provisioning = 0.12
program_order = "any"   # pages of a block in any order, as block maps need
channels = 1
dies_per_channel = 1
planes_per_die = 1
blocks_per_plane = 1024
pages_per_block = 64
page_size = "4KiB"
read_time = "50us"
program_time = "600us"
erase_time = "3ms"
`;
  const named = name => `"${name}"`;

  lessons.define({
    id: "translation-layers",
    title: "FTLs from block map to page map",
    steps: [
      {
        title: "The size of the map",
        text: [
          `A flash translation layer (FTL) maps logical to physical addresses. A page map has an
            entry for each page, and can put a page anywhere. A block map has an entry for each
            block; the place of a page in its block is fixed, so that overwriting a page moves the
            whole block.`,
          `Both systems overwrite a full drive in requests of 4 KiB; 90 % of the writes go to 10 %
            of the pages.`,
        ],
        look: "Compare the mapping tables, and what the smaller one costs.",
        systems: [drive("Block map", named("block")), drive("Page map", named("page"))],
        shows: ["mapKib", "capacityMib", "writeAmplification", "mean"],
        ask: {
          text: "How much RAM does a page map take for each GiB of capacity?",
          unit: "MiB",
          number: ([, page]) => page.mapKib / page.capacityMib,
          within: 0.05,
        },
        hint: `Divide the table of the page map by the capacity. KiB per MiB is the same as MiB per
          GiB.`,
        why: `4 bytes for each 4 KiB: a drive of 1 TiB needs 1 GiB of RAM. A block map needs
          a 64th of that, as a block has 64 pages, which is why early drives used block maps.`,
        solution: 1,
      },
      {
        title: "Log blocks and sequential writes",
        text: [
          `BAST (<code>bast</code>) keeps the block map and adds log blocks, which are mapped by
            page. Overwritten pages go to the log block of their data block. When a log block is
            needed for other data, it is merged: valid pages of both are copied to an erased block.
            A log block that was written from its first to its last page in order becomes the data
            block without a copy, by a switch merge.`,
          "The three systems overwrite the drive sequentially.",
        ],
        look: "Compare write amplification.",
        systems: [
          drive("Block map", named("block"), SEQUENTIAL),
          drive("BAST", named("bast"), SEQUENTIAL),
          drive("Page map", named("page"), SEQUENTIAL),
        ],
        shows: ["writeAmplification", "mergeCopies", "mapKib"],
        ask: {
          text: "Which FTLs overwrite sequentially at a write amplification below 1.05?",
          choices: ["the page map only", "the page map and BAST", "all three"],
          right: runs => runs.filter(run => run.writeAmplification < 1.05).length - 1,
        },
        hint: "Count the systems whose write amplification is below 1.05.",
        why: `Switch merges make log blocks as good as a page map for sequential writes, with a
          tenth of its table. Cameras and USB sticks write like this.`,
        solution: 1,
      },
      {
        title: "Random writes: BAST and FAST",
        text: [
          `With random writes BAST runs out of log blocks: each belongs to one data block, and is
            merged when only a few of its pages have been used. FAST (<code>fast</code>) shares its
            log blocks: any page may go to any of them, so that they are full when they are merged.
            The price is that one log block can take merges of many data blocks.`,
        ],
        look: "Compare pages merged, and blocks erased.",
        systems: [
          drive("BAST", named("bast")),
          drive("FAST", named("fast")),
          drive("Page map", named("page")),
        ],
        shows: ["mergeCopies", "erases", "writeAmplification", "mean"],
        ask: {
          text: "How many times as many blocks does BAST erase as FAST?",
          unit: "times",
          number: ([bast, fast]) => bast.erases / fast.erases,
          within: 0.03,
        },
        hint: "Run all systems, and divide the blocks erased by BAST by those of FAST.",
        why: `Sharing log blocks helps, and still leaves a multiple of the write amplification of a
          page map.`,
        solution: 3.8,
      },
      {
        title: "DFTL: a page map in flash",
        text: [
          `DFTL keeps the whole page map in flash and caches the entries in use. A miss reads a
            page of the map; evicting a changed entry reads and writes one. It needs as much RAM as
            the working set has entries, instead of one for each page.`,
          "The hot tenth of this drive has about 5,900 pages. Change <code>cache_entries</code>.",
        ],
        look: "See how reads of the map fall once the hot pages fit into the cache.",
        systems: [drive("DFTL", "{ kind = \"dftl\", cache_entries = 1024 }")],
        vary: ["component.ssd.ftl.cache_entries"],
        shows: ["mapReads", "mapKib", "writeAmplification"],
        curve: { key: "component.ssd.ftl.cache_entries", figure: "mapReads" },
        ask: {
          text: `Find a cache with less than one map read for each two pages written, in at most
            100 KiB of RAM.`,
          goal: ([run]) => run.mapReads < 0.5 && run.mapKib <= 100,
        },
        hint: "The cache must hold the hot pages. A cached entry takes 8 bytes.",
        why: `The cache of the map works like any other cache: it pays as far as the workload has
          locality. Caches are the subject of the next lesson.`,
        solution: { "component.ssd.ftl.cache_entries": "8192" },
      },
      {
        title: "Choose an FTL",
        text: [
          `A controller has 100 KiB of RAM for mapping tables. The workload is as before: 90 % of
            the writes go to 10 % of the pages. Change <code>ftl</code>.`,
        ],
        look: "Compare tables and write amplification of all the FTLs that you try.",
        systems: [drive("My FTL", named("fast"))],
        vary: ["component.ssd.ftl"],
        shows: ["mapKib", "writeAmplification", "mean"],
        ask: {
          text: "Which FTL stays below a write amplification of 3 with at most 100 KiB of tables?",
          goal: ([run]) => run.writeAmplification < 3 && run.mapKib <= 100,
        },
        hint: `Your last run misses one of the two goals. Which FTLs of this lesson have a small
          table, and which copy little?`,
        why: `The choice depends on the workload: for sequential writes a log-block FTL would do
          with less RAM.`,
        solution: { "component.ssd.ftl": "\"dftl\"" },
      },
    ],
  });
}
