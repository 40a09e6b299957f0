// A sweep: table of the points, small multiples, sensitivities, Pareto front.
const SWEEP = JSON.parse(document.getElementById("data").textContent);
const MANY = true;
// More panels than this are not drawn for one statistic.
const PANELS_MAX = 24;

const short = name => SWEEP.keys.filter(key => key.name.split(".").at(-1) === name.split(".").at(-1)).length > 1 ? name : name.split(".").at(-1);
const bare = value => value.replace(/^"|"$/g, "");
const valueOf = (row, key) => bare(SWEEP.keys[key].values[row.at[key]]);
const done = SWEEP.rows.filter(row => row.error === null);
const known = column => SWEEP.columns.map((_, at) => at).filter(at => done.some(row => row.cells[at] !== null)).includes(column);
const shown = SWEEP.columns.map((_, at) => at).filter(at => SWEEP.columns[at].is_shown && known(at));

// Formats the values of a column by the unit at the end of its name.
function writer(name, digits = 4) {
  const last = name.split(".").at(-1), ends = unit => name.split(".").some(part => part.endsWith(unit));
  if (last === "bytes_per_s") return value => quantity("rate", value, digits);
  if (ends("_ratio") || ends("_fraction")) return value => percent(value, digits);
  if (ends("_us")) return value => quantity("ns", value * 1000, digits);
  if (ends("_ns")) return value => quantity("ns", value, digits);
  if (ends("_bytes")) return value => quantity("bytes", value, digits);
  if (ends("_j")) return value => quantity("joules", value, digits);
  if (last === "simulated_s" || last === "wall_s") return value => quantity("s", value, digits);
  return value => number(value, digits);
}

const set = row => SWEEP.keys.map((key, at) => `${short(key.name)} ${valueOf(row, at)}`).join(", ");

function points() {
  const columns = SWEEP.columns.map((_, at) => at).filter(known).sort((one, other) => SWEEP.columns[other].is_shown - SWEEP.columns[one].is_shown);
  const head = element("tr", {},
    ...SWEEP.keys.map(key => element("th", { scope: "col", title: key.name }, short(key.name))),
    ...columns.map(at => element("th", { scope: "col", className: "statistic" }, SWEEP.columns[at].name)));
  const body = SWEEP.rows.map(row => element("tr", {},
    ...SWEEP.keys.map((_, key) => element("th", { scope: "row" }, valueOf(row, key))),
    ...row.error !== null ? [element("td", { className: "failed", colSpan: columns.length }, row.error)] : columns.map(at => {
      const cell = row.cells[at], write = writer(SWEEP.columns[at].name);
      if (!cell) return element("td", {}, NONE);
      const text = write(cell.mean) + (cell.half === null ? "" : ` ± ${write(cell.half)}`) + (cell.noise ? " ~" : "");
      return element("td", cell.noise ? { className: "noise", title: "within noise of the first row" } : {}, text);
    })));
  document.querySelector(".points").append(element("thead", {}, head), element("tbody", {}, ...body));
  if (SWEEP.seeds > 1) document.getElementById("points").append(element("p", { className: "quiet" }, "~ marks differences from the first row that are within noise: the 95 % interval of the differences, seed by seed, contains zero."));
}

// ---- small multiples

const numeric = key => SWEEP.keys[key].values.every(value => bare(value) !== "" && isFinite(Number(bare(value))));

// The keys along the x axis, of the lines, and of the panels: numbers with most values first.
function layout() {
  const keys = SWEEP.keys.map((_, at) => at);
  const rank = key => (numeric(key) ? 1e6 : 0) + SWEEP.keys[key].values.length;
  const [x, line, ...panels] = keys.sort((one, other) => rank(other) - rank(one));
  return { x, line, panels };
}

function xSide(key) {
  const { name, values } = SWEEP.keys[key];
  if (!numeric(key)) {
    const format = at => Number.isInteger(at) ? bare(values[at] ?? "") : "";
    return { x: at => at, side: { label: short(name), name: short(name), format, exact: format, scale: { range: [-.3, values.length - .7] }, axis: { splits: () => values.map((_, at) => at) } } };
  }
  const numbers = values.map(value => Number(bare(value)));
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const isLog = low > 0 && high >= 30 * low, format = value => number(value, 4);
  const linear = { range: () => high > low ? [low - (high - low) * .03, high + (high - low) * .03] : [low - 1, low + 1] };
  return { x: at => numbers[at], side: { label: short(name), name: short(name), format, exact: format, scale: isLog ? logScale : linear, axis: isLog ? logAxis({}) : {} } };
}

function multiples(at) {
  const column = SWEEP.columns[at], { x, line, panels } = layout(), { x: place, side } = xSide(x);
  const rows = done.filter(row => row.cells[at] !== null);
  const groups = new Map();
  rows.forEach(row => {
    const name = panels.map(key => `${short(SWEEP.keys[key].name)} ${valueOf(row, key)}`).join(", ");
    groups.set(name, [...groups.get(name) || [], row]);
  });
  const cut = groups.size > PANELS_MAX ? ` The first ${PANELS_MAX} of ${groups.size} panels.` : "";
  const grid = section("statistic" + at, column.name, (SWEEP.seeds > 1 ? "Bars are 95 % confidence intervals." : "") + cut);
  const write = writer(column.name), most = Math.max(...rows.map(row => row.cells[at].mean + (row.cells[at].half || 0)));
  const low = Math.min(0, ...rows.map(row => row.cells[at].mean));
  [...groups].slice(0, PANELS_MAX).forEach(([name, members], panel) => {
    const lineValues = line === undefined ? [0] : [...new Set(members.map(row => row.at[line]))];
    const series = lineValues.map(value => {
      const own = members.filter(row => line === undefined || row.at[line] === value).sort((one, other) => place(one.at[x]) - place(other.at[x]));
      return {
        run: line === undefined ? 0 : value, points: true,
        label: line === undefined ? column.name : `${short(SWEEP.keys[line].name)} ${bare(SWEEP.keys[line].values[value])}`,
        x: own.map(row => place(row.at[x])), y: own.map(row => row.cells[at].mean), half: own.map(row => row.cells[at].half),
      };
    });
    const drawn = figure(grid, {
      id: `multiple${at}-${panel}`, title: name || column.name, wide: groups.size === 1,
      caption: `${column.name} by ${short(SWEEP.keys[x].name)}` + (line === undefined ? "." : `, one line per ${short(SWEEP.keys[line].name)}.`),
      table: () => ({ head: [...SWEEP.keys.map(key => short(key.name)), column.name], rows: members.map(row => [...SWEEP.keys.map((_, key) => valueOf(row, key)), write(row.cells[at].mean)]) }),
    });
    const y = { label: column.name, format: writer(column.name, 3), exact: write, scale: { range: () => [low, most > low ? low + (most - low) * 1.06 : low + 1] } };
    lines(drawn, { series, x: side, y });
  });
}

// ---- sensitivities

function sensitivities() {
  const sets = shown.map(at => {
    const write = writer(SWEEP.columns[at].name, 3);
    const effects = [...SWEEP.columns[at].effects].sort((one, other) => other.share - one.share);
    return { name: SWEEP.columns[at].name, rows: effects.map(({ key, least, most, share, noise }) => ({
      run: 0, name: short(SWEEP.keys[key].name), pieces: [["change", share]], total: share,
      value: `${percent(share)}${noise ? ", within noise" : ""}: ${write(least.mean)} at ${bare(SWEEP.keys[key].values[least.value])} to ${write(most.mean)} at ${bare(SWEEP.keys[key].values[most.value])}`,
    })) };
  }).filter(set => set.rows.some(row => row.total > 0));
  if (sets.length === 0) return;
  const grid = section("sensitivities", "Sensitivities", "How much each statistic changes along one key, averaged over the values of all others: largest minus smallest mean, relative to their mean.");
  const place = figure(grid, {
    id: "sensitivity", title: "Change along each key", wide: true, caption: "All bars share a scale.",
    table: () => ({ head: ["Statistic", "Key", "Change"], rows: sets.flatMap(set => set.rows.map(row => [set.name, row.name, row.value])) }),
  });
  const most = Math.max(...sets.flatMap(set => set.rows.map(row => row.total)));
  bars(place, sets, { change: "#0072b2" }, value => percent(value), most);
}

// ---- Pareto front

// The rows that no other row dominates in both statistics.
function front(rows, axes) {
  const cost = row => axes.map(({ at, more }) => row.cells[at].mean * (more ? -1 : 1));
  const dominates = (one, other) => one.every((value, axis) => value <= other[axis]) && one.some((value, axis) => value < other[axis]);
  return rows.filter(row => !rows.some(other => dominates(cost(other), cost(row))));
}

function drawFront(host, axes) {
  const width = Math.max(260, host.clientWidth), height = 380, box = { left: 80, right: width - 20, top: 12, bottom: height - 46 };
  const rows = done.filter(row => axes.every(({ at }) => row.cells[at] !== null));
  const values = axis => rows.map(row => row.cells[axes[axis].at].mean);
  const ends = axis => {
    const low = Math.min(...values(axis)), high = Math.max(...values(axis)), room = (high - low || Math.abs(high) || 1) * .06;
    return [low - room, high + room];
  };
  const [x, y] = [ends(0), ends(1)];
  const toX = value => box.left + (value - x[0]) / (x[1] - x[0]) * (box.right - box.left);
  const toY = value => box.bottom - (value - y[0]) / (y[1] - y[0]) * (box.bottom - box.top);
  const writers = axes.map(({ at }) => writer(SWEEP.columns[at].name, 3));
  const drawing = svg("svg", { class: "pareto", width, height, role: "img", "aria-label": "Pareto front" });
  const text = (words, attributes) => drawing.append(svg("text", attributes, words));
  linearTicks(...x, Math.max(2, width / 130)).filter(value => value <= x[1]).forEach(value => {
    drawing.append(svg("line", { class: "grid-line", x1: toX(value), x2: toX(value), y1: box.top, y2: box.bottom }));
    text(writers[0](value), { x: toX(value), y: box.bottom + 18, "text-anchor": "middle" });
  });
  linearTicks(...y, 5).filter(value => value <= y[1]).forEach(value => {
    drawing.append(svg("line", { class: "grid-line", x1: box.left, x2: box.right, y1: toY(value), y2: toY(value) }));
    text(writers[1](value), { x: box.left - 8, y: toY(value) + 4, "text-anchor": "end" });
  });
  const name = ({ at, more }) => `${SWEEP.columns[at].name} (${more ? "more" : "less"} is better)`;
  text(name(axes[0]), { x: (box.left + box.right) / 2, y: height - 8, "text-anchor": "middle" });
  text(name(axes[1]), { x: 14, y: (box.top + box.bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(box.top + box.bottom) / 2})` });
  const best = front(rows, axes), place = row => [toX(row.cells[axes[0].at].mean), toY(row.cells[axes[1].at].mean)];
  const line = best.map(place).sort((one, other) => one[0] - other[0]).map(([left, top]) => `${left.toFixed(1)},${top.toFixed(1)}`).join(" ");
  drawing.append(svg("polyline", { class: "front-line", points: line }));
  const label = row => `${set(row)}: ${axes.map(({ at }, axis) => `${SWEEP.columns[at].name} ${writers[axis](row.cells[at].mean)}`).join(", ")}`;
  [...rows].sort((one, other) => best.includes(one) - best.includes(other)).forEach(row => {
    const [cx, cy] = place(row), isBest = best.includes(row);
    drawing.append(svg("circle", { class: isBest ? "front" : "dominated", cx, cy, r: isBest ? 5 : 3.5 }, svg("title", {}, label(row))));
  });
  host.replaceChildren(drawing);
  return best;
}

function pareto() {
  if (shown.length < 2 || done.length < 2) return;
  const grid = section("pareto", "Pareto front", "");
  const axis = at => ({ at, more: SWEEP.columns[at].more_is_better });
  const axes = [axis(shown[0]), axis(shown.find(at => at > shown[0] && SWEEP.columns[at].name !== "p99_us") ?? shown[1])];
  const place = figure(grid, {
    id: "front", title: "Trade-off of two statistics", wide: true,
    caption: "Filled points are not beaten in both statistics by any other; the others are dominated. Which direction is better is guessed from the name.",
    table: () => ({ head: [...SWEEP.keys.map(key => short(key.name)), ...axes.map(({ at }) => SWEEP.columns[at].name)], rows: best.map(row => [...SWEEP.keys.map((_, key) => valueOf(row, key)), ...axes.map(({ at }) => writer(SWEEP.columns[at].name)(row.cells[at].mean))]) }),
  });
  let best = [];
  const redraw = () => { best = drawFront(place.chart, axes); };
  const pick = (index, legend) => {
    const columns = SWEEP.columns.map((_, at) => at).filter(known);
    const select = element("select", { id: "axis" + index, "aria-label": legend }, ...columns.map(at => element("option", { value: String(at), selected: at === axes[index].at }, SWEEP.columns[at].name)));
    const more = element("select", { "aria-label": legend + ", direction" }, ...[["", "less is better"], ["more", "more is better"]].map(([value, words]) => element("option", { value, selected: Boolean(value) === axes[index].more }, words)));
    const changed = () => {
      axes[index] = { at: Number(select.value), more: more.value === "more" };
      redraw();
      const table = place.figure.querySelector("details > .scroll");
      if (table) table.remove();
      place.figure.querySelector("details").open = false;
    };
    select.addEventListener("change", () => {
      more.value = SWEEP.columns[Number(select.value)].more_is_better ? "more" : "";
      changed();
    });
    more.addEventListener("change", changed);
    return element("span", {}, legend + " ", select, " ", more);
  };
  place.top.append(element("div", { className: "axes" }, pick(0, "Across"), pick(1, "Up")));
  redraw();
  let width = place.chart.clientWidth;
  onResize(place.chart, () => width, now => {
    width = now;
    redraw();
  });
  charts.push({ figure: place.figure, redraw, show: () => {}, inked: () => place.chart.querySelectorAll("circle").length === done.filter(row => axes.every(({ at }) => row.cells[at] !== null)).length });
}

theme(() => {});
points();
sensitivities();
pareto();
shown.forEach(multiples);
navigation();
setTimeout(report, 60);
