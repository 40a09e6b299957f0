"use strict";
// Lessons: steps that load systems, and questions whose answers are decided by their runs. A lesson
// is one file in `lessons`, with one line in `index.html`.
const lessons = (() => {
  // Figures that steps show and questions use, by name: their label, and how results give them.
  const ms = time => (time === null ? null : time / 1e6);
  const flash = results => Object.values(results.components).find(one => one.erase_count) || {};
  const cache = results => Object.values(results.components).find(one => one.lookups) || {};
  const percent = share => (share === null ? NaN : 100 * share);
  const perWrite = (count, results) => count / results.totals.host_programs;
  const FIGURES = {
    mean: ["mean latency, ms", it => ms(it.latency_ns.all.mean)],
    readMean: ["mean read latency, ms", it => ms(it.latency_ns.read.mean)],
    writeMean: ["mean write latency, ms", it => ms(it.latency_ns.write.mean)],
    readP99: ["99th percentile of read latency, ms", it => ms(it.latency_ns.read.p99)],
    longest: ["longest latency, ms", it => ms(it.latency_ns.all.max)],
    iops: ["requests/s", it => it.throughput.iops],
    rate: ["throughput, MB/s", it => it.throughput.bytes_per_s / 1e6],
    writeAmplification: ["write amplification", it => it.totals.write_amplification],
    hostPages: ["pages written by the host", it => it.totals.host_programs],
    programs: ["pages programmed", it => it.totals.programs],
    erases: ["blocks erased", it => it.totals.erases],
    victimUtilisation: ["valid pages in a victim, %", it => 100
      * flash(it).programs_by_cause.gc / flash(it).erases_by_cause.gc
      / flash(it).constants.pages_per_block],
    mapKib: ["mapping table in RAM, KiB", it => flash(it).constants.mapping_ram_bytes / 1024],
    capacityMib: ["capacity, MiB", it => flash(it).constants.exported_pages
      * flash(it).constants.page_bytes / 2 ** 20],
    mapReads: ["map reads per page written", it => perWrite(flash(it).reads_by_cause.mapping, it)],
    mergeCopies: ["pages merged per page written",
      it => perWrite(flash(it).programs_by_cause.merge, it)],
    hits: ["hits, % of pages", it => percent(it.totals.hit_ratio)],
    misses: ["misses, % of pages", it => 100 - percent(it.totals.hit_ratio)],
    destaged: ["destaged, MiB", it => cache(it).destaged_bytes / 2 ** 20],
  };
  const figure = (name, results) => FIGURES[name][1](results);

  const all = [];
  let lesson = null, number = 0, runs = [], busy = false;
  const step = () => lesson.steps[number - 1];

  // The steps that were answered: kept by the browser where it allows that to pages in a folder.
  const KEY = "hybridsim-lessons";
  const answered = (() => {
    try {
      return new Set(JSON.parse(localStorage.getItem(KEY)) || []);
    } catch {
      return new Set();
    }
  })();

  function remember(name) {
    answered.add(name);
    try {
      localStorage.setItem(KEY, JSON.stringify([...answered]));
    } catch {
      // Progress then lasts until the page is closed.
    }
  }

  // The lesson and step of a name such as `cache/2`.
  function find(name) {
    const [id, at = "1"] = name.split("/"), found = all.find(one => one.id === id);
    const within = found && Number(at) >= 1 && Number(at) <= found.steps.length;
    return within ? { found, at: Math.trunc(Number(at)) } : null;
  }

  // Runs ------------------------------------------------------------------------------------------

  // The number in a value such as 0.07, "7%" or "64MiB"; sizes in MiB.
  function numberIn(value) {
    const units = {
      "": 1, "%": 0.01, KiB: 2 ** -10, MiB: 1, GiB: 2 ** 10, TiB: 2 ** 20,
      kB: 1e3 / 2 ** 20, MB: 1e6 / 2 ** 20, GB: 1e9 / 2 ** 20,
    };
    const [, digits, unit] = /^"?([\d._]+)\s*([%\w]*)"?$/.exec(value) || [null, "", "?"];
    return Number(digits.replaceAll("_", "") || NaN) * (units[unit] || NaN);
  }

  // A run as questions see it: figures by name, results, and keys: as written, and as numbers.
  function add(text, results) {
    if (!lesson) return;
    const { systems, vary = [] } = step();
    const system = systems.findIndex(own =>
      scenarioText.essence(own, vary) === scenarioText.essence(text, vary));
    if (system < 0) {
      const may = vary.length > 0 ? `only ${vary.join(" and ")} may differ` : "nothing may differ";
      say(`This run does not count: in this step ${may}. Load the step again.`);
      return;
    }
    const key = name => scenarioText.get(text, name), value = name => numberIn(key(name));
    const run = { system, text, results, key, value };
    Object.keys(FIGURES).forEach(name => Object.defineProperty(run, name, {
      get: () => figure(name, results),
    }));
    runs.push(run);
    drawRuns();
  }

  // The latest run of each system; undefined where there is none yet.
  const latest = () => step().systems.map((_, at) => runs.filter(run => run.system === at).pop());

  // Whether the answer is right, by the runs; an answer that cannot be judged yet is wrong.
  function judge(answer) {
    const { systems, ask, hint } = step(), last = latest();
    if (last.includes(undefined)) {
      const which = systems.length > 1 ? "all systems" : "the system";
      return { right: false, text: `Run ${which} first.` };
    }
    let right = false;
    if (ask.goal) right = ask.goal(last, runs);
    else if (ask.choices) right = answer === ask.right(last, runs);
    else {
      const value = ask.number(last, runs), given = Number(answer.replace(",", "."));
      if (answer.trim() === "" || Number.isNaN(given)) return { right, text: "Enter a number." };
      right = Math.abs(given - value) <= ask.within * Math.abs(value);
    }
    if (!right) return { right, text: `Not yet. ${hint}` };
    return { right, text: `Right. ${step().why}` };
  }

  // Page ------------------------------------------------------------------------------------------

  function say(text) {
    if (by("verdict")) Object.assign(by("verdict"), { textContent: text, className: "" });
  }

  const prose = (tag, html, properties = {}) => element(tag, { innerHTML: html, ...properties });

  function shown(value) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
    return String(+value.toPrecision(4));
  }

  const short = key => key.split(".").pop();

  // A row for each run: its system where there are several, keys that may change, figures.
  function drawRuns() {
    const { systems, shows, vary = [], curve } = step(), named = systems.length > 1 || !vary.length;
    const cells = (tag, texts, scope) => texts.map((text, at) =>
      (at ? element(tag, { textContent: text }) : element("th", { textContent: text, scope })));
    // Long keys may break at their underscores.
    const breakable = key => short(key).replaceAll("_", "_\u200b");
    const head = [...(named ? ["system"] : []), ...vary.map(breakable),
      ...shows.map(name => FIGURES[name][0])];
    const row = run => [...(named ? [scenarioText.title(run.text)] : []),
      ...vary.map(key => (run.key(key) || "–").replaceAll("\"", "")),
      ...shows.map(name => shown(run[name]))];
    by("lesson-runs").hidden = runs.length === 0;
    by("lesson-runs").replaceChildren(
      element("caption", { textContent: "Runs of this step" }),
      element("thead", {}, element("tr", {}, ...cells("th", head, "col"))),
      element("tbody", {}, ...runs.map(run => element("tr", {}, ...cells("td", row(run), "row")))),
    );
    by("lesson-curve").replaceChildren(...(curve && runs.length > 1 ? [plot(curve)] : []));
  }

  // A figure over a key.
  function plot({ key, figure: name }) {
    const points = runs.map(run => [run.value(key), run[name]])
      .filter(point => point.every(Number.isFinite)).sort((a, b) => a[0] - b[0]);
    const [right, top] = [0, 1].map(axis => Math.max(0, ...points.map(point => point[axis])) || 1);
    const svg = (tag, attributes, text = "") => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
      Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
      made.textContent = text;
      return made;
    };
    const at = ([px, py]) => [50 + 300 * px / right, 160 - 130 * py / top];
    const drawing = svg("svg", { viewBox: "0 0 380 200", role: "img" });
    drawing.append(
      svg("title", {}, `${FIGURES[name][0]} over ${short(key)}: the values of the table`),
      svg("path", { class: "axis", d: "M50 20V160H360" }),
      svg("polyline", { points: points.map(point => at(point).join(",")).join(" ") }),
      ...points.map(point => {
        const [cx, cy] = at(point);
        return svg("circle", { cx, cy, r: 4 });
      }),
      svg("text", { x: 50, y: 14 }, FIGURES[name][0]),
      svg("text", { x: 44, y: 34, "text-anchor": "end" }, shown(top)),
      svg("text", { x: 44, y: 164, "text-anchor": "end" }, "0"),
      svg("text", { x: 350, y: 178, "text-anchor": "end" }, shown(right)),
      svg("text", { x: 200, y: 194, "text-anchor": "middle" }, axisOf(key)),
    );
    return drawing;
  }

  function axisOf(key) {
    const unit = /[KMG]iB/.test(runs[0].key(key)) ? ", MiB" : "";
    return short(key) + unit;
  }

  function question() {
    const { ask } = step(), choices = (ask.choices || []).map((text, value) =>
      element("label", {}, element("input", { type: "radio", name: "answer", value }),
        prose("span", text)));
    const input = element("input", { id: "answer", inputMode: "decimal", autocomplete: "off" });
    input.setAttribute("aria-describedby", "verdict");
    const field = element("label", {}, "Answer ", input, ask.unit ? ` ${ask.unit}` : "");
    const form = element("form", {}, element("fieldset", {},
      prose("legend", ask.text), ...choices, ...(ask.number ? [field] : []),
      element("button", { textContent: "Check", className: "main" })));
    form.addEventListener("submit", event => {
      event.preventDefault();
      const chosen = form.elements.answer;
      check(ask.choices ? Number(chosen.value || NaN) : (chosen || { value: "" }).value);
    });
    return form;
  }

  function check(answer) {
    const { right, text } = judge(answer);
    const verdict = by("verdict");
    verdict.innerHTML = text;
    verdict.className = right ? "right" : "wrong";
    if (!right) return;
    remember(`${lesson.id}/${number}`);
    drawList();
  }

  function button(text, action, properties = {}) {
    const made = element("button", { type: "button", textContent: text, ...properties });
    made.addEventListener("click", action);
    return made;
  }

  function drawStep() {
    const { title, text, look, systems } = step(), last = number === lesson.steps.length;
    const link = (at, words) =>
      element("a", { href: `#lesson=${lesson.id}/${at}`, textContent: words });
    const next = all[all.indexOf(lesson) + 1];
    const run = systems.length > 1 ? "Run all systems" : "Run";
    const steps = element("nav", {},
      ...(number > 1 ? [link(number - 1, "Previous step")] : []),
      ...(last ? [] : [link(number + 1, "Next step")]),
      ...(last && next ? [element("a", { href: `#lesson=${next.id}`,
        textContent: `Next lesson: ${next.title}` })] : []),
      element("a", { href: "#example=disk,ssd,hybrid", textContent: "Leave the lesson" }));
    steps.setAttribute("aria-label", "Steps");
    by("lesson").replaceChildren(
      element("p", { className: "quiet", textContent:
        `${lesson.title} · step ${number} of ${lesson.steps.length} · about 10 minutes` }),
      element("h3", { id: "step", tabIndex: -1, textContent: title }),
      element("div", { className: "halves" },
        element("div", { className: "text" }, ...text.map(one => prose("p", one)),
          prose("p", look, { className: "look" })),
        element("div", { className: "runs" }, element("div", { id: "lesson-knobs" }),
          element("div", { className: "row" },
            button(run, () => runSystems(), { id: "lesson-run", className: "main" }),
            button("Load the step again", load)),
          element("div", { className: "scroll" }, element("table", { id: "lesson-runs" })),
          element("div", { id: "lesson-curve" })),
        element("div", { className: "question" }, question(),
          element("p", { id: "verdict", role: "status" }))),
      steps,
    );
    drawRuns();
    setBusy(busy);
  }

  function drawList() {
    by("lessons").replaceChildren(...all.map(one => {
      const done = one.steps.filter((_, at) => answered.has(`${one.id}/${at + 1}`)).length;
      const link = element("a", { href: `#lesson=${one.id}`, textContent: one.title });
      if (one === lesson) link.setAttribute("aria-current", "true");
      const count = `${done} of ${one.steps.length} answered`;
      return element("li", {}, link, element("span", { className: "quiet", textContent: count }));
    }));
  }

  // The lesson of a name such as `cache/2`, without runs; none for "".
  function show(name) {
    const opened = find(name);
    [lesson, number, runs] = opened ? [opened.found, opened.at, []] : [null, 0, []];
    by("lesson").hidden = !lesson;
    by("lesson").replaceChildren();
    drawList();
    if (lesson) drawStep();
  }

  // The state of the page at the start of a step; null for names of no step.
  function start(name) {
    const opened = find(name);
    if (!opened) return null;
    const { systems, current = 0 } = opened.found.steps[opened.at - 1];
    return { systems: [...systems], current, lesson: name };
  }

  function load() {
    if (busy) simulator.stop("Cancelled.");
    Object.assign(state, start(state.lesson));
    select(state.current);
    say("");
  }

  function runSystems() {
    state.systems[state.current] = editor.value;
    return run(state.systems.map((_, at) => at));
  }

  return {
    define: one => all.push(one),
    all, start, show, add, say,
    get runs() { return runs; },
    focus: () => { if (lesson) by("step").focus(); },
    setBusy(now) {
      busy = now;
      if (by("lesson-run")) by("lesson-run").disabled = now;
      if (lesson && now) say("Running…");
      else if (lesson && by("verdict").textContent === "Running…") say("");
    },
    // The keys of the step to change, beside the question.
    drawKnobs(knobs) {
      if (!lesson) return;
      const wanted = knobs.filter(({ key }) => (step().vary || []).includes(key));
      by("lesson-knobs").replaceChildren(...wanted.map(offer => knob(offer, "lesson")));
    },
  };
})();
