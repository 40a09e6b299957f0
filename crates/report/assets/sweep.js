// A sweep: table of the points, small multiples, sensitivities, Pareto front.
const SWEEP = JSON.parse(document.getElementById("data").textContent);
const MANY = true;
// More panels than this are not drawn for one statistic.
const PANELS_MAX = 24;
// Charts with more lines than this share a legend.
const LEGEND_MAX = 8;

const short = name => SWEEP.keys.filter(key => key.name.split(".").at(-1) === name.split(".").at(-1)).length > 1 ? name : name.split(".").at(-1);
const bare = value => value.replace(/^"|"$/g, "");
const valueOf = (row, key) => bare(SWEEP.keys[key].values[row.at[key]]);
const done = SWEEP.rows.filter(row => row.error === null);
const known = column => SWEEP.columns.map((_, at) => at).filter(at => done.some(row => row.cells[at] !== null)).includes(column);
// Objectives of a search first.
const shown = SWEEP.columns.map((_, at) => at).filter(at => SWEEP.columns[at].is_shown && known(at)).sort((one, other) => SWEEP.columns[other].is_objective - SWEEP.columns[one].is_objective);
const title = at => SWEEP.columns[at].title + (SWEEP.columns[at].is_objective ? " (objective)" : "");

// Kind of the values of a column, by the unit at the end of its name, and the factor to its base unit.
function measure(name) {
  const last = name.split(".").at(-1), ends = unit => name.split(".").some(part => part.endsWith(unit));
  if (last === "bytes_per_s") return ["rate", 1];
  if (last === "iops") return ["iops", 1];
  if (ends("_ratio") || ends("_fraction")) return ["share", 1];
  if (ends("_us")) return ["ns", 1000];
  if (ends("_ns")) return ["ns", 1];
  if (ends("_bytes")) return ["bytes", 1];
  if (ends("_j")) return ["joules", 1];
  if (last === "simulated_s" || last === "wall_s") return ["s", 1];
  return ["", 1];
}

// Formats the values of a column.
function writer(name, digits = 4) {
  const [kind, factor] = measure(name);
  if (kind === "share") return value => percent(value, digits);
  return value => kind ? quantity(kind, value * factor, digits) : number(value, digits);
}

// Labels of the ticks of a linear axis: in one unit, with as many decimals as they need to differ.
function tickLabels(name, ticks) {
  const [kind, factor] = measure(name), sizes = ticks.map(tick => Math.abs(tick) * factor);
  const [scale, unit] = kind === "share" ? [.01, "%"] : kind ? unitFor(kind, Math.max(...sizes)) : [1, ""];
  const values = ticks.map(tick => tick * factor / scale);
  const step = values.length > 1 ? Math.abs(values[1] - values[0]) : Math.abs(values[0]) / 100;
  const places = step > 0 ? Math.min(20, Math.max(0, 1 - Math.floor(Math.log10(step)))) : 0;
  return values.map(value => {
    const text = value.toFixed(places);
    return (group(places > 0 ? text.replace(/\.?0+$/, "") : text) + " " + unit).trim();
  });
}

const tickAxis = name => ({ values: (u, splits) => tickLabels(name, splits) });

const set = row => SWEEP.keys.map((key, at) => `${short(key.name)} ${valueOf(row, at)}`).join(", ");

function points() {
  const columns = SWEEP.columns.map((_, at) => at).filter(known).sort((one, other) => SWEEP.columns[other].is_shown - SWEEP.columns[one].is_shown);
  const bounded = SWEEP.rows.some(row => row.unmet.length > 0);
  const head = element("tr", {},
    ...SWEEP.keys.map(key => element("th", { scope: "col", title: key.name }, short(key.name))),
    ...bounded ? [element("th", { scope: "col" }, "Bounds not met")] : [],
    ...columns.map(at => element("th", { scope: "col", className: "statistic", title: SWEEP.columns[at].name }, title(at))));
  const body = SWEEP.rows.map(row => element("tr", row.best ? { className: "best" } : {},
    ...SWEEP.keys.map((_, key) => element("th", { scope: "row" }, (row.best && key === 0 ? "★ " : "") + valueOf(row, key))),
    ...bounded && row.error === null ? [element("td", { className: "unmet" }, row.unmet.join(", "))] : [],
    ...row.error !== null ? [element("td", { className: "failed", colSpan: columns.length + bounded }, row.error)] : columns.map(at => {
      const cell = row.cells[at], write = writer(SWEEP.columns[at].name);
      if (!cell) return element("td", {}, NONE);
      const text = write(cell.mean) + (cell.half === null ? "" : ` ± ${write(cell.half)}`) + (cell.noise ? " ~" : "");
      return element("td", cell.noise ? { className: "noise", title: "within noise of the first row" } : {}, text);
    })));
  document.querySelector(".points").append(element("thead", {}, head), element("tbody", {}, ...body));
  if (SWEEP.seeds > 1) document.getElementById("points").append(element("p", { className: "quiet" }, "~ marks differences from the first row that are within noise: the 95 % interval of the differences, seed by seed, contains zero."));
  const best = SWEEP.rows.filter(row => row.best).length;
  if (best > 0) document.getElementById("points").append(element("p", { className: "quiet" }, best > 1 ? "★ marks trials that no other beats in every objective; charts have a ring around them." : "★ marks the best trial; charts have a ring around it."));
}

// ---- small multiples

const numeric = key => SWEEP.keys[key].values.every(value => bare(value) !== "" && isFinite(Number(bare(value))));

// Whether the values are names, between which there is nothing; sizes such as 4KiB are not.
const named = key => !SWEEP.keys[key].values.every(value => /^[+-]?[\d.,]+(e[+-]?\d+)? *[a-zµ%]*(\/[a-z]+)?$/i.test(bare(value)));

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
    return { x: at => at, side: { label: short(name), name: short(name), format, exact: at => format(Math.round(at)), scale: { range: [-.3, values.length - .7] }, axis: { splits: () => values.map((_, at) => at) } } };
  }
  const numbers = values.map(value => Number(bare(value)));
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const isLog = low > 0 && high >= 30 * low, format = value => number(value, 4);
  const linear = { range: () => high > low ? [low - (high - low) * .03, high + (high - low) * .03] : [low - 1, low + 1] };
  return { x: at => numbers[at], side: { label: short(name), name: short(name), format, exact: format, scale: isLog ? logScale : linear, axis: isLog ? logAxis({}) : tickAxis("") } };
}

const lineLabel = (key, value) => `${short(SWEEP.keys[key].name)} ${bare(SWEEP.keys[key].values[value])}`;

// Whether the charts share a legend.
const isShared = ({ line }) => line !== undefined && SWEEP.keys[line].values.length > LEGEND_MAX;

const legend = element("ul", { className: "keys" });

function drawLegend() {
  if (!isShared(layout())) return;
  const { x, line } = layout(), used = [...new Set(done.map(row => row.at[line]))];
  legend.replaceChildren(...used.map(value => element("li", {}, named(x) ? pointKey(runColour(value)) : runKey(value), bare(SWEEP.keys[line].values[value]))));
}

function sharedLegend() {
  if (!isShared(layout())) return;
  const { x, line } = layout(), kind = named(x) ? "colour" : "line";
  section("legend", "Legend", `One ${kind} per ${short(SWEEP.keys[line].name)} in all charts below, which name the one at the pointer.`).replaceWith(legend);
  drawLegend();
}

function multiples(at) {
  const column = SWEEP.columns[at], { bound } = column, { x, line, panels } = layout(), { x: place, side } = xSide(x);
  const rows = done.filter(row => row.cells[at] !== null);
  const groups = new Map();
  rows.forEach(row => {
    const name = panels.map(key => `${short(SWEEP.keys[key].name)} ${valueOf(row, key)}`).join(", ");
    groups.set(name, [...groups.get(name) || [], row]);
  });
  const cut = groups.size > PANELS_MAX ? ` The first ${PANELS_MAX} of ${groups.size} panels.` : "";
  const grid = section("statistic" + at, title(at), (SWEEP.seeds > 1 ? "Bars are 95 % confidence intervals." : "") + cut);
  const write = writer(column.name), most = Math.max(bound ?? 0, ...rows.map(row => row.cells[at].mean + (row.cells[at].half || 0)));
  const low = Math.min(0, ...rows.map(row => row.cells[at].mean));
  [...groups].slice(0, PANELS_MAX).forEach(([name, members], panel) => {
    const lineValues = line === undefined ? [0] : [...new Set(members.map(row => row.at[line]))];
    const series = lineValues.map((value, index) => {
      // Points of several lines at a name lie side by side.
      const aside = named(x) ? (index - (lineValues.length - 1) / 2) * Math.min(.05, .5 / lineValues.length) : 0;
      const own = members.filter(row => line === undefined || row.at[line] === value).sort((one, other) => place(one.at[x]) - place(other.at[x]));
      return {
        run: line === undefined ? 0 : value, points: true, unjoined: named(x), best: own.map(row => row.best),
        label: line === undefined ? title(at) : lineLabel(line, value),
        x: own.map(row => place(row.at[x]) + aside), y: own.map(row => row.cells[at].mean), half: own.map(row => row.cells[at].half),
      };
    });
    const drawn = figure(grid, {
      id: `multiple${at}-${panel}`, title: name || title(at), wide: groups.size === 1,
      caption: `${title(at)} by ${short(SWEEP.keys[x].name)}` + (line === undefined ? "." : `, one ${named(x) ? "colour" : "line"} per ${short(SWEEP.keys[line].name)}.`)
        + (bound === null ? "" : ` The line across is the bound: at ${column.more_is_better ? "least" : "most"} ${write(bound)}.`),
      table: () => ({ head: [...SWEEP.keys.map(key => short(key.name)), title(at)], rows: members.map(row => [...SWEEP.keys.map((_, key) => valueOf(row, key)), write(row.cells[at].mean)]) }),
    });
    const y = { label: title(at), format: writer(column.name, 3), exact: write, axis: tickAxis(column.name), scale: { range: () => [low, most > low ? low + (most - low) * 1.06 : low + 1] } };
    lines(drawn, { series, x: side, y, bound, shared: isShared({ line }) });
  });
}

// ---- sensitivities

function sensitivities() {
  const sets = shown.map(at => {
    const write = writer(SWEEP.columns[at].name, 3);
    const effects = [...SWEEP.columns[at].effects].sort((one, other) => other.share - one.share);
    return { name: title(at), rows: effects.map(({ key, least, most, share, noise }) => ({
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
  const rows = done.filter(row => axes.every(({ at }) => row.cells[at] !== null));
  const values = axis => rows.map(row => row.cells[axes[axis].at].mean);
  const ends = axis => {
    const low = Math.min(...values(axis)), high = Math.max(...values(axis)), room = (high - low || Math.abs(high) || 1) * .06;
    return [low - room, high + room];
  };
  const [x, y] = [ends(0), ends(1)];
  const ticks = (axis, range, count) => {
    const values = linearTicks(...range, count).filter(value => value <= range[1]);
    const labels = tickLabels(SWEEP.columns[axes[axis].at].name, values);
    return values.map((value, index) => [value, labels[index]]);
  };
  const yTicks = ticks(1, y, 5), longest = Math.max(...yTicks.map(([, label]) => label.length));
  const width = Math.max(260, host.clientWidth), height = 380;
  const box = { left: Math.max(80, 34 + 7 * longest), right: width - 20, top: 12, bottom: height - 46 };
  const toX = value => box.left + (value - x[0]) / (x[1] - x[0]) * (box.right - box.left);
  const toY = value => box.bottom - (value - y[0]) / (y[1] - y[0]) * (box.bottom - box.top);
  const writers = axes.map(({ at }) => writer(SWEEP.columns[at].name, 3));
  const drawing = svg("svg", { class: "pareto", width, height, role: "img", "aria-label": "Pareto front" });
  const text = (words, attributes) => drawing.append(svg("text", attributes, words));
  ticks(0, x, Math.max(2, width / 130)).forEach(([value, label]) => {
    drawing.append(svg("line", { class: "grid-line", x1: toX(value), x2: toX(value), y1: box.top, y2: box.bottom }));
    text(label, { x: toX(value), y: box.bottom + 18, "text-anchor": "middle" });
  });
  yTicks.forEach(([value, label]) => {
    drawing.append(svg("line", { class: "grid-line", x1: box.left, x2: box.right, y1: toY(value), y2: toY(value) }));
    text(label, { x: box.left - 8, y: toY(value) + 4, "text-anchor": "end" });
  });
  axes.forEach(({ at }, axis) => {
    const { bound } = SWEEP.columns[at], [least, most] = [x, y][axis];
    if (bound === null || bound < least || bound > most) return;
    const ends = axis === 0 ? { x1: toX(bound), x2: toX(bound), y1: box.top, y2: box.bottom } : { x1: box.left, x2: box.right, y1: toY(bound), y2: toY(bound) };
    drawing.append(svg("line", { class: "bound", ...ends }));
  });
  const name = ({ at, more }) => `${title(at)} (${more ? "more" : "less"} is better)`;
  text(name(axes[0]), { x: (box.left + box.right) / 2, y: height - 8, "text-anchor": "middle" });
  text(name(axes[1]), { x: 14, y: (box.top + box.bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(box.top + box.bottom) / 2})` });
  const best = front(rows, axes), place = row => [toX(row.cells[axes[0].at].mean), toY(row.cells[axes[1].at].mean)];
  const line = best.map(place).sort((one, other) => one[0] - other[0]).map(([left, top]) => `${left.toFixed(1)},${top.toFixed(1)}`).join(" ");
  drawing.append(svg("polyline", { class: "front-line", points: line }));
  const label = row => `${set(row)}: ${axes.map(({ at }, axis) => `${title(at)} ${writers[axis](row.cells[at].mean)}`).join(", ")}`;
  [...rows].sort((one, other) => best.includes(one) - best.includes(other)).forEach(row => {
    const [cx, cy] = place(row), isBest = best.includes(row);
    drawing.append(svg("circle", { class: isBest ? "front" : "dominated", cx, cy, r: isBest ? 5 : 3.5 }, svg("title", {}, label(row))));
    if (row.best) drawing.append(svg("circle", { class: "best", cx, cy, r: 9 }));
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
    caption: "Filled points are not beaten in both statistics by any other; the others are dominated. " + (SWEEP.columns.some(column => column.bound !== null) ? "Dashed lines are bounds. " : "") + "Which direction is better is guessed from the name" + (SWEEP.columns.some(column => column.is_objective) ? ", except for objectives." : "."),
    table: () => ({ head: [...SWEEP.keys.map(key => short(key.name)), ...axes.map(({ at }) => title(at))], rows: best.map(row => [...SWEEP.keys.map((_, key) => valueOf(row, key)), ...axes.map(({ at }) => writer(SWEEP.columns[at].name)(row.cells[at].mean))]) }),
  });
  let best = [];
  const redraw = () => { best = drawFront(place.chart, axes); };
  const pick = (index, legend) => {
    const columns = SWEEP.columns.map((_, at) => at).filter(known);
    const select = element("select", { id: "axis" + index, "aria-label": legend }, ...columns.map(at => element("option", { value: String(at), selected: at === axes[index].at }, title(at))));
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
  charts.push({ figure: place.figure, redraw, show: () => {}, inked: () => place.chart.querySelectorAll("circle:not(.best)").length === done.filter(row => axes.every(({ at }) => row.cells[at] !== null)).length });
}

theme(drawLegend);
points();
sensitivities();
pareto();
sharedLegend();
shown.forEach(multiples);
navigation();
setTimeout(report, 60);
