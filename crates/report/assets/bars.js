// Stacked bars made of HTML elements, so that their text stays selectable.
const PHASE_COLOURS = {
  queue: "#8d99a6", overhead: "#5d6670", bus: "#b7c0c9",
  seek: "#0072b2", rotate: "#56b4e9", transfer: "#0a3f66",
  flash_read: "#f0e442", flash_program: "#e69f00", flash_erase: "#a65c00", flash_bus: "#fbd29a",
  gc: "#d55e00", destage: "#cc79a7", spin_up: "#009e73",
};
const STATE_COLOURS = {
  idle: "#b7c0c9", standby: "#8d99a6", active: "#56b4e9", seek: "#0072b2", read: "#f0e442",
  write: "#e69f00", erase: "#d55e00", spin_up: "#009e73", spin_down: "#7fcfb8",
  spin_ups: "#cc79a7", flash_reads: "#fff3a0", flash_programs: "#fbd29a", flash_erases: "#a65c00",
  mapping_ram: "#5d6670", victim_search: "#0a3f66",
};

function textOn(colour) {
  const [red, green, blue] = colourOf(colour);
  return red * .299 + green * .587 + blue * .114 > 140 ? "#14171a" : "#ffffff";
}

// sets: [{name, rows: [{run, name, pieces: [[key, value]], total, value}]}]; `most` scales rows to
// each other; without it every row has full width. `framed` shows the full width behind the bars.
function bars(place, sets, colours, format, most, framed = false) {
  const grid = element("div", { className: framed ? "bars framed" : "bars" }), hidden = new Set();
  let keys = element("ul", {});
  const show = (run, on) => grid.querySelectorAll(`[data-run="${run}"]`).forEach(part => { part.hidden = !on; part.style.display = on ? "" : "none"; });
  const fill = sets => {
    const used = new Set();
    grid.replaceChildren();
    sets.forEach(set => {
      if (set.name) grid.append(element("div", { className: "set" }, set.name));
      set.rows.forEach(row => grid.append(...barRow(row, colours, format, most, used)));
    });
    const next = colourKeys(colours, used);
    keys.replaceWith(next);
    keys = next;
    hidden.forEach(run => show(run, false));
  };
  place.chart.append(grid, keys);
  fill(sets);
  charts.push({
    figure: place.figure,
    redraw: () => {},
    show: (run, on) => {
      if (on) hidden.delete(run); else hidden.add(run);
      show(run, on);
    },
    inked: () => [...grid.querySelectorAll(".piece")].some(piece => piece.getBoundingClientRect().width > 2),
  });
  return { replace: fill };
}

function colourKeys(colours, used) {
  const keys = element("ul", { className: "keys" });
  Object.keys(colours).filter(key => used.has(key)).forEach(key => {
    const swatch = element("i");
    swatch.style.background = colours[key];
    keys.append(element("li", {}, swatch, words(key)));
  });
  return keys;
}

function barRow(row, colours, format, most, used) {
  const track = element("div", { className: "track" });
  const whole = most || row.total || 1;
  row.pieces.filter(([, value]) => value > 0).forEach(([key, value]) => {
    const width = value / whole * 100;
    used.add(key);
    const piece = element("div", { className: "piece", title: `${words(key)}: ${format(value)} (${percent(value / row.total)})` });
    piece.style.width = width + "%";
    piece.style.background = colours[key];
    piece.style.color = textOn(colours[key]);
    if (width > words(key).length * .75 + 2) piece.textContent = words(key); else piece.classList.add("thin");
    track.append(piece);
  });
  const parts = [
    element("div", { className: "name" }, row.name),
    element("div", { className: "value" }, row.value),
    track,
  ];
  parts.forEach(part => { part.dataset.run = row.run; });
  return parts;
}
