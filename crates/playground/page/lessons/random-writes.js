"use strict";
// Lesson 1: flash from a page that is rewritten in place to reads behind garbage collection.
{
  const drive = ({ title, load, ftl = "page", precondition = "steady", depth = 1, dies = 1 }) =>
    `title = "${title}"

[workload.generator]
${load}

[host]
mode = "closed"
queue_depth = ${depth}

[component.ssd]
kind = "ssd"
ftl = "${ftl}"
precondition = "${precondition}"
over_provisioning = 0.12
channels = ${dies}
dies_per_channel = 1
planes_per_die = 1
blocks_per_plane = 512
pages_per_block = 64
page_size = "4KiB"
read_time = "50us"
program_time = "600us"
erase_time = "3ms"
`;
  const writes = "kind = \"uniform\"\nrequests = 12000\nblock = \"4KiB\"";
  const mixed = read => `kind = "uniform"\nrequests = 30000\nblock = "4KiB"\nread = ${read}`;

  lessons.define({
    id: "random-writes",
    title: "Why random writes hurt flash",
    steps: [
      {
        title: "A page cannot be overwritten",
        text: [
          `NAND flash is read and programmed by pages, here of 4 KiB. A page that has been
            programmed can be programmed again only after an erase, and an erase clears a whole
            block, here of 64 pages.`,
          `The FTL <code>in-place</code> does what a disk does: every logical page has a fixed
            address. To overwrite a page it reads the other pages of the block, erases the block,
            and programs all of them. The scenario sends random writes of 4 KiB to such a drive,
            which is full.`,
        ],
        look: "Compare the pages written by the host with the pages that the drive programs.",
        systems: [drive({
          title: "Update in place", load: writes, ftl: "in-place", precondition: "fill",
        })],
        shows: ["hostPages", "programs", "erases", "mean"],
        ask: {
          text: "How many pages does the drive program for each page that the host writes?",
          unit: "pages",
          number: ([run]) => run.programs / run.hostPages,
          within: 0.02,
        },
        hint: "Run the system, then divide the pages programmed by the pages written by the host.",
        why: `This ratio is the write amplification. Updating in place costs a block of programs
          and an erase for each page, which wears the flash out and takes tens of milliseconds.`,
        solution: 64,
      },
      {
        title: "Write elsewhere instead",
        text: [
          `A page-mapped FTL does not update in place. It programs the new version of a page
            wherever the next erased page is, enters the address in a mapping table, and marks the
            old version as invalid.`,
          `The second system has the same flash with the FTL <code>page</code>, and is new: all of
            its blocks are erased.`,
        ],
        look: "Compare requests per second, and write amplification.",
        systems: [
          drive({
            title: "Update in place", load: writes, ftl: "in-place", precondition: "fill",
          }),
          drive({ title: "Page map, new", load: writes, precondition: "none" }),
        ],
        shows: ["iops", "writeAmplification", "erases"],
        ask: {
          text: "How many times as many requests per second does the page-mapped drive serve?",
          unit: "times",
          number: ([inPlace, page]) => page.iops / inPlace.iops,
          within: 0.03,
        },
        hint: "Run both systems and divide their requests per second, the greater by the smaller.",
        why: `The new drive programs one page for each page written and has not erased any block.
          That lasts as long as there are erased blocks.`,
        solution: 74,
      },
      {
        title: "The drive in use",
        text: [
          `Once every block has been programmed, erased blocks have to be made: garbage collection
            selects a victim block, copies the pages in it that are still valid, and erases it.
            Random writes invalidate pages all over the drive, so that every victim has valid
            pages.`,
          `<code>precondition = "steady"</code> overwrites the second drive at random before the
            run, until its write amplification is constant. Measurements of SSDs begin in this
            steady state too.`,
        ],
        look: `Compare the mean latency of both drives, and open the latency breakdown in the
          report below.`,
        systems: [
          drive({ title: "New", load: writes, precondition: "none" }),
          drive({ title: "In use", load: writes }),
        ],
        shows: ["mean", "writeAmplification", "erases"],
        ask: {
          text: "What takes most of the mean latency of a write to the drive in use?",
          choices: [
            "programming the page of the host",
            "garbage collection",
            "transfer on the flash bus",
          ],
          right: ([, run]) => {
            const parts = run.results.breakdown_ns.all;
            const times = [parts.flash_program, parts.gc, parts.flash_bus];
            return times.indexOf(Math.max(...times));
          },
        },
        hint: `The latency of the new drive is that of programming one page. What has been added to
          it?`,
        why: "The write waits for copies and erases that have nothing to do with its own data.",
        solution: 1,
      },
      {
        title: "Larger random writes",
        text: [
          `Pages that are written together lie together in flash. If a request fills whole erase
            blocks, overwriting it invalidates them as a whole: the victims have few valid pages,
            and garbage collection copies little. That is why log-structured file systems and LSM
            trees write large segments.`,
          `An erase block of this drive has 64 pages of 4 KiB, 256 KiB. Change the request size
            <code>block</code> of the generator.`,
        ],
        look: "Write amplification falls as requests approach the size of a block, and pass it.",
        systems: [drive({ title: "Random writes", load: writes })],
        vary: ["workload.generator.block"],
        shows: ["writeAmplification", "rate"],
        curve: { key: "workload.generator.block", figure: "writeAmplification" },
        ask: {
          text: "Which request size brings write amplification below 1.25? Change it and run.",
          goal: ([run]) => run.writeAmplification < 1.25,
        },
        hint: `Your last run is still at 1.25 or more. Try sizes around that of an erase block, and
          above.`,
        why: `Throughput rises as write amplification falls. A request of exactly one erase block
          does not suffice, because it usually begins in the middle of one.`,
        solution: { "workload.generator.block": "\"512KiB\"" },
      },
      {
        title: "Reads wait, too",
        text: [
          `Garbage collection occupies the dies, and a read has to wait until its die is free.
            Both systems have four dies and four requests outstanding. One serves reads only; in
            the other one request in ten is a random write of 4 KiB.`,
        ],
        look: "Compare the mean and the 99th percentile of the read latency.",
        systems: [
          drive({ title: "Reads only", load: mixed("1.0"), depth: 4, dies: 4 }),
          drive({ title: "10 % writes", load: mixed("0.9"), depth: 4, dies: 4 }),
        ],
        shows: ["readMean", "readP99", "iops"],
        ask: {
          text: "By what factor do the writes raise the mean read latency?",
          unit: "times",
          number: ([reads, both]) => both.readMean / reads.readMean,
          within: 0.03,
        },
        hint: "Run both systems and divide the mean read latency with writes by that without.",
        why: `A small share of random writes decides the latency of reads. The next lesson is about
          what reduces it: over-provisioning.`,
        solution: 8.9,
      },
    ],
  });
}
