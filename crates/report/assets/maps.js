// Heat maps on canvases: time on the x axis, rows on the y axis, colour for the count.
const MAP_HEIGHT = 210;
const LEFT = 74, BOTTOM = 40, RIGHT = 14, TOP = 6;

// Dark to bright; reversed on a light page, so that high counts stand out.
const RAMP = [[36, 62, 112], [54, 76, 116], [87, 93, 109], [124, 123, 120], [165, 155, 115], [211, 190, 92], [255, 234, 70]];
const PALE = [[222, 235, 247], [188, 214, 238], [134, 187, 224], [77, 151, 205], [33, 108, 178], [12, 67, 132], [6, 30, 74]];

function ramp(share) {
  const stops = isDark() ? RAMP : PALE;
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at)), rest = at - low;
  return stops[low].map((value, index) => Math.round(value + (stops[low + 1][index] - value) * rest));
}

// Expands runs of zeros and finds the maximum.
function unpack(map) {
  const rows = Math.max(0, map.bounds.length - 1);
  const counts = [];
  for (const entry of map.counts) {
    if (entry < 0) for (let left = -entry; left > 0; left--) counts.push(0);
    else counts.push(entry);
  }
  let most = 0;
  for (const count of counts) if (count > most) most = count;
  return { rows, counts, columns: rows ? counts.length / rows : 0, bounds: map.bounds, step: map.buckets_per_column, most };
}

// Joins rows until each is at least `least` pixels high when `low` to `high` fill the picture.
function coarsen(map, low, high, log, least = 3) {
  if (map.rows < 2) return map;
  const scale = log ? Math.log : value => value;
  const middle = Math.floor(map.rows / 2);
  const height = (scale(map.bounds[middle + 1]) - scale(Math.max(map.bounds[middle], low))) / (scale(high) - scale(low)) * (MAP_HEIGHT - TOP - BOTTOM);
  const step = Math.max(1, Math.ceil(least / height - 1e-9));
  if (step === 1) return map;
  const rows = Math.ceil(map.rows / step), counts = new Array(rows * map.columns).fill(0);
  map.counts.forEach((count, at) => {
    counts[Math.floor(at / map.rows) * rows + Math.floor(at % map.rows / step)] += count;
  });
  const bounds = Array.from({ length: rows + 1 }, (_, row) => map.bounds[Math.min(row * step, map.rows)]);
  return { ...map, rows, counts, bounds, most: counts.reduce((most, count) => Math.max(most, count), 0) };
}

function niceStep(span, count) {
  const rough = span / count, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map(lead => lead * power).find(step => step >= rough);
}

function linearTicks(low, high, count) {
  if (!(high > low)) return [low];
  const step = niceStep(high - low, count), first = Math.ceil(low / step - 1e-9), ticks = [];
  for (let at = 0; at < 100 && (first + at) * step <= high + step * 1e-9; at++) ticks.push((first + at) * step);
  return ticks;
}

function frame(context, box, xTicks, yTicks, label) {
  context.font = FONT;
  context.fillStyle = css("--quiet");
  context.strokeStyle = css("--line");
  context.lineWidth = 1;
  context.textAlign = "center";
  context.textBaseline = "top";
  xTicks.forEach(([at, text]) => {
    context.beginPath();
    context.moveTo(Math.round(at) + .5, box.bottom);
    context.lineTo(Math.round(at) + .5, box.bottom + 5);
    context.stroke();
    context.fillText(text, at, box.bottom + 8);
  });
  context.fillText(label, (box.left + box.right) / 2, box.bottom + 24);
  context.textAlign = "right";
  context.textBaseline = "middle";
  yTicks.forEach(([at, text]) => {
    context.beginPath();
    context.moveTo(box.left - 5, Math.round(at) + .5);
    context.lineTo(box.left, Math.round(at) + .5);
    context.stroke();
    context.fillText(text, box.left - 8, at);
  });
  context.strokeRect(box.left - .5, box.top - .5, box.right - box.left + 1, box.bottom - box.top + 1);
}

// layers: [{map, colour(share) -> [r, g, b], alpha(share)}]; draws and returns cells coloured.
function drawMap(canvas, { layers, low, high, log, endSeconds, timeUnit, tick, instants, height = MAP_HEIGHT }) {
  const width = Math.max(260, canvas.parentElement.clientWidth), ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const box = { left: LEFT, right: width - RIGHT, top: TOP, bottom: height - BOTTOM };
  const scale = log ? Math.log : value => value;
  const [from, to] = [scale(low), scale(high)];
  const toY = value => box.bottom - (scale(value) - from) / (to - from) * (box.bottom - box.top);
  const toX = seconds => box.left + seconds / endSeconds * (box.right - box.left);
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
  context.clip();
  let coloured = 0;
  for (const { map, colour, alpha, most, columnSeconds, linear } of layers) {
    const full = Math.log1p(most);
    for (let column = 0; column < map.columns; column++) {
      const left = Math.floor(toX(column * columnSeconds)), right = Math.ceil(toX((column + 1) * columnSeconds));
      for (let row = 0; row < map.rows; row++) {
        const count = map.counts[column * map.rows + row];
        if (!count) continue;
        const shade = linear ? Math.min(1, count / most) : Math.log1p(count) / full;
        const [red, green, blue] = colour(shade);
        context.fillStyle = `rgba(${red},${green},${blue},${alpha(shade)})`;
        const bottom = Math.round(toY(Math.max(low, map.bounds[row]))), top = Math.round(toY(map.bounds[row + 1]));
        context.fillRect(left, Math.min(top, bottom - 1), Math.max(1, right - left), Math.max(1, bottom - top));
        coloured++;
      }
    }
  }
  context.strokeStyle = css("--ink");
  instants.filter(({ seconds }) => seconds > 0 && seconds < endSeconds).forEach(({ seconds, dash }) => {
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(Math.round(toX(seconds)) + .5, box.top);
    context.lineTo(Math.round(toX(seconds)) + .5, box.bottom);
    context.stroke();
  });
  context.restore();
  const [unit, name] = timeUnit;
  const xTicks = linearTicks(0, endSeconds / unit, Math.max(2, width / 110)).map(at => [toX(at * unit), number(at)]);
  let yTicks = log ? logTicks(low, high) : linearTicks(0, high / tick.unit, 4).map(at => at * tick.unit);
  if (tick.whole) yTicks = yTicks.filter(Number.isInteger);
  frame(context, box, xTicks, yTicks.map(at => [toY(at), tick.format(at)]), `Simulated time (${name})`);
  return coloured;
}

// One canvas per item, mostly runs, in the figure. `describe(run, item)` gives what drawMap needs.
function maps(place, items, describe, legend, named = MANY) {
  const host = element("div", { className: "maps" });
  place.chart.append(host);
  let coloured = 0;
  const drawings = items.map(item => {
    const { name, index } = item;
    const canvas = element("canvas", {});
    const title = element("p", {});
    if (named) title.append(name);
    if (MANY) title.prepend(runKey(index));
    const box = element("div", { className: "map" }, title, element("div", {}, canvas));
    host.append(box);
    const draw = () => { coloured += drawMap(canvas, describe(index, item)); };
    draw();
    return { index, box, draw, title };
  });
  const scale = element("div", { className: "scale" });
  place.chart.append(scale);
  const redraw = () => {
    coloured = 0;
    drawings.forEach(drawing => {
      if (MANY) drawing.title.firstChild.replaceWith(runKey(drawing.index));
      drawing.draw();
    });
    scale.replaceChildren(...legend());
  };
  scale.replaceChildren(...legend());
  let width = host.clientWidth;
  onResize(host, () => width, now => {
    width = now;
    redraw();
  });
  charts.push({
    figure: place.figure,
    redraw,
    show: (run, on) => drawings.forEach(drawing => { if (drawing.index === run) drawing.box.hidden = !on; }),
    inked: () => coloured > 0,
  });
}

function rampKey(from, to) {
  const canvas = element("canvas", { width: 120, height: 10 });
  const context = canvas.getContext("2d");
  for (let at = 0; at < 120; at++) {
    context.fillStyle = `rgb(${ramp(at / 119).join(",")})`;
    context.fillRect(at, 0, 1, 10);
  }
  return [from, canvas, to];
}
