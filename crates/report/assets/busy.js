// Channels and dies of flash devices: utilisation and activity.
const CAUSE_COLOURS = {
  host: "#56b4e9", partial: "#0072b2", mapping: "#cc79a7", gc: "#d55e00", merge: "#e69f00", wear: "#009e73",
};
// Height of a box as a share of its row; an erase is outlined as well.
const ACT_HEIGHTS = { read: .5, program: 1, copy: 1, erase: 1 };
const UNITS_SHOWN = 32;

function utilisation(grid) {
  const units = run => Object.entries(run.results.components).flatMap(([path, part]) => part.utilisation
    ? [["channel", part.utilisation.channels], ["die", part.utilisation.dies]].flatMap(([kind, list]) => list.map((unit, number) => ({ run, path, kind, number, unit })))
    : []);
  const all = RUNS.flatMap(units).filter(({ unit }) => unit.busy_fraction !== null);
  if (!has(all.map(({ unit }) => unit.busy_fraction))) return;
  const devices = new Set(all.map(({ run, path }) => run.index + path)).size;
  const sets = ["channel", "die"].map(kind => {
    const own = all.filter(unit => unit.kind === kind);
    const least = own.map(({ unit }) => unit.busy_fraction).sort((one, other) => other - one)[UNITS_SHOWN - 1] ?? 0;
    const shown = own.filter(({ unit }) => unit.busy_fraction >= least).slice(0, UNITS_SHOWN);
    const rows = shown.map(({ run, path, number, unit }) => ({
      run: run.index,
      name: `${kind} ${number}` + (devices > 1 ? `, ${MANY ? run.name : path}` : ""),
      pieces: Object.keys(CAUSE_COLOURS).map(cause => [cause, unit.busy_by_cause[cause] || 0]),
      total: unit.busy_fraction,
      value: percent(unit.busy_fraction),
    }));
    const name = kind === "channel" ? "Channels" : "Dies";
    return { name: own.length > rows.length ? `${name}: the busiest ${rows.length} of ${own.length}` : name, rows };
  }).filter(set => set.rows.length > 0);
  const place = figure(grid, {
    id: "utilisation", title: "Utilisation of channels and dies", wide: true,
    caption: "Share of the measured time, by cause. A die is busy from a command until it accepts the next one, a channel while it transfers a command or data. The widest bar is the busiest unit.",
    table: () => ({
      head: ["Unit", "Busy", ...Object.keys(CAUSE_COLOURS)],
      rows: all.map(({ run, path, kind, number, unit }) => [`${label(run, path)}, ${kind} ${number}`, percent(unit.busy_fraction), ...Object.keys(CAUSE_COLOURS).map(cause => percent(unit.busy_by_cause[cause] || 0))]),
    }),
  });
  bars(place, sets, CAUSE_COLOURS, value => percent(value), Math.max(...all.map(({ unit }) => unit.busy_fraction)));
}

function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
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
