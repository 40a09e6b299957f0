// The report: builds the charts from the data of the runs.
const RUNS = JSON.parse(document.getElementById("data").textContent)
  .map((run, index) => ({ ...run, index }));
const DRAWN = RUNS.filter(run => run.pictures);
const MANY = RUNS.length > 1;

const seriesOf = run => run.pictures.series;
const endSeconds = run => Math.max(run.pictures.end_ns / 1e9, 1e-9);
const longest = () => Math.max(...DRAWN.map(endSeconds));
const label = (run, text) => MANY ? (text ? `${run.name}, ${text}` : run.name) : text || run.name;
const has = values => values.some(value => value > 0);
const state = { axis: "time", kind: "all" };
const timed = []; // redo when the time axis changes

function start() {
  theme(swatches);
  if (DRAWN.length > 0) {
    const ends = DRAWN.map(endSeconds);
    if (Math.max(...ends) > 5 * Math.min(...ends)) state.axis = "share";
    latency();
    overTime();
    addresses();
    latencyBreakdown();
    flash();
    caches();
    disks();
    energy();
  }
  controls();
  navigation();
  swatches();
  setTimeout(report, 60);
}

// ---- latency

function distribution(run, kind) {
  const points = run.pictures.latency_points[kind] || [];
  const total = points.length ? points[points.length - 1][1] : 0;
  return { points, total };
}

function latency() {
  if (!DRAWN.some(run => distribution(run, "all").total > 0)) return;
  const grid = section("latency", "Latency", "From arrival to completion, of requests completed after the warm-up.");
  const p = run => run.results.latency_ns.all;
  const p99 = all => all.count >= 1000 ? `, 99th percentile ${quantity("ns", all.p99)}` : "";
  const words = perRun(DRAWN, run => `median ${quantity("ns", p(run).p50)}${p99(p(run))}, maximum ${quantity("ns", p(run).max)}`);
  const x = {
    label: "Latency", name: "Latency", format: value => quantity("ns", value, 2), exact: value => quantity("ns", value),
    scale: logScale,
    axis: logAxis({ space: 40 }),
  };
  const cdf = figure(grid, {
    id: "cdf", title: "Latency distribution (CDF)", caption: words,
    table: () => distributionTable(),
  });
  const cdfLines = lines(cdf, {
    x, series: cdfSeries(),
    y: { label: "Share of requests", format: value => percent(value, 3), exact: value => percent(value, 4), scale: { range: [0, 1.02] } },
  });
  const ccdf = figure(grid, {
    id: "ccdf", title: "Latency tail (complementary CDF)", table: () => distributionTable(),
    caption: "Share of requests that take longer than this latency, as far as ten requests exceed it.",
  });
  const ccdfLines = lines(ccdf, {
    x, series: ccdfSeries(),
    y: { label: "Share of slower requests", format: share, exact: value => percent(value, 2), scale: { distr: 3, log: 10, range: (u, low, high) => [10 ** Math.floor(Math.log10(low > 0 && low < 1 ? low * .999 : .1)), 1] }, axis: logAxis({}) },
  });
  const kinds = [["all", "All"], ["read", "Reads"], ["write", "Writes"]].filter(([kind]) => DRAWN.some(run => distribution(run, kind).total > 0));
  if (kinds.length > 2) cdf.top.append(choice("kind", "Requests shown", kinds, "all", kind => {
    state.kind = kind;
    cdfLines.replace(cdfSeries());
    ccdfLines.replace(ccdfSeries());
  }));
  latencyMaps(grid);
}

// A distribution is a step function; the first step starts at `before`.
function stepsSeries(run, text, before, least, value) {
  const { points, total } = distribution(run, state.kind);
  const shown = points.filter(([ns, seen]) => ns > 0 && total - seen >= least(total));
  const x = shown.map(([ns]) => ns), y = shown.map(([, seen]) => value(seen, total));
  if (x.length > 0) {
    x.unshift(x[0] * .9999);
    y.unshift(before);
  }
  return { run: run.index, label: label(run, MANY ? "" : text), x, y, stepped: true };
}

function cdfSeries() {
  return DRAWN.map(run => stepsSeries(run, "Done", 0, () => 0, (seen, total) => seen / total));
}

function ccdfSeries() {
  const least = total => total >= 1000 ? 10 : 1;
  return DRAWN.map(run => stepsSeries(run, "Slower", 1, least, (seen, total) => (total - seen) / total));
}

function distributionTable() {
  const rows = [.5, .9, .95, .99, .999, .9999, 1].map(wanted => [percent(wanted, 6), ...DRAWN.map(run => {
    const { points, total } = distribution(run, state.kind);
    if (wanted < 1 && total * (1 - wanted) < 10) return NONE;
    const point = points.find(([, seen]) => seen >= total * wanted);
    return point ? quantity("ns", point[0], 4) : NONE;
  })]);
  return { head: ["Share of requests", ...DRAWN.map(run => run.name)], rows };
}

function latencyMaps(grid) {
  const whole = DRAWN.map(run => unpack(seriesOf(run).latency_map));
  const known = whole.filter(map => map.rows > 0);
  if (known.length === 0) return;
  const low = Math.max(1, Math.min(...known.map(map => map.bounds[0] || 1)));
  const high = Math.max(...known.map(map => map.bounds[map.rows]));
  const unpacked = new Map(DRAWN.map((run, at) => [run.index, coarsen(whole[at], low, high, true)]));
  const most = Math.max(...[...unpacked.values()].map(map => map.most));
  const place = figure(grid, {
    id: "latency-map", title: "Latency over time", wide: true,
    caption: `Number of requests by completion time and latency, on a logarithmic colour scale up to ${number(most)}. Horizontal bands are requests of equal latency, vertical stripes are stalls.`,
    table: () => timeTable([["median", "latency_ns_p50", ns], ["p99", "latency_ns_p99", ns], ["longest", "latency_ns_max", ns]]),
  });
  const ns = value => quantity("ns", value);
  maps(place, DRAWN, index => {
    const run = DRAWN.find(run => run.index === index), map = unpacked.get(index), series = seriesOf(run);
    return {
      layers: [{ map, colour: ramp, alpha: () => 1, most, columnSeconds: series.bucket_ns * map.step / 1e9 }],
      low, high, log: true, ...mapTime(run),
      tick: { format: value => quantity("ns", value) },
    };
  }, () => rampKey("1", `${number(most)} requests per cell`));
}

// Runs of similar length share a time axis; others have their own.
function mapTime(run) {
  const ends = DRAWN.map(endSeconds);
  const shared = Math.max(...ends) <= 3 * Math.min(...ends);
  const end = shared ? Math.max(...ends) : endSeconds(run);
  const instants = [
    { seconds: run.pictures.warmup_end_ns / 1e9, dash: [3, 4] },
    ...run.pictures.marks.map(mark => ({ seconds: mark.ns / 1e9, dash: [] })),
  ];
  return { endSeconds: end, timeUnit: unitFor("s", end), instants };
}

// ---- over time

// Mid-points of the intervals, on the selected axis.
function times(run, count) {
  const width = seriesOf(run).bucket_ns / 1e9, end = endSeconds(run);
  const scale = state.axis === "share" ? 1 / end : 1;
  return Array.from({ length: count }, (_, at) => Math.min((at + .5) * width, end) * scale);
}

function timeAxis() {
  if (state.axis === "share") {
    return { label: "Share of the run", name: "Share of the run", format: value => percent(value), exact: value => percent(value, 3), scale: { range: [0, 1] } };
  }
  const [unit, name] = unitFor("s", longest());
  return {
    label: `Simulated time (${name})`, name: "Time", format: value => number(value / unit, 4), exact: value => quantity("s", value, 4),
    scale: { range: (u, low, high) => [0, high > 0 ? high : 1] },
    axis: { splits: (u, at, low, high, space) => linearTicks(low / unit, high / unit, Math.max(2, u.width / 110)).map(value => value * unit) },
  };
}

// Ends of warm-ups, failures, rebuilds and changes of thermal throttling.
function marks() {
  return DRAWN.flatMap(run => {
    const { warmup_end_ns: warmup, end_ns: end, marks } = run.pictures;
    const mark = (ns, text) => ({ run: run.index, x: ns / (state.axis === "share" ? end : 1e9), text });
    return [...warmup > 0 ? [mark(warmup)] : [], ...marks.map(({ ns, what }) => mark(ns, words(what)))];
  });
}

// Lines of the components of one run: by colour with one run, else by dash.
const apart = at => MANY ? { dash: DASHES[at % DASHES.length] } : { tint: at, dash: DASHES[at % DASHES.length] };
// One line per component, named where a run has several or there is one run.
const partLines = (gauges, y) => gauges.map((gauge, at) => gauges.length > 1 ? { text: gauge.path, y: y(gauge), ...apart(at) }
  : { text: MANY ? "" : gauge.path, y: y(gauge) });

// A line chart over time. `make(run, view)` gives the lines of a run: [{text, y, ...}]. `views`
// are [key, label] to choose from; `log` offers a logarithmic scale, "first" starts with it.
function timeChart(grid, { views = [], log, ...options }, y, make) {
  const place = figure(grid, options);
  let view = views.length > 0 ? views[0][0] : undefined, isLog = log === "first";
  const shown = values => isLog ? values.map(value => value > 0 ? value : null) : values;
  const build = () => DRAWN.flatMap(run => make(run, view).map(({ text, y, ...rest }) => ({
    run: run.index, label: label(run, text), x: times(run, y.length), y: shown(y), dash: MANY ? dashOf(run.index) : [], gaps: isLog, ...rest,
  })));
  const side = () => isLog ? { ...y, scale: logScale, axis: logAxis({}) } : y;
  const chart = lines(place, { x: timeAxis(), y: side(), series: build(), marks: marks() });
  const redo = () => {
    chart.marks(marks());
    chart.replace(build(), timeAxis(), side());
  };
  timed.push(redo);
  const choices = element("div", { className: "choices" });
  if (views.length > 0) choices.append(choice(options.id + "-view", "Shown", views, view, value => {
    view = value;
    redo();
  }));
  if (log) choices.append(scaleChoice(options.id, isLog, value => {
    isLog = value;
    redo();
  }));
  place.top.append(choices);
}

// Rows of [time, a column per run and row of `columns`: [title, key or function, format]].
function timeTable(columns) {
  const value = (run, key, at) => (typeof key === "function" ? key(run) : seriesOf(run)[key])[at];
  const longestRun = DRAWN.reduce((best, run) => endSeconds(run) > endSeconds(best) ? run : best);
  const width = seriesOf(longestRun).bucket_ns / 1e9;
  const rows = Array.from({ length: Math.ceil(endSeconds(longestRun) / width) }, (_, at) => [
    quantity("s", at * width, 4),
    ...DRAWN.flatMap(run => columns.map(([, key, format]) => {
      const own = Math.floor(at * width / (seriesOf(run).bucket_ns / 1e9));
      const found = value(run, key, own);
      return found === undefined || found === null ? NONE : format(found);
    })),
  ]);
  return { head: ["From", ...DRAWN.flatMap(run => columns.map(([title]) => label(run, title)))], rows };
}

const bucketSeconds = (run, at, count) => {
  const width = seriesOf(run).bucket_ns / 1e9;
  return at === count - 1 ? Math.max(endSeconds(run) - at * width, width / 1000) : width;
};
const perSecond = (run, values) => values.map((value, at) => {
  const seconds = bucketSeconds(run, at, values.length);
  return at === values.length - 1 && seconds < seriesOf(run).bucket_ns / 2e9 ? null : value / seconds;
});
const added = (one, other) => one.map((value, at) => value + other[at]);

function overTime() {
  const grid = section("time", "Over time", "Means over equal intervals. A dashed vertical line marks the end of a run's warm-up, a solid one a failure, a rebuild or a change of thermal throttling.");
  const rate = value => number(value, 4);
  percentiles(grid);
  timeChart(grid, {
    id: "throughput", title: "Throughput", log: true,
    caption: perRun(RUNS, run => `${number(run.results.throughput.iops, 4)} per second on average`),
    table: () => timeTable([["requests/s", run => perSecond(run, added(seriesOf(run).reads, seriesOf(run).writes)), rate]]),
  }, { label: "Requests per second", format: rate, exact: value => rate(value) + "/s" }, run => {
    const { reads, writes } = seriesOf(run);
    return MANY ? [{ y: perSecond(run, added(reads, writes)) }]
      : [{ text: "Reads", y: perSecond(run, reads), tint: 0 }, { text: "Writes", y: perSecond(run, writes), tint: 1, dash: DASHES[1] }];
  });
  const bytes = run => perSecond(run, added(seriesOf(run).read_bytes, seriesOf(run).write_bytes)).map(value => value === null ? null : value / 1e6);
  timeChart(grid, {
    id: "bandwidth", title: "Bandwidth", log: true,
    caption: perRun(RUNS, run => `${quantity("rate", run.results.throughput.bytes_per_s)} on average`),
    table: () => timeTable([["MB/s", bytes, rate]]),
  }, { label: "MB/s, reads and writes", format: rate, exact: value => number(value) + " MB/s" }, run => [{ text: MANY ? "" : "Reads and writes", y: bytes(run) }]);
  timeChart(grid, {
    id: "outstanding", title: "Requests in flight", log: true,
    caption: "Requests outstanding, mean" + (MANY ? " over each interval." : " and maximum over each interval."),
    table: () => timeTable([["mean", run => seriesOf(run).outstanding.mean, rate], ["maximum", run => seriesOf(run).outstanding.max, rate]]),
  }, { label: "Requests in flight", format: rate, exact: rate }, run => {
    const { mean, max } = seriesOf(run).outstanding;
    return MANY ? [{ y: mean }] : [{ text: "Mean", y: mean }, { text: "Maximum", y: max, tint: 1, dash: DASHES[1] }];
  });
  if (DRAWN.some(run => seriesOf(run).queue_depth.length > 0)) {
    timeChart(grid, {
      id: "queue", title: "Queue depth", log: true, caption: "Requests queued in schedulers, mean over each interval.",
      table: () => timeTable([["queued", run => queueTotal(run), rate]]),
    }, { label: "Queue depth", format: rate, exact: rate }, run => partLines(seriesOf(run).queue_depth, gauge => gauge.mean));
  }
}

// Median, 99th percentile and maximum per interval; with several runs one of them at a time.
function percentiles(grid) {
  if (!DRAWN.some(run => has(seriesOf(run).latency_ns_max))) return;
  const ns = value => quantity("ns", value);
  const views = [["p99", "p99"], ["p50", "Median"], ["max", "Maximum"]];
  const values = (run, key) => seriesOf(run)["latency_ns_" + key];
  timeChart(grid, {
    id: "percentiles", title: "Latency percentiles over time", wide: true, log: "first", views: MANY ? views : [],
    caption: "Median, 99th percentile (both within 6.3 %) and maximum of the requests completed in each interval.",
    table: () => timeTable(views.map(([key, name]) => [name, run => values(run, key), ns])),
  }, { label: "Latency", format: value => quantity("ns", value, 2), exact: ns }, (run, view) => MANY ? [{ y: values(run, view) }]
    : views.map(([key, text], at) => ({ text, y: values(run, key), tint: [1, 0, 3][at], dash: DASHES[[1, 0, 2][at]] })));
  eventList(grid);
}

// The marked instants as a table.
function eventList(grid) {
  const rows = DRAWN.flatMap(run => run.pictures.marks.map(mark => [quantity("s", mark.ns / 1e9, 6), ...MANY ? [run.name] : [], mark.path, words(mark.what)]));
  if (rows.length === 0) return;
  const more = sum(DRAWN.map(run => run.pictures.marks_left_out));
  const title = "Failures, rebuilds and throttling";
  const list = details(title, () => ({ head: ["Time", ...MANY ? ["Run"] : [], "Component", "Event"], rows }));
  list.firstChild.textContent = `${title}: ${number(rows.length)}` + (more > 0 ? ` and ${number(more)} more, not marked` : "");
  list.className = "events";
  grid.parentElement.insertBefore(list, grid);
}

function queueTotal(run) {
  const gauges = seriesOf(run).queue_depth;
  return gauges.length ? gauges[0].mean.map((_, at) => sum(gauges.map(gauge => gauge.mean[at] || 0))) : [];
}

// ---- addresses

function addresses() {
  const runs = DRAWN.filter(run => seriesOf(run).read_map.bounds.length + seriesOf(run).write_map.bounds.length > 0);
  if (runs.length === 0) return;
  const grid = section("addresses", "Addresses", "");
  const place = figure(grid, {
    id: "address-map", title: "Addresses over time", wide: true,
    caption: "Number of requests by arrival time and address, on a logarithmic colour scale.",
    table: () => ({
      head: ["Run", "Reads", "Writes", "Highest address"],
      rows: runs.map(run => [run.name, number(unpackedSum(seriesOf(run).read_map)), number(unpackedSum(seriesOf(run).write_map)), quantity("bytes", top(run))]),
    }),
  });
  const top = run => Math.max(0, ...["read_map", "write_map"].map(key => seriesOf(run)[key].bounds.at(-1) || 0));
  const unpackedSum = map => sum(unpack(map).counts);
  const maximum = Math.max(...runs.map(top));
  const [unit, name] = unitFor("bytes", maximum);
  const shown = sameAddresses(runs) ? [{ ...runs[0], name: "All runs (same requests)" }] : runs;
  const colours = () => isDark() ? [[95, 176, 255], [255, 154, 77]] : [[11, 98, 181], [207, 74, 0]];
  const layersOf = new Map(runs.map(run => [run.index, ["read_map", "write_map"].map(key => coarsen(unpack(seriesOf(run)[key]), 0, maximum, false))]));
  maps(place, shown, index => {
    const run = shown.find(run => run.index === index);
    const layers = layersOf.get(index).map((map, at) => ({
      map, most: Math.max(map.most, 1), columnSeconds: seriesOf(run).bucket_ns * map.step / 1e9,
      colour: () => colours()[at], alpha: shade => (.18 + .7 * shade).toFixed(2),
    }));
    return {
      layers, low: 0, high: maximum, log: false, ...mapTime(run),
      tick: { unit, format: value => `${number(value / unit)} ${name}` },
    };
  }, () => ["Reads", "Writes"].flatMap((text, at) => {
    const key = element("span", { className: "key" });
    key.style.borderColor = `rgb(${colours()[at].join(",")})`;
    return [key, text];
  }));
}

// Whether all runs have the same requests at the same times; then one chart suffices.
function sameAddresses(runs) {
  const trimmed = map => JSON.stringify([map.bounds, map.buckets_per_column, map.counts.at(-1) < 0 ? map.counts.slice(0, -1) : map.counts]);
  const print = run => seriesOf(run).bucket_ns + trimmed(seriesOf(run).read_map) + trimmed(seriesOf(run).write_map);
  return runs.length > 1 && runs.every(run => print(run) === print(runs[0]));
}

// ---- latency breakdown

function latencyBreakdown() {
  const grid = section("breakdown", "Latency breakdown", "Mean latency of a request by phase. Bars are scaled to equal width; the number at the right is their sum. Queue includes waiting for a device that works for itself, such as garbage collection or destaging in the background.");
  const kinds = [["All requests", "all"], ["Reads", "read"], ["Writes", "write"], ["Slowest 1 %", "slowest"]];
  const parts = (run, kind) => kind === "slowest" ? run.results.breakdown_ns.slowest.parts : run.results.breakdown_ns[kind];
  const setsOf = order => kinds.map(([name, kind]) => ({
    name,
    rows: RUNS.map(run => {
      const pieces = order.map(part => [part, parts(run, kind)[part] || 0]);
      const total = sum(pieces.map(([, value]) => value));
      const slow = run.results.breakdown_ns.slowest;
      const note = kind === "slowest" && slow.threshold_ns ? `, each ≥ ${quantity("ns", slow.threshold_ns, 2)}` : "";
      return { run: run.index, name: run.name, pieces, total, value: quantity("ns", total) + note };
    }).filter(row => row.total > 0),
  })).filter(set => set.rows.length > 0);
  const order = Object.keys(PHASE_COLOURS), sets = setsOf(order);
  if (sets.length === 0) return;
  const largest = row => row.pieces.reduce((best, piece) => piece[1] > best[1] ? piece : best);
  const summary = perRun(sets[0].rows, row => `mostly ${words(largest(row)[0])} (${percent(largest(row)[1] / row.total, 2)} of ${row.value})`);
  const place = figure(grid, {
    id: "parts", title: "Mean latency by phase", wide: true, caption: summary,
    table: () => ({
      head: ["Phase", ...sets.flatMap(set => set.rows.map(row => MANY ? `${row.name}, ${set.name.toLowerCase()}` : set.name))],
      rows: order.map((part, at) => [words(part), ...sets.flatMap(set => set.rows.map(row => quantity("ns", row.pieces[at][1])))]),
    }),
  });
  const chart = bars(place, sets, PHASE_COLOURS, value => quantity("ns", value));
  const queued = RUNS.some(run => parts(run, "all").queue > 0), served = setsOf(order.filter(part => part !== "queue"));
  if (queued && served.length > 0) place.top.append(choice("queue-time", "Time in queues", [["with", "With queue"], ["without", "Without queue"]], "with", value => {
    chart.replace(value === "with" ? sets : served);
  }));
}

// ---- page

function controls() {
  const bar = document.getElementById("controls");
  if (!MANY || DRAWN.length === 0) return;
  const runs = element("fieldset", {}, element("legend", {}, "Show"));
  RUNS.forEach(run => {
    const box = element("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => charts.forEach(chart => chart.show(run.index, box.checked)));
    const key = element("span", { className: "key" });
    key.dataset.run = run.index;
    runs.append(element("label", {}, box, key, run.name));
  });
  bar.append(runs, choice("axis", "Time axis", [["time", "Simulated time"], ["share", "Share of the run"]], state.axis, value => {
    state.axis = value;
    timed.forEach(redo => redo());
  }));
  bar.hidden = false;
}

// The lines of the runs, in the summary and the controls.
function swatches() {
  document.querySelectorAll("#controls .key").forEach(key => key.replaceChildren(runKey(Number(key.dataset.run))));
  if (MANY) document.querySelectorAll(".summary .run").forEach(cell => {
    const old = cell.querySelector("svg");
    if (old) old.remove();
    cell.prepend(runKey(Number(cell.dataset.run)));
  });
}

start();
