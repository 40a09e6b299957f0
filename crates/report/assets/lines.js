// Line charts, drawn by uPlot.
const HEIGHT = 280;

const FONT = "12px system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif";

function axis(label, format, options = {}) {
  return {
    label, labelFont: FONT, font: FONT, labelSize: 22, labelGap: 2, gap: 6, size: 32,
    stroke: () => css("--quiet"),
    grid: { stroke: () => css("--grid"), width: 1 },
    ticks: { stroke: () => css("--line"), width: 1, size: 5 },
    values: (u, splits) => splits.map(value => value === null ? "" : format(value)),
    ...options,
  };
}

// A y axis as wide as its longest label.
function yAxis(label, format, options = {}) {
  const size = (u, values) => {
    if (!values) return 50;
    const context = u.ctx;
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.font = FONT;
    const widest = Math.max(0, ...values.map(value => context.measureText(value || "").width));
    context.restore();
    return Math.ceil(widest) + 20;
  };
  return axis(label, format, { size, ...options });
}

// Powers of ten only, every second or third where there are many, or 1, 2, 5 where there are few.
function logSplits(u, side, low, high) {
  const ticks = logTicks(low, high, u.width < 480 ? 6 : 9);
  return ticks.length > 0 ? ticks : [low];
}

// A grid of powers of ten.
const logAxis = options => ({ splits: logSplits, filter: (u, splits) => splits, ...options });

const dashFor = line => line.dash || dashOf(line.run);
const colourFor = line => runColour(line.tint ?? line.run);

// The key of a series of points that no line joins.
const pointKey = colour => svg("svg", { class: "line-key point-key", viewBox: "0 0 30 8", width: 30, height: 8, "aria-hidden": "true" }, svg("circle", { cx: 15, cy: 4, r: 4, fill: colour }));

// series: [{run, label, x: [], y: [], tint, dash, width, alpha, fill, stepped, unjoined, best: []}]
// A bound is a value of y, drawn across the chart. Where the page has a legend for several charts (`shared`), that of a
// chart names the line at the pointer only.
function lines(place, { series, x, y, marks = [], bound = null, shared = false }) {
  const host = place.chart;
  let plot = null, hidden = new Set();
  const table = () => uPlot.join(series.map(line => [line.x, line.y]));
  const options = width => ({
    width, height: HEIGHT, padding: [10, 26, 0, 0],
    legend: { live: true, markers: { show: true, width: 0, fill: () => "none" } },
    cursor: { drag: { x: true, y: false }, points: { size: 6 }, focus: { prox: shared ? 24 : -1 } },
    scales: { x: { time: false, ...x.scale }, y: y.scale || { range: zeroed } },
    axes: [axis(x.label, x.format, x.axis), yAxis(y.label, y.format, y.axis)],
    series: [
      { label: x.name, value: (u, value) => value === null ? NONE : x.exact(value) },
      ...series.map(line => ({
        label: line.label,
        stroke: () => colourFor(line),
        width: line.width || 1.75,
        dash: dashFor(line),
        fill: line.fill ? () => colourFor(line) + "22" : undefined,
        paths: line.unjoined ? () => null : line.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
        alpha: line.alpha || 1,
        points: { show: line.points || line.x.length < 3, ...line.unjoined ? { size: 9, fill: () => colourFor(line) } : { size: 6 } },
        spanGaps: !line.gaps,
        show: !hidden.has(line.run),
        value: (u, value) => value === null || value === undefined ? NONE : y.exact(value),
      })),
    ],
    hooks: {
      draw: [u => drawMarks(u, marks, hidden), u => drawBound(u, bound), u => drawIntervals(u, series, hidden), u => drawBest(u, series, hidden)],
      setSeries: [(u, near) => u.root.querySelectorAll(".u-legend .u-series").forEach((row, at) => row.classList.toggle("near", at === near))],
    },
  });
  host.classList.toggle("shared", shared);
  const build = () => {
    if (plot) plot.destroy();
    plot = new uPlot(options(Math.max(240, host.clientWidth)), table(), host);
    const rows = host.querySelectorAll(".u-legend .u-series");
    series.forEach((line, at) => rows[at + 1].querySelector(".u-marker").append(line.unjoined ? pointKey(colourFor(line)) : lineKey(colourFor(line), dashFor(line), line.width || 2)));
  };
  build();
  onResize(host, () => plot.width, width => plot.setSize({ width: Math.max(240, width), height: HEIGHT }));
  charts.push({
    figure: place.figure,
    redraw: build,
    show: (run, on) => {
      if (on) hidden.delete(run); else hidden.add(run);
      series.forEach((line, at) => {
        if (line.run === run) plot.setSeries(at + 1, { show: on });
      });
    },
    inked: () => {
      const shown = series.filter(line => !hidden.has(line.run) && line.x.length > 0);
      return shown.length === 0 || inked(plot.ctx.canvas, plot.bbox, shown.map(colourFor));
    },
  });
  return {
    replace: (next, nextX = x, nextY = y) => {
      [series, x, y] = [next, nextX, nextY];
      build();
    },
    marks: next => { marks = next; },
  };
}

// Linear from zero to slightly above the maximum.
function zeroed(u, low, high) {
  return [0, high > 0 ? high * 1.06 : 1];
}

// Logarithmic, a little wider than the values.
const logScale = { distr: 3, log: 10, range: (u, low, high) => low > 0 ? [low * .85, high * 1.2] : [1, 10] };

// With more marks than this, texts would hide the lines.
const MARK_TEXTS_MAX = 12;

// Bars from `y - half` to `y + half` of series that have `half`.
function drawIntervals(u, series, hidden) {
  const { ctx } = u, ratio = window.devicePixelRatio || 1;
  ctx.save();
  ctx.lineWidth = 1.25 * ratio;
  series.filter(line => line.half && !hidden.has(line.run)).forEach(line => line.half.forEach((half, at) => {
    if (!half) return;
    const x = Math.round(u.valToPos(line.x[at], "x", true)), cap = 3 * ratio;
    const [top, bottom] = [1, -1].map(side => Math.round(u.valToPos(line.y[at] + side * half, "y", true)));
    ctx.strokeStyle = colourFor(line);
    ctx.beginPath();
    for (const [from, to] of [[[x, top], [x, bottom]], [[x - cap, top], [x + cap, top]], [[x - cap, bottom], [x + cap, bottom]]]) {
      ctx.moveTo(...from);
      ctx.lineTo(...to);
    }
    ctx.stroke();
  }));
  ctx.restore();
}

// A line across at the bound.
function drawBound(u, bound) {
  if (bound === null) return;
  const { ctx, bbox } = u, ratio = window.devicePixelRatio || 1, y = Math.round(u.valToPos(bound, "y", true));
  ctx.save();
  ctx.lineWidth = 1.5 * ratio;
  ctx.strokeStyle = css("--broken");
  ctx.setLineDash([6 * ratio, 4 * ratio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}

// Rings around the best points.
function drawBest(u, series, hidden) {
  const { ctx } = u, ratio = window.devicePixelRatio || 1;
  ctx.save();
  ctx.lineWidth = 2 * ratio;
  ctx.strokeStyle = css("--ink");
  series.filter(line => line.best && !hidden.has(line.run)).forEach(line => line.best.forEach((best, at) => {
    if (!best) return;
    ctx.beginPath();
    ctx.arc(u.valToPos(line.x[at], "x", true), u.valToPos(line.y[at], "y", true), 9 * ratio, 0, 2 * Math.PI);
    ctx.stroke();
  }));
  ctx.restore();
}

// Vertical lines at the marks; those without a text, such as the end of a warm-up, are dashed.
function drawMarks(u, marks, hidden) {
  const { ctx, bbox } = u, ratio = window.devicePixelRatio || 1;
  const shown = marks.filter(mark => !hidden.has(mark.run) && mark.x > u.scales.x.min && mark.x < u.scales.x.max);
  const texts = shown.filter(mark => mark.text).length <= MARK_TEXTS_MAX;
  ctx.save();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "top";
  shown.forEach((mark, number) => {
    const at = Math.round(u.valToPos(mark.x, "x", true));
    ctx.strokeStyle = ctx.fillStyle = mark.text && !MANY ? css("--ink") : runColour(mark.run);
    ctx.globalAlpha = .7;
    ctx.setLineDash(mark.text ? [] : [3 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    if (!mark.text || !texts) return;
    const left = at + ctx.measureText(mark.text).width + 4 * ratio > bbox.left + bbox.width;
    ctx.globalAlpha = 1;
    ctx.textAlign = left ? "right" : "left";
    ctx.fillText(mark.text, at + (left ? -4 : 4) * ratio, bbox.top + (2 + number % 4 * 13) * ratio);
  });
  ctx.restore();
}
