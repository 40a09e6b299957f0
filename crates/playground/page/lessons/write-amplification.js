"use strict";
// Lesson 2: over-provisioning, and write amplification by formula and by simulation.
{
  const drive = ({ title, gc, spare, span = "", fill = "" }) => `title = "${title}"

[workload.generator]
kind = "uniform"
requests = 100000
block = "4KiB"
${span}
[host]
mode = "closed"
queue_depth = 1

[component.ssd]
kind = "ssd"
over_provisioning = ${spare}
ftl = { kind = "page", gc = "${gc}" }
precondition = "steady"
${fill}channels = 1
dies_per_channel = 1
planes_per_die = 1
blocks_per_plane = 2048
pages_per_block = 64
page_size = "4KiB"
read_time = "50us"
program_time = "600us"
erase_time = "3ms"
`;
  const SPARE = "component.ssd.over_provisioning";
  const spareOf = run => run.value(SPARE);

  lessons.define({
    id: "write-amplification",
    title: "Over-provisioning and write amplification",
    steps: [
      {
        title: "What a victim costs",
        text: [
          `Over-provisioning is (physical − exported capacity) / exported capacity: 0.12 means
            12 % more flash than the host can address. In the steady state the drive is full of
            data, and the over-provisioned space is spread over the blocks as invalid pages.`,
          `Let <var>u</var> be the share of valid pages in a victim of garbage collection. To
            erase it, <var>u</var> of its pages are copied, and 1 − <var>u</var> are gained for
            the host. So a page of the host costs 1 + <var>u</var> / (1 − <var>u</var>) programs:`,
          "write amplification = 1 / (1 − <var>u</var>).",
        ],
        look: "Read off the share of valid pages in a victim.",
        systems: [drive({ title: "FIFO, 12 %", gc: "fifo", spare: 0.12 })],
        shows: ["victimUtilisation", "hostPages", "erases"],
        ask: {
          text: "What is the write amplification of this drive?",
          number: ([run]) => run.writeAmplification,
          within: 0.02,
        },
        hint: `Put <var>u</var>, the share of valid pages as a fraction, into 1 / (1 −
          <var>u</var>).`,
        why: `The run counted the same: the pages programmed by the drive over those of the host.
          The formula holds for every policy and workload; what differs is <var>u</var>.`,
        solution: 4.88,
      },
      {
        title: "Random victims",
        text: [
          `With the policy <code>random</code> a victim is as full as the average block. Valid
            pages are exported over physical capacity, so with over-provisioning <var>p</var>`,
          `<var>u</var> = 1 / (1 + <var>p</var>), and write amplification = (1 + <var>p</var>) /
            <var>p</var>.`,
          "Use the formula first, and the simulator to check your prediction.",
        ],
        look: "Compare the run with the formula.",
        systems: [drive({ title: "Random victims", gc: "random", spare: 0.12 })],
        vary: [SPARE],
        shows: ["victimUtilisation", "writeAmplification"],
        ask: {
          text: "Which over-provisioning gives a write amplification of 5, within 3 %?",
          goal: ([run]) => Math.abs(run.writeAmplification / 5 - 1) <= 0.03,
        },
        hint: "Solve (1 + <var>p</var>) / <var>p</var> = 5 for <var>p</var>, set it, and run.",
        why: `Random victims are the easiest policy to calculate, and a poor one: at 12 %,
          <code>fifo</code> in step 1 had about half of the write amplification.`,
        solution: { [SPARE]: "0.25" },
      },
      {
        title: "The oldest block: a formula with a logarithm",
        text: [
          `<code>fifo</code> collects the block written longest ago, as in a circular log. While a
            block waits for its turn, uniform writes invalidate its pages one by one, and the share
            that is still valid decays exponentially. In the steady state (Desnoyers 2012)`,
          "1 / (1 + <var>p</var>) = (1 − <var>u</var>) / −ln <var>u</var>.",
          `This gives <var>p</var> for a wanted <var>u</var> directly; <var>u</var> for a given
            <var>p</var> has to be found by iteration.`,
        ],
        look: "Compare <var>u</var> with that of random victims at the same over-provisioning.",
        systems: [drive({ title: "FIFO", gc: "fifo", spare: 0.12 })],
        vary: [SPARE],
        shows: ["victimUtilisation", "writeAmplification"],
        ask: {
          text: "Which over-provisioning makes half of a victim valid, within 1 percentage point?",
          goal: ([run]) => Math.abs(run.victimUtilisation - 50) <= 1,
        },
        hint: `Put <var>u</var> = 0.5 into the formula: <var>p</var> = ln 2 / 0.5 − 1. Set it, and
          run.`,
        why: `Half of each victim is copied, and the write amplification is 2. The formula assumes
          infinitely many blocks; at these sizes the simulator agrees with it within a few %.`,
        solution: { [SPARE]: "0.39" },
      },
      {
        title: "How much is enough?",
        text: [
          `<code>greedy</code> selects the block with the fewest valid pages, which is the best
            choice for uniform writes. Formulas for it are approximations, so use the simulator.`,
          "Over-provisioning costs capacity, so a designer wants the least that suffices.",
        ],
        look: "The curve is steep where over-provisioning is small and flattens as it grows.",
        systems: [drive({ title: "Greedy", gc: "greedy", spare: 0.07 })],
        vary: [SPARE],
        shows: ["writeAmplification", "mean"],
        curve: { key: SPARE, figure: "writeAmplification" },
        ask: {
          text: `Find the least over-provisioning that brings write amplification below 2, to
            within 0.02: your runs need one below 2, and one at most 0.02 lower that is not.`,
          goal: (last, runs) => runs.some(run => run.writeAmplification < 2 && runs.some(other =>
            other.writeAmplification >= 2 && spareOf(run) - spareOf(other) > 0
            && spareOf(run) - spareOf(other) < 0.0201)),
        },
        hint: `Bisect: run a value between the largest that is too small and the smallest that is
          enough, until they are at most 0.02 apart.`,
        why: `Nearly as much as <code>fifo</code> needs by the formula, 39 %: where
          over-provisioning is ample, the policy matters little for uniform writes.`,
        solution: [{ [SPARE]: "0.36" }, { [SPARE]: "0.38" }],
      },
      {
        title: "Unused space is over-provisioning",
        text: [
          `Space that the host has never written, or has trimmed, holds no valid pages. It helps
            garbage collection as much as space that was never exported.`,
          "The host uses 80 % of the first drive. The second drive is fully used.",
        ],
        look: "The first drive has the write amplification of a drive with more over-provisioning.",
        systems: [
          drive({
            title: "80 % used", gc: "greedy", spare: 0.12,
            span: "span = \"365MiB\"   # of 457 MiB\n", fill: "precondition_fill = 0.8\n",
          }),
          drive({ title: "Fully used", gc: "greedy", spare: 0.12 }),
        ],
        current: 1,
        vary: [SPARE],
        shows: ["writeAmplification", "victimUtilisation"],
        ask: {
          text: `Which over-provisioning of the second drive gives it the write amplification of
            the first, within 3 %? Leave the first as it is.`,
          goal: ([part, full]) => spareOf(part) === 0.12
            && Math.abs(full.writeAmplification / part.writeAmplification - 1) <= 0.03,
        },
        hint: `The data in use is 0.8 of the exported capacity and the flash is 1.12 of it. What is
          (physical − used) / used?`,
        why: `1.12 / 0.8 − 1 = 0.4. This is why file systems trim, and why administrators leave a
          part of a drive unpartitioned.`,
        solution: { [SPARE]: "0.4" },
      },
    ],
  });
}
