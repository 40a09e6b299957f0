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

const markerStyle = line => {
  const dash = line ? line.dash || dashOf(line.run) : [];
  return dash.length === 0 ? "solid" : dash[0] > 3 ? "dashed" : "dotted";
};
const colourFor = line => runColour(line.tint ?? line.run);

// series: [{run, label, x: [], y: [], tint, dash, width, alpha, fill, stepped}]
function lines(place, { series, x, y, marks = [] }) {
  const host = place.chart;
  let plot = null, hidden = new Set();
  const table = () => uPlot.join(series.map(line => [line.x, line.y]));
  const options = width => ({
    width, height: HEIGHT, padding: [10, 26, 0, 0],
    legend: { live: true, markers: { width: 3, dash: (u, at) => markerStyle(series[at - 1]) } },
    cursor: { drag: { x: true, y: false }, points: { size: 6 } },
    scales: { x: { time: false, ...x.scale }, y: y.scale || { range: zeroed } },
    axes: [axis(x.label, x.format, x.axis), yAxis(y.label, y.format, y.axis)],
    series: [
      { label: x.name, value: (u, value) => value === null ? NONE : x.exact(value) },
      ...series.map(line => ({
        label: line.label,
        stroke: () => colourFor(line),
        width: line.width || 1.75,
        dash: line.dash || dashOf(line.run),
        fill: line.fill ? () => colourFor(line) + "22" : undefined,
        paths: line.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
        alpha: line.alpha || 1,
        points: { show: series.length > 0 && line.x.length < 3 },
        spanGaps: true,
        show: !hidden.has(line.run),
        value: (u, value) => value === null || value === undefined ? NONE : y.exact(value),
      })),
    ],
    hooks: { draw: [u => drawMarks(u, marks, hidden)] },
  });
  const build = () => {
    if (plot) plot.destroy();
    plot = new uPlot(options(Math.max(240, host.clientWidth)), table(), host);
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
    replace: (next, nextX) => {
      series = next;
      if (nextX) x = nextX;
      build();
    },
    marks: next => { marks = next; },
  };
}

// Linear from zero to slightly above the maximum.
function zeroed(u, low, high) {
  return [0, high > 0 ? high * 1.06 : 1];
}

// Vertical dashed lines at the end of each run's warm-up.
function drawMarks(u, marks, hidden) {
  const { ctx, bbox } = u;
  ctx.save();
  marks.forEach(mark => {
    if (hidden.has(mark.run) || mark.x <= u.scales.x.min || mark.x >= u.scales.x.max) return;
    const at = Math.round(u.valToPos(mark.x, "x", true));
    ctx.strokeStyle = runColour(mark.run);
    ctx.globalAlpha = .7;
    ctx.setLineDash([3, 4]);
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
  });
  ctx.restore();
}
