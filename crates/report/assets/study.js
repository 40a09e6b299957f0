// Figures of a reproduction: line charts below the claims of each study.
const STUDIES = JSON.parse(document.getElementById("data").textContent);
const MANY = true;

const QUANTITIES = ["ns", "s", "bytes", "rate", "joules"];

// Formats numbers of an axis, with a scaled unit where there is one.
function writer(axis, digits) {
  if (axis.unit === "share") return value => percent(value, digits);
  if (QUANTITIES.includes(axis.unit)) return value => quantity(axis.unit, value, digits);
  return value => number(value, digits);
}

const axisName = axis => {
  const plain = axis.unit === "" || axis.unit === "share" || QUANTITIES.includes(axis.unit);
  return plain ? axis.label : `${axis.label} (${axis.unit})`;
};

function scaleOf(axis) {
  if (axis.logarithmic) {
    return { distr: 3, log: 10, range: (u, low, high) => low > 0 ? [low * .85, high * 1.2] : [1, 10] };
  }
  if (axis.unit === "share") return { range: (u, low, high) => [Math.min(0, low), Math.max(1.02, high * 1.02)] };
  return { range: (u, low, high) => {
    const bottom = Math.min(0, low), top = Math.max(0, high);
    const room = (top - bottom || 1) * .05;
    return [bottom < 0 ? bottom - room : 0, top + room];
  } };
}

const side = axis => ({
  label: axisName(axis), name: axis.label, format: writer(axis, 2), exact: writer(axis, 4),
  scale: scaleOf(axis), axis: axis.logarithmic ? logAxis({ space: 40 }) : {},
});

function curvesOf(plot) {
  const kept = ([x, y]) => (!plot.x.logarithmic || x > 0) && (!plot.y.logarithmic || y > 0);
  return plot.curves.map((curve, at) => {
    const points = curve.points.filter(kept);
    return {
      run: at, label: curve.name, x: points.map(([x]) => x), y: points.map(([, y]) => y),
      dash: curve.published ? [6, 4] : [], stepped: curve.stepped, width: curve.published ? 2.5 : 1.75,
    };
  });
}

function tableOf(plot) {
  const x = writer(plot.x, 4), y = writer(plot.y, 4);
  const rows = plot.curves.flatMap(curve => curve.points.map(point => [curve.name, x(point[0]), y(point[1])]));
  return { head: ["Line", plot.x.label, plot.y.label], rows };
}

STUDIES.forEach((study, at) => {
  const grid = document.querySelector(`[data-plots="${at}"]`);
  study.plots.forEach((plot, number) => {
    const place = figure(grid, {
      id: `plot${at}-${number}`, title: plot.title, caption: plot.caption, table: () => tableOf(plot),
    });
    lines(place, { series: curvesOf(plot), x: side(plot.x), y: side(plot.y) });
  });
});
theme(() => {});
navigation();
setTimeout(report, 60);
