// Charts of flash devices, caches, disks and energy.

// ---- flash

function flash() {
  const runs = DRAWN.filter(run => has(seriesOf(run).programs) || Object.keys(run.pictures.wear).length > 0);
  if (runs.length === 0) return;
  const grid = section("flash", "Flash", "");
  const ratios = run => {
    const { host_programs: host, programs } = seriesOf(run);
    let hosts = 0, all = 0;
    const last = (values, at) => sum(values.slice(Math.max(0, at - 7), at + 1));
    return { window: host.map((count, at) => last(host, at) > 0 ? last(programs, at) / last(host, at) : null), whole: host.map((count, at) => { hosts += count; all += programs[at]; return hosts > 0 ? all / hosts : null; }) };
  };
  const plain = value => number(value, 3);
  if (runs.some(run => has(seriesOf(run).host_programs))) {
    timeChart(grid, {
      id: "amplification", title: "Write amplification",
      caption: "Pages programmed per page programmed for the host: since the start of the run (strong) and over windows of eight intervals (faint).",
      table: () => timeTable([["recent", run => ratios(run).window, plain], ["since start", run => ratios(run).whole, plain]]),
    }, { label: "Programs per host program", format: plain, exact: value => number(value, 4), scale: { range: (u, low, high) => [Math.min(1, low ?? 1), Math.max(1.1, (high || 1) * 1.04)] } },
      run => has(seriesOf(run).host_programs) ? [{ text: "recent", y: ratios(run).window, alpha: .5, width: 1 }, { text: "since start", y: ratios(run).whole, width: 2.25 }] : []);
  }
  if (runs.some(run => seriesOf(run).free_blocks.length > 0)) {
    timeChart(grid, {
      id: "free", title: "Free blocks", log: true, caption: "Erased blocks available for writing, minimum of each interval.",
      table: () => timeTable([["free blocks", run => (seriesOf(run).free_blocks[0] || { min: [] }).min, plain]]),
    }, { label: "Free blocks", format: plain, exact: plain }, run => partLines(seriesOf(run).free_blocks, gauge => gauge.min));
  }
  const celsius = gauge => gauge.mean.map(value => value === null ? null : value / 1e3 - 273.15);
  if (runs.some(run => (seriesOf(run).temperature_mk || []).length > 0)) {
    timeChart(grid, {
      id: "temperature", title: "Temperature", caption: "Of the drive, mean of each interval.",
      table: () => timeTable([["°C", run => celsius((seriesOf(run).temperature_mk || [])[0] || { mean: [] }), plain]]),
    }, { label: "Temperature (°C)", format: plain, exact: value => number(value, 4) + " °C" }, run => partLines(seriesOf(run).temperature_mk || [], celsius));
  }
  utilisation(grid);
  activity(grid, runs);
  wear(grid, runs);
  if (runs.some(run => has(seriesOf(run).erases))) {
    const erases = run => perSecond(run, seriesOf(run).erases);
    timeChart(grid, {
      id: "erases", title: "Erases per second", log: true, caption: perRun(RUNS.filter(run => run.results.totals.erases !== null), run => `${number(run.results.totals.erases)} blocks erased after the warm-up`),
      table: () => timeTable([["erases/s", erases, plain]]),
    }, { label: "Erases per second", format: plain, exact: value => plain(value) + "/s" }, run => has(seriesOf(run).erases) ? [{ text: MANY ? "" : "Erases", y: erases(run) }] : []);
  }
}

function wear(grid, runs) {
  const worn = runs.flatMap(run => Object.entries(run.pictures.wear).map(([path, rows]) => ({ run, path, rows })));
  if (worn.length === 0) return;
  // In the caption only where the run has one device.
  const counts = run => Object.values(run.results.components).map(component => component.erase_count).filter(Boolean);
  const count = run => counts(run).length === 1 ? counts(run)[0] : undefined;
  const place = figure(grid, {
    id: "wear", title: "Wear",
    caption: perRun(runs.filter(count), run => `${number(count(run).mean, 3)} erases per block on average, from ${number(count(run).min)} to ${number(count(run).max)}`),
    table: () => ({ head: ["Run", "Device", "Erases", "Blocks"], rows: worn.flatMap(({ run, path, rows }) => rows.map(([erases, blocks]) => [run.name, path, number(erases), number(blocks)])) }),
  });
  const many = worn.length > new Set(worn.map(device => device.run.index)).size;
  // A step per row; zero in gaps between rows and after the last one.
  const steps = rows => {
    const gaps = rows.slice(1).map((row, at) => row[0] - rows[at][0]);
    const width = gaps.length ? Math.min(...gaps) : 1, points = [];
    if (rows[0][0] >= width) points.push([rows[0][0] - width, 0]);
    rows.forEach(([erases, blocks], at) => {
      points.push([erases, blocks]);
      if (at === gaps.length || gaps[at] > width) points.push([erases + width, 0]);
    });
    return points;
  };
  const series = worn.map(({ run, path, rows }) => {
    const points = steps(rows);
    return { run: run.index, label: label(run, many || !MANY ? path : ""), x: points.map(([erases]) => erases), y: points.map(([, blocks]) => blocks), stepped: true, fill: true };
  });
  const plain = value => number(value);
  const x = { label: "Erase count", name: "Erase count", format: plain, exact: plain };
  const y = { label: "Blocks", format: plain, exact: plain };
  const chart = lines(place, { series, x, y });
  // On a logarithmic scale steps without a block end below one block.
  const scale = { distr: 3, log: 10, range: (u, low, high) => [.5, Math.max(2, (high || 1) * 1.3)] };
  const logSide = { ...y, exact: value => number(Math.floor(value)), scale, axis: logAxis({}) };
  const logSeries = series.map(line => ({ ...line, fill: false, y: line.y.map(blocks => Math.max(blocks, .5)) }));
  place.top.append(scaleChoice("wear", false, isLog => chart.replace(isLog ? logSeries : series, x, isLog ? logSide : y)));
}

// ---- caches, disks, energy

function caches() {
  const asked = DRAWN.filter(run => seriesOf(run).caches.length > 0);
  const dirty = DRAWN.filter(run => seriesOf(run).dirty_pages.length > 0);
  if (asked.length + dirty.length === 0) return;
  const grid = section("cache", "Cache", "");
  const ratio = cache => cache.hits.map((hits, at) => hits + cache.misses[at] > 0 ? hits / (hits + cache.misses[at]) : null);
  const found = (run, cache) => percent(run.results.components[cache.path]?.hit_ratio ?? null);
  const single = asked.every(run => seriesOf(run).caches.length === 1);
  const summary = run => seriesOf(run).caches.map(cache => `${found(run, cache)} hits${single ? "" : " in " + cache.path}`).join(", ");
  const paths = [...new Set(asked.flatMap(run => seriesOf(run).caches.map(cache => cache.path)))];
  const column = path => [single ? "hit ratio" : path, run => {
    const cache = single ? seriesOf(run).caches[0] : seriesOf(run).caches.find(other => other.path === path);
    return cache ? ratio(cache) : [];
  }, value => percent(value)];
  if (asked.length > 0) timeChart(grid, {
    id: "hits", title: "Hit ratio",
    caption: perRun(asked, summary),
    table: () => timeTable(single ? [column("")] : paths.map(column)),
  }, { label: "Hit ratio", format: value => percent(value), exact: value => percent(value), scale: { range: [0, 1] } }, run => partLines(seriesOf(run).caches, ratio));
  if (dirty.length > 0) timeChart(grid, {
    id: "dirty", title: "Dirty pages", log: true, caption: "Pages not yet destaged to the slower medium, mean over each interval.",
    table: () => timeTable([...new Set(dirty.flatMap(run => seriesOf(run).dirty_pages.map(gauge => gauge.path)))].map(path => [path, run => (seriesOf(run).dirty_pages.find(gauge => gauge.path === path) || { mean: [] }).mean, value => number(value)])),
  }, { label: "Dirty pages", format: value => number(value), exact: value => number(value) }, run => partLines(seriesOf(run).dirty_pages, gauge => gauge.mean));
}

function disks() {
  const runs = DRAWN.filter(run => seriesOf(run).seek_distances.length > 0);
  if (runs.length === 0) return;
  const grid = section("disk", "Disk", "");
  const longestSeek = Math.max(...runs.map(run => seriesOf(run).seek_distances.length));
  const name = at => at < 2 ? String(at) : number(2 ** (at - 1));
  const series = runs.map(run => {
    const rows = seriesOf(run).seek_distances, total = sum(rows.map(row => row[1]));
    const y = rows.map(row => row[1] / total);
    return { run: run.index, label: label(run, MANY ? "" : "Movements"), x: [...y.keys(), y.length], y: [...y, 0], stepped: true, fill: true };
  });
  const place = figure(grid, {
    id: "seeks", title: "Seek distance", wide: true,
    caption: "Share of seeks by distance in cylinders, in power-of-two bins: the bin labelled 64 holds 64 to 127.",
    table: () => ({ head: ["Cylinders from", ...runs.map(run => run.name)], rows: Array.from({ length: longestSeek }, (_, at) => [name(at), ...runs.map(run => number((seriesOf(run).seek_distances[at] || [0, 0])[1]))]) }),
  });
  lines(place, {
    series,
    x: { label: "Seek distance in cylinders", name: "Cylinders from", format: name, exact: name, axis: { splits: (u, at, low, high) => linearTicks(Math.ceil(low), high, Math.max(3, u.width / 70)).filter(Number.isInteger) } },
    y: { label: "Share of seeks", format: value => percent(value), exact: value => percent(value) },
  });
}

function energy() {
  const runs = DRAWN.filter(run => Object.values(run.pictures.energy_j).some(states => has(Object.values(states))));
  if (runs.length === 0) return;
  const grid = section("energy", "Energy", "");
  const order = Object.keys(STATE_COLOURS);
  const rows = runs.flatMap(run => Object.entries(run.pictures.energy_j).map(([path, states]) => {
    const pieces = order.map(name => [name, states[name] || 0]);
    const total = sum(pieces.map(([, value]) => value));
    return { run: run.index, name: MANY ? `${run.name}: ${path.split("/").at(-1)}` : path, pieces, total, value: quantity("joules", total) };
  })).filter(row => row.total > 0);
  const place = figure(grid, {
    id: "states", title: "Energy by state", wide: true,
    caption: perRun(RUNS.filter(run => run.results.totals.energy_j !== null), run => `${quantity("joules", run.results.totals.energy_j)}, ${quantity("joules", run.results.totals.energy_j_per_request)} per request`),
    table: () => ({ head: ["State", ...rows.map(row => row.name)], rows: order.map((name, at) => [words(name), ...rows.map(row => quantity("joules", row.pieces[at][1]))]) }),
  });
  bars(place, [{ name: "", rows }], STATE_COLOURS, value => quantity("joules", value), Math.max(...rows.map(row => row.total)));
}
