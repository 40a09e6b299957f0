"use strict";
// Lesson 4: a cache in front of a disk, and its miss-ratio curve.
{
  const SIZE = "component.cache.size", POLICY = "component.cache.replacement";
  const system = (title, load, size, policy = "lru") => `title = "${title}"

[workload.generator]
${load}
requests = 100000

[run]
warmup_requests = 60000   # fills the cache; not measured

[host]
mode = "closed"
queue_depth = 1

[component.cache]
kind = "memory-cache"
device = "disk"
size = "${size}"
replacement = "${policy}"

[component.disk]
preset = "hitachi-travelstar-5k160"
`;
  const UNIFORM = "kind = \"uniform\"\nread = 1.0\nspan = \"64MiB\"";
  const HOT = "kind = \"hotcold\"\nread = 1.0\nspan = \"64MiB\"\nhot_fraction = 0.1\n"
    + "hot_probability = 0.9\nscatter = true";
  const ZIPF = "kind = \"zipf\"\nread = 1.0\nspan = \"64MiB\"\ntheta = 0.9";
  const LOOP = "kind = \"sequence\"\npasses = 100\n"
    + "phases = [{ op = \"read\", length = \"32MiB\", request = \"4KiB\" }]";

  lessons.define({
    id: "cache",
    title: "A cache and its miss-ratio curve",
    steps: [
      {
        title: "Uniform reads",
        text: [
          `A memory cache stands in front of a disk. The workload reads pages of 4 KiB, all of 64
            MiB with the same probability. Every page in the cache is as useful as any other,
            whatever the replacement policy.`,
        ],
        look: "Predict the hit ratio from the sizes of the cache and of the data before you run.",
        systems: [system("Uniform reads", UNIFORM, "16MiB")],
        vary: [SIZE],
        shows: ["hits", "misses", "mean"],
        curve: { key: SIZE, figure: "misses" },
        ask: {
          text: "Which cache size gives a hit ratio between 48 and 52 %?",
          goal: ([run]) => run.hits >= 48 && run.hits <= 52,
        },
        hint: "The hit ratio is the share of the data that fits: size / 64 MiB.",
        why: `Without locality the miss-ratio curve is a straight line: a cache that holds half of
          the data hits half of the time.`,
        solution: { [SIZE]: "\"32MiB\"" },
      },
      {
        title: "A working set",
        text: [
          `Real workloads have locality. Here 90 % of the reads go to 10 % of the pages, 6.4 MiB,
            which are scattered over the same 64 MiB.`,
          `The miss ratio over the cache size is the miss-ratio curve. Where it bends, at its
            knee, the working set begins to fit.`,
        ],
        look: "Run several sizes from 1 MiB on, and see where the curve bends.",
        systems: [system("Working set", HOT, "2MiB")],
        vary: [SIZE],
        shows: ["hits", "misses", "mean"],
        curve: { key: SIZE, figure: "misses" },
        ask: {
          text: `Find the knee: run a size with at least 80 % hits, and half of that size with
            less.`,
          goal: (last, runs) => runs.some(run => run.hits >= 80
            && runs.some(other => other.hits < 80 && other.value(SIZE) === run.value(SIZE) / 2)),
        },
        hint: "The hot pages take 6.4 MiB. Try the powers of two on both sides of it.",
        why: `Beyond the knee, more cache brings little: what is left to hit are the rare reads of
          cold pages.`,
        solution: [{ [SIZE]: "\"4MiB\"" }, { [SIZE]: "\"8MiB\"" }],
      },
      {
        title: "From the miss ratio to the latency",
        text: [
          `The mean latency is <var>h</var> · (hit time) + <var>m</var> · (miss time), with the
            hit ratio <var>h</var> and the miss ratio <var>m</var> = 1 − <var>h</var>. A hit in
            memory takes no time in this model, so the misses decide.`,
        ],
        look: "Read off the misses and the mean latency.",
        systems: [system("Working set, 8 MiB", HOT, "8MiB")],
        shows: ["misses", "mean"],
        ask: {
          text: "How long does a miss take on average?",
          unit: "ms",
          number: ([run]) => run.mean / (run.misses / 100),
          within: 0.03,
        },
        hint: "Divide the mean latency by the miss ratio, as a fraction.",
        why: `Most of it is half a rotation, 5.6 ms at 5,400 rpm; the rest is a short seek and
          overhead. By the same formula, going from 90 to 95 % hits halves the mean latency.`,
        solution: 7,
      },
      {
        title: "A skewed workload without a knee",
        text: [
          `The popularity of files, records and web pages often follows a power law: the
            <var>k</var>-th most popular has a probability in proportion to 1 /
            <var>k</var><sup>θ</sup> (Zipf's law), here with θ = 0.9. There is no working set that
            fits or does not.`,
          "The four systems have caches of 2, 4, 8 and 16 MiB.",
        ],
        look: "How many percentage points of hits does each doubling of the cache bring?",
        systems: ["2MiB", "4MiB", "8MiB", "16MiB"].map(size => system(`Zipf, ${size}`, ZIPF, size)),
        shows: ["hits", "misses", "mean"],
        curve: { key: SIZE, figure: "misses" },
        ask: {
          text: "What does doubling the cache do to the hit ratio?",
          choices: [
            "It doubles it.",
            "It adds about as many percentage points at each size.",
            "It adds less than half as many percentage points as the doubling before.",
          ],
          right: runs => {
            const hits = runs.map(run => run.hits);
            const gains = hits.slice(1).map((hit, at) => hit - hits[at]);
            if (hits[3] > 6 * hits[0]) return 0;
            return Math.min(...gains) > 0.5 * Math.max(...gains) ? 1 : 2;
          },
        },
        hint: "Subtract the hit ratios of neighbouring sizes.",
        why: `The hit ratio grows about as the logarithm of the size: each further percentage point
          costs more cache than the one before.`,
        solution: 1,
      },
      {
        title: "A loop defeats LRU",
        text: [
          `A program reads 32 MiB sequentially, over and over, and the cache of 24 MiB replaces
            the least recently used page (<code>lru</code>). Which page will be needed furthest in
            the future? In a loop it is the one just used. Change <code>replacement</code>.`,
        ],
        look: "Compare the hits of LRU with the share of the loop that fits.",
        systems: [system("Loop", LOOP, "24MiB")],
        vary: [POLICY],
        shows: ["hits", "mean"],
        ask: {
          text: "Which policy reaches at least 50 % hits?",
          goal: ([run]) => run.hits >= 50,
        },
        hint: `A policy that evicts in the order of the loop always evicts the page needed soonest.
          Try policies that do not.`,
        why: `LRU evicts each page shortly before it is read again. LIRS is one of the policies
          that were designed to withstand loops.`,
        solution: { [POLICY]: "\"random\"" },
      },
    ],
  });
}
