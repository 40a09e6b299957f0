// Channels and dies of flash devices: utilisation and activity.
const CAUSE_COLOURS = {
  host: "#56b4e9", partial: "#0072b2", mapping: "#cc79a7", gc: "#d55e00", merge: "#e69f00", wear: "#009e73",
};
// Height of a box as a share of its row; an erase is outlined as well.
const ACT_HEIGHTS = { read: .5, program: 1, copy: 1, erase: 1 };

// Channels and dies of the flash devices of a run: {path, kind, units}.
function groups(run) {
  return Object.entries(run.results.components).filter(([, part]) => part.utilisation).flatMap(([path, part]) =>
    [["channel", part.utilisation.channels], ["die", part.utilisation.dies]].map(([kind, units]) => ({ run, path, kind, units })))
    .filter(({ units }) => has(units.map(unit => unit.busy_fraction || 0)));
}

const PLURALS = { channel: "channels", die: "dies" };

function utilisation(grid) {
  const all = RUNS.flatMap(groups);
  if (all.length === 0) return;
  const devices = run => new Set(groups(run).map(({ path }) => path)).size;
  const owner = ({ run, path }) => [MANY ? run.name : "", devices(run) > 1 || !MANY ? path : ""].filter(Boolean).join(", ");
  const causes = Object.keys(CAUSE_COLOURS);
  const busy = unit => unit.busy_fraction || 0;
  const mean = (units, value) => sum(units.map(value)) / units.length;
  const bar = (group, name, value) => {
    const pieces = causes.map(cause => [cause, value(unit => unit.busy_by_cause[cause] || 0)]), total = value(busy);
    return { run: group.run.index, name, pieces, total, value: percent(total) };
  };
  const sets = Object.keys(PLURALS).map(kind => ({
    name: kind === "channel" ? "Channels" : "Dies",
    rows: all.filter(group => group.kind === kind).flatMap(group => {
      const { units } = group, first = units.reduce((best, unit, at) => busy(unit) > busy(units[best]) ? at : best, 0);
      const rows = [bar(group, `${owner(group)}: mean of ${units.length}`, value => mean(units, value))];
      return units.length > 1 ? [...rows, bar(group, `busiest, ${kind} ${first}`, value => value(units[first]))] : rows;
    }),
  })).filter(set => set.rows.length > 0);
  // Bars of busy units are shares of the whole time; those of units that are idle nearly always
  // would not be seen.
  const most = Math.max(...sets.flatMap(set => set.rows.map(row => row.total)));
  const whole = [.001, .002, .005, .01, .02, .05, .1].find(share => share >= most) || 1;
  const place = figure(grid, {
    id: "utilisation", title: "Utilisation of channels and dies", wide: true,
    caption: `Share of the measured time, by cause; a full bar is ${percent(whole)}. A die is busy from a command until it accepts the next one, a channel while it transfers a command or data.`,
    table: () => ({
      head: ["Unit", "Busy", ...causes],
      rows: all.flatMap(group => group.units.map((unit, number) => [`${owner(group)}, ${group.kind} ${number}`, percent(unit.busy_fraction), ...causes.map(cause => percent(unit.busy_by_cause[cause] || 0))])),
    }),
  });
  bars(place, sets, CAUSE_COLOURS, value => percent(value), whole, true);
  busyMaps(grid);
}

// The count of a cell whose unit was busy all the time.
const BUSY_WHOLE = 10000;

// Channels and dies over time, one map each.
function busyMaps(grid) {
  const items = DRAWN.flatMap(run => run.pictures.busy.map(busy => ({
    name: label(run, `${PLURALS[busy.unit]} of ${busy.path}`), index: run.index, run, map: unpack(busy.map),
  }))).filter(item => item.map.most > 0);
  if (items.length === 0) return;
  const most = Math.max(...items.map(item => item.map.most));
  const place = figure(grid, {
    id: "busy-map", title: "Busy channels and dies over time", wide: true,
    caption: "Share of each interval during which a unit was busy; its number is at the left. An empty cell is an idle unit.",
    table: () => ({
      head: ["From", ...items.map(item => item.name)],
      rows: Array.from({ length: Math.max(...items.map(item => item.map.columns)) }, (_, column) => [
        quantity("s", column * seriesOf(items[0].run).bucket_ns * items[0].map.step / 1e9, 4),
        ...items.map(({ map }) => column < map.columns ? percent(sum(map.counts.slice(column * map.rows, (column + 1) * map.rows)) / map.rows / BUSY_WHOLE) : NONE),
      ]),
    }),
  });
  maps(place, items, (index, { run, map }) => ({
    layers: [{ map, colour: ramp, alpha: () => 1, most, linear: true, columnSeconds: seriesOf(run).bucket_ns * map.step / 1e9 }],
    low: 0, high: map.bounds[map.rows], log: false, ...mapTime(run), height: 46 + Math.min(164, Math.max(28, map.rows * 9)),
    tick: { unit: 1, format: number, whole: true },
  }), () => rampKey("idle", `${percent(most / BUSY_WHOLE)} busy`), true);
}

// Width of a strip in its own coordinates. Browsers compute them in single precision and clamp them
// at 2^25, so nanoseconds would not do.
const STRIP_WIDTH = 1000;

// One row: a strip as wide as the window, with a box per operation.
function strip(activity, row) {
  const window = activity.to_ns - activity.from_ns, causes = activity.causes.length;
  const scaled = time => time / window * STRIP_WIDTH;
  const drawing = svg("svg", { viewBox: `0 0 ${STRIP_WIDTH} 1`, preserveAspectRatio: "none", width: "100%", height: "14" });
  row.pieces.forEach(([begin, length, kind]) => {
    const act = activity.acts[Math.floor(kind / causes)], cause = activity.causes[kind % causes];
    const height = ACT_HEIGHTS[act] || 1;
    const box = svg("rect", { x: scaled(begin), y: 1 - height, width: scaled(length), height, fill: CAUSE_COLOURS[cause] || "#8d99a6" },
      svg("title", {}, `${cause} ${act}, ${quantity("ns", length)}, from ${quantity("ns", begin)}`));
    if (act === "erase") box.setAttribute("class", "erase");
    drawing.append(box);
  });
  return drawing;
}

// Whether a box begins at this share of the width of its drawing, to a pixel.
function liesAt(box, drawing, share) {
  const { left, width } = drawing.getBoundingClientRect();
  return width > 0 && Math.abs(box.getBoundingClientRect().left - left - share * width) <= 1.5;
}

function activity(grid, runs) {
  runs.filter(run => run.pictures.activity).forEach(run => {
    const { activity } = run.pictures, window = activity.to_ns - activity.from_ns;
    const cut = window < activity.latency_ns ? `the last ${quantity("ns", window)} before its completion` : "from its arrival";
    const paths = new Set(activity.rows.map(row => row.path)).size;
    const name = row => paths > 1 ? `${row.unit}, ${row.path}` : row.unit;
    const spent = row => sum(row.pieces.map(([, length]) => length));
    const place = figure(grid, {
      id: "activity-" + run.index, title: label(run, "Activity during a slow request"), wide: true,
      caption: `Activity of channels and dies while one of the slowest requests was outstanding: a ${activity.op} of ${quantity("ns", activity.latency_ns)}, ${cut}. Reads are half as high as programs and copies; erases are outlined.`,
      table: () => ({
        head: ["Begin", "Unit", "Length", "Act", "Cause"],
        rows: activity.rows.flatMap(row => row.pieces.map(([begin, length, kind]) => [quantity("ns", begin, 5), name(row), quantity("ns", length), activity.acts[Math.floor(kind / activity.causes.length)], activity.causes[kind % activity.causes.length]])),
      }),
    });
    const table = element("div", { className: "bars strips" });
    activity.rows.forEach(row => table.append(
      element("div", { className: "name" }, name(row)),
      element("div", { className: "value" }, percent(spent(row) / window)),
      element("div", { className: "track" }, strip(activity, row)),
    ));
    const ticks = [0, .25, .5, .75, 1].map(at => element("span", {}, quantity("ns", at * window)));
    table.append(element("div", { className: "track ticks" }, ...ticks));
    const used = new Set(activity.rows.flatMap(row => row.pieces.map(([, , kind]) => activity.causes[kind % activity.causes.length])));
    place.chart.append(table, colourKeys(CAUSE_COLOURS, used));
    charts.push({
      figure: place.figure,
      redraw: () => {},
      show: (index, on) => { if (index === run.index) place.figure.hidden = !on; },
      inked: () => activity.rows.every((row, number) => {
        const drawing = table.querySelectorAll("svg")[number], boxes = drawing.querySelectorAll("rect");
        return row.pieces.every(([begin], piece) => liesAt(boxes[piece], drawing, begin / window));
      }),
    });
  });
}
