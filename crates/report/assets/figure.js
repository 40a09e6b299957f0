// Page elements: sections and figures with title, chart, caption and data table.
const ROWS_MAX = 60;

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made && name !== "role") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A piece of a line as charts draw it: colours alone do not distinguish lines for every reader.
function lineKey(colour, dash, width = 2.5) {
  const line = svg("line", { x1: 0, y1: 4, x2: 30, y2: 4, stroke: colour, "stroke-width": width, "stroke-dasharray": dash.join(" ") });
  return svg("svg", { class: "line-key", viewBox: "0 0 30 8", width: 30, height: 8, "aria-hidden": "true" }, line);
}

const runKey = run => lineKey(runColour(run), MANY ? dashOf(run) : []);

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const COLOURS = 16;
const runColour = run => css("--run" + (run % COLOURS));
// Eight dashes and sixteen colours distinguish runs; the seventeenth repeats the first colour.
const dashOf = run => DASHES[(run + 3 * Math.floor(run / 8)) % 8];
// One phrase per run, unless there are too many runs for a caption.
const perRun = (runs, words) => runs.length > 4 ? "" : runs.map(run => `${run.name}: ${words(run)}`).join("; ") + ".";
const DASHES = [[], [9, 4], [2, 3], [10, 3, 2, 3], [5, 3], [14, 4], [2, 6], [7, 2, 7, 6]];

const charts = []; // {figure, redraw, inked, show}
const sections = new Map();

function section(id, title, intro) {
  const grid = element("div", { className: "grid" });
  const made = element("section", { id }, element("h2", {}, title));
  made.dataset.title = title;
  if (intro) made.append(element("p", { className: "intro" }, intro));
  made.append(grid);
  document.getElementById("charts").append(made);
  sections.set(id, made);
  return grid;
}

// A figure in `grid`. `table` returns {head, rows} when the reader opens it.
function figure(grid, { id, title, wide, caption, table }) {
  const heading = element("h3", { id: id + "-title" }, title);
  const top = element("div", { className: "top" }, heading);
  const chart = element("div", { className: "chart", role: "img", "aria-label": title + ". " + caption });
  const words = element("figcaption", {}, caption);
  const made = element("figure", { id, "aria-labelledby": id + "-title" }, top, chart, words);
  if (wide) made.classList.add("wide");
  made.dataset.drawn = "no";
  if (table) made.append(details(title, table));
  grid.append(made);
  return { figure: made, top, chart, caption: words };
}

function details(title, table) {
  const made = element("details", {}, element("summary", {}, "Data"));
  made.addEventListener("toggle", () => {
    if (!made.open || made.querySelector("table")) return;
    const { head, rows } = table();
    const step = Math.max(1, Math.ceil(rows.length / ROWS_MAX));
    const kept = rows.filter((row, at) => at % step === 0 || at === rows.length - 1);
    const cells = (row, tag) => row.map((cell, at) => element(at ? tag : "th", { scope: at && tag === "td" ? "" : tag === "th" ? "col" : "row" }, cell));
    const built = element("table", {},
      element("caption", { className: "hidden" }, title),
      element("thead", {}, element("tr", {}, ...cells(head, "th"))),
      element("tbody", {}, ...kept.map(row => element("tr", {}, ...cells(row, "td")))));
    const scroll = element("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": title + ", data" }, built);
    made.append(scroll);
    if (step > 1) made.append(element("p", { className: "quiet" }, `Every ${step}th of ${rows.length} rows.`));
  });
  return made;
}

// Radio buttons side by side; `changed` gets the chosen value.
function choice(name, legend, options, chosen, changed) {
  const made = element("fieldset", { className: "choice" }, element("legend", { className: "hidden" }, legend));
  options.forEach(([value, label]) => {
    const id = name + "-" + value;
    const input = element("input", { type: "radio", name, id, value, checked: value === chosen });
    input.addEventListener("change", () => changed(value));
    made.append(input, element("label", { htmlFor: id }, label));
  });
  return made;
}

// A switch between a linear and a logarithmic scale; `changed` gets whether it is logarithmic.
function scaleChoice(id, isLog, changed) {
  const options = [["linear", "Linear"], ["log", "Log"]];
  return choice(id + "-scale", "Scale", options, isLog ? "log" : "linear", value => changed(value === "log"));
}

// Calls `resized` when the element is no longer as wide as what was drawn in it. Widths depend
// on the window alone: the page keeps room for its scroll bar.
function onResize(host, drawn, resized) {
  window.addEventListener("resize", () => {
    if (host.clientWidth > 0 && host.clientWidth !== drawn()) resized(host.clientWidth);
  });
}

function colourOf(text) {
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  probe.fillStyle = text;
  probe.fillRect(0, 0, 1, 1);
  return probe.getImageData(0, 0, 1, 1).data;
}

// Whether any pixel of the box is close to one of the colours.
function inked(canvas, box, colours) {
  const wanted = colours.map(colourOf);
  const { data } = canvas.getContext("2d").getImageData(box.left, box.top, Math.max(1, box.width), Math.max(1, box.height));
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] < 100) continue;
    for (const colour of wanted) {
      const apart = Math.abs(data[at] - colour[0]) + Math.abs(data[at + 1] - colour[1]) + Math.abs(data[at + 2] - colour[2]);
      if (apart < 40) return true;
    }
  }
  return false;
}
