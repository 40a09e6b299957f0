"use strict";
// The page: systems, editor, settings, runs and their report.
const by = id => document.getElementById(id);
const editor = by("scenario");
const state = { systems: [""], current: 0, lesson: "" };
let catalogue = { examples: [], presets: [] }, report = "", busy = false, edits = 0;
let unchecked = false;
const complete = completion(editor, by("completions"), by("lines"));

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const say = text => { by("status").textContent = text; };

// Editor ------------------------------------------------------------------------------------------

function drawLines(problems) {
  const wrong = new Map(problems.filter(({ place }) => place && !place.source)
    .map(({ place, message }) => [place.line, message]));
  const count = editor.value.split("\n").length;
  by("lines").replaceChildren(...Array.from({ length: count }, (_, at) => element("div", {
    textContent: at + 1,
    className: wrong.has(at + 1) ? "wrong" : "",
    title: wrong.get(at + 1) || "",
  })));
  by("lines").scrollTop = editor.scrollTop;
}

function goTo({ line, column, length }) {
  const lines = editor.value.split("\n").slice(0, line - 1);
  const before = lines.reduce((sum, text) => sum + text.length + 1, 0);
  editor.focus();
  editor.setSelectionRange(before + column - 1, before + column - 1 + length);
  editor.scrollTop = Math.max(0, (line - 5) * 20);
}

function drawProblems(problems) {
  drawLines(problems);
  editor.setAttribute("aria-invalid", String(problems.length > 0));
  by("problems").replaceChildren(...problems.map(({ key, message, help, place }) => {
    const where = !place ? "" : place.source ? `${place.source}: ` : `Line ${place.line}: `;
    const text = `${where}${key ? `${key}: ` : ""}${message}${help ? `\n${help}` : ""}`;
    if (!place || place.source) return element("p", { className: "problem", textContent: text });
    const button = element("button", { className: "problem", type: "button", textContent: text });
    button.addEventListener("click", () => goTo(place));
    return button;
  }));
}

// Settings ----------------------------------------------------------------------------------------

const sizeText = exponent => {
  const units = ["B", "KiB", "MiB", "GiB"], unit = Math.min(Math.floor(exponent / 10), 3);
  return `${2 ** (exponent - unit * 10)}${units[unit]}`;
};

const percent = value => `${+(100 * value).toFixed(1)} %`;

// How a knob's input shows a value of the scenario, how it writes one, and how people read it.
function scaleOf({ share, count, powers, size, unit }) {
  const number = word => Number(word).toLocaleString("en");
  if (share) return { range: share, from: Number, literal: String, shown: percent };
  if (count) {
    return { range: count, from: Number, literal: String, shown: at => `${number(at)} ${unit}` };
  }
  const from = word => Math.log2(Number(word));
  if (powers) {
    const shown = at => `${number(+(2 ** at).toFixed(0))} ${unit}`;
    return { range: [...powers, 1], from, literal: at => String(2 ** at), shown };
  }
  const shown = at => sizeText(Math.round(at));
  return { range: [...size, 1], from, literal: at => `"${shown(at)}"`, shown };
}

function choice({ value, choices }) {
  const input = element("select", {}, ...choices.map(String)
    .map(word => element("option", { value: word, textContent: word })));
  input.value = value;
  return { input, literal: () => (choices.includes(true) ? input.value : `"${input.value}"`) };
}

function slider(offer, output) {
  const { range: [min, max, step], from, literal, shown } = scaleOf(offer);
  const known = offer.value !== null && (offer.share || Number(offer.value) > 0);
  const at = known ? from(offer.value) : min;
  const input = element("input", { type: "range", min, max, step, value: at });
  const draw = value => {
    output.textContent = shown(value);
    input.setAttribute("aria-valuetext", output.textContent);
  };
  if (known) draw(at);
  else output.textContent = "default";
  input.addEventListener("input", () => draw(Number(input.value)));
  return { input, literal: () => literal(Number(input.value)) };
}

// The control of a key; `place` is where it stands in the page.
function knob(offer, place) {
  const { key, label, help, choices } = offer, id = `${place}-${key}`;
  const output = element("output", { htmlFor: id });
  const { input, literal } = choices ? choice(offer) : slider(offer, output);
  input.id = id;
  input.setAttribute("aria-describedby", `${id}-help`);
  input.addEventListener("change", () => {
    editor.value = scenarioText.set(editor.value, key, literal()) ?? editor.value;
    return edited();
  });
  // The rest of the help is in the reference, and in the tip.
  const [first] = help.split(". ");
  const note = element("p", { id: `${id}-help`, title: help, textContent: first });
  const name = element("code", { textContent: key.replace(/^component\./, "") });
  const title = element("label", { htmlFor: id }, `${label} `, name);
  return element("div", { className: "knob" }, title, output, input, note);
}

function drawKnobs(knobs) {
  const focused = document.activeElement && document.activeElement.id;
  const settable = knobs.filter(({ key }) => scenarioText.set(editor.value, key, "0") !== null);
  by("knobs").replaceChildren(...settable.map(offer => knob(offer, "knob")));
  lessons.drawKnobs(settable);
  if (focused && by(focused)) by(focused).focus();
}

// Systems -----------------------------------------------------------------------------------------

const nameOf = (text, at) => scenarioText.title(text) || `System ${at + 1}`;

function drawSystems() {
  by("systems").replaceChildren(...state.systems.map((text, at) => {
    const button = element("button", { type: "button", textContent: nameOf(text, at) });
    button.setAttribute("aria-pressed", String(at === state.current));
    button.addEventListener("click", () => select(at));
    return button;
  }));
  by("remove").disabled = state.systems.length === 1;
  by("compare").disabled = busy || state.systems.length === 1;
}

function select(at) {
  state.current = at;
  editor.value = state.systems[at];
  edited();
}

function add(text) {
  state.systems.push(text);
  select(state.systems.length - 1);
}

async function remember() {
  const fragment = await pageState.pack(state);
  history.replaceState(null, "", `#${fragment}`);
}

// Called after every change of the text: checks it once the user pauses.
function edited() {
  state.systems[state.current] = editor.value;
  drawSystems();
  drawLines([]);
  edits += 1;
  const now = edits;
  setTimeout(() => { if (now === edits) { remember(); check(); } }, 250);
}

// Fetches the traces that come with the page; those that it does not have are named.
async function fetchTraces(names) {
  const known = names.filter(name => hybridsimTraces.includes(name) && !simulator.hasTrace(name));
  await Promise.all(known.map(name => new Promise((resolve, reject) => {
    const script = element("script", { src: `traces/${name}.js` });
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => reject(new Error(`the trace ${name} cannot be loaded`)));
    document.head.append(script);
  })));
  return known.length > 0;
}

// Called by the files in `traces`.
function hybridsimTrace(name, base64) {
  simulator.addTrace(name, pageState.toBytes(base64).buffer);
}

async function checked(text) {
  const answer = await simulator.call("check", text);
  if (answer.traces && await fetchTraces(answer.traces)) return simulator.call("check", text);
  return answer;
}

const absent = name => `the trace ${name} is not in this browser: open its file, or drop it here`;

async function check() {
  unchecked = busy;
  if (busy) return;
  const now = edits;
  try {
    const answer = await checked(editor.value);
    unchecked = busy;
    if (now !== edits || busy) return;
    const lost = (answer.traces || []).filter(name => !hybridsimTraces.includes(name));
    const missing = lost.map(name => ({ key: "", message: absent(name) }));
    drawProblems([...(answer.problems || []), ...missing]);
    if (answer.knobs) drawKnobs(answer.knobs);
  } catch (error) {
    say(`The scenario cannot be checked: ${error.message}`);
  }
}

// Runs --------------------------------------------------------------------------------------------

function setBusy(now) {
  busy = now;
  document.body.setAttribute("aria-busy", String(now));
  by("run").disabled = now;
  by("cancel").disabled = !now;
  by("progress").hidden = !now;
  lessons.setBusy(now);
  drawSystems();
}

function drawRun(name, { results, fault, seconds, memory }) {
  const rate = Math.round(results.events / seconds).toLocaleString("en");
  const mib = Math.round(memory / 2 ** 20);
  const item = element("li", {}, `${name}: ${results.requests.toLocaleString("en")} requests in ` +
    `${seconds.toFixed(2)} s, ${rate} events/s, ${mib} MiB, fingerprint `,
    element("code", { textContent: results.fingerprint }),
    fault ? `. It ended early: ${fault}` : "");
  Object.assign(item.dataset, { fingerprint: results.fingerprint, seconds, memory });
  by("runs").append(item);
}

async function runOne(at) {
  const text = state.systems[at], name = nameOf(text, at);
  simulator.onProgress = ({ fraction, requests, preparing }) => {
    if (fraction === null) by("progress").removeAttribute("value");
    else by("progress").value = fraction;
    say(`${name}: ${preparing ? "preconditioning" : `${requests.toLocaleString("en")} requests`}`);
  };
  say(`${name}: starting`);
  await checked(text);
  const answer = await simulator.call("run", text, `${name}.toml`);
  if (answer.results) {
    if (answer.fault) lessons.say("The run ended early and does not count.");
    else lessons.add(text, answer.results);
    return drawRun(name, answer);
  }
  if (at !== state.current) { state.current = at; editor.value = text; }
  drawProblems(answer.problems);
  throw new Error(`${name}: the scenario has ${answer.problems.length} problem(s), listed above`);
}

async function run(numbers) {
  if (busy) return;
  state.systems[state.current] = editor.value;
  setBusy(true);
  by("runs").replaceChildren();
  by("report").hidden = true;
  delete document.body.dataset.done;
  try {
    await simulator.call("clear");
    for (const at of numbers) await runOne(at);
    report = await simulator.call("report");
    by("report").srcdoc = report;
    by("report").hidden = false;
    by("save-report").disabled = false;
    const which = numbers.length === 1 ? "the run" : `${numbers.length} runs`;
    say(`Done: the report of ${which} is below.`);
  } catch (error) {
    say(error.message);
    lessons.say(error.message);
  }
  setBusy(false);
  if (unchecked) check();
  document.body.dataset.done = String(performance.now());
}

function download(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

async function useFile(file) {
  if (!file) return;
  try {
    await simulator.addTrace(file.name, await file.arrayBuffer());
  } catch (error) {
    say(`${file.name} cannot be used: ${error.message}`);
    return;
  }
  state.systems = state.systems.map(text => scenarioText.replay(text, file.name));
  select(state.current);
  say(`${file.name} is the workload of every system now.`);
}

// Start -------------------------------------------------------------------------------------------

const compared = ["disk", "ssd", "hybrid"];

function fill() {
  const kinds = [...new Set(catalogue.presets.map(({ kind }) => kind))];
  const option = ({ name, summary }) =>
    element("option", { value: name, textContent: name, title: summary });
  by("examples").append(...catalogue.examples.map(option));
  by("presets").append(...kinds.map(kind => element("optgroup", { label: kind },
    ...catalogue.presets.filter(preset => preset.kind === kind).map(option))));
}

const example = name => (catalogue.examples.find(one => one.name === name) || {}).text;

// The systems of the address, of an example or a lesson that it names, or those of the tutorial.
async function begin() {
  const fragment = location.hash.slice(1);
  // Names have no letters that addresses escape.
  const [, kind, name] = /^(example|lesson)=(.+)$/.exec(fragment) || [];
  const examples = kind === "example" ? name.split(",").map(example).filter(Boolean) : [];
  const lesson = kind === "lesson" && lessons.start(name);
  Object.assign(state, { systems: compared.map(example), current: 0, lesson: "" });
  try {
    if (lesson) Object.assign(state, lesson);
    else if (examples.length > 0) state.systems = examples;
    else if (name) say(`There is no ${kind} ${name}: these are the examples of the tutorial.`);
    else if (fragment) Object.assign(state, await pageState.unpack(fragment));
  } catch (error) {
    say(`The link is damaged (${error.message}): these are the examples of the tutorial.`);
  }
  lessons.show(state.lesson);
  editor.value = state.systems[state.current];
  drawSystems();
}

function listen() {
  editor.addEventListener("input", edited);
  editor.addEventListener("scroll", () => { by("lines").scrollTop = editor.scrollTop; });
  editor.addEventListener("keydown", event => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run([state.current]);
  });
  by("add").addEventListener("click", () => {
    const name = `${nameOf(editor.value, state.current)} (copy)`;
    add(scenarioText.set(editor.value, "title", JSON.stringify(name)) ?? editor.value);
  });
  by("remove").addEventListener("click", () => {
    state.systems.splice(state.current, 1);
    select(Math.max(0, state.current - 1));
  });
  by("examples").addEventListener("change", ({ target }) => {
    if (target.value) add(example(target.value));
    target.value = "";
  });
  by("presets").addEventListener("change", ({ target }) => {
    const name = target.value, workload = scenarioText.workload(editor.value);
    if (name) add(`title = "${name}"\n\n${workload}\n\n[component.device]\npreset = "${name}"\n`);
    target.value = "";
  });
  by("file").addEventListener("change", ({ target }) => useFile(target.files[0]));
  by("run").addEventListener("click", () => run([state.current]));
  by("compare").addEventListener("click", () => run(state.systems.map((_, at) => at)));
  by("cancel").addEventListener("click", () => simulator.stop("Cancelled."));
  by("share").addEventListener("click", async () => {
    await remember();
    try {
      await navigator.clipboard.writeText(location.href);
      say("The link is copied. Traces of your own are not in it.");
    } catch {
      say("Copy the address of this page: it has all systems. Traces of your own are not in it.");
    }
  });
  by("save").addEventListener("click", () =>
    download(`${nameOf(editor.value, state.current)}.toml`, editor.value, "application/toml"));
  by("save-report").addEventListener("click", () => download("report.html", report, "text/html"));
  window.addEventListener("hashchange", async () => {
    if (by(location.hash.slice(1))) return;
    if (busy) simulator.stop("Cancelled.");
    await begin();
    lessons.focus();
    await check();
  });
  document.addEventListener("dragover", event => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  document.addEventListener("dragleave", () => document.body.classList.remove("dropping"));
  document.addEventListener("drop", event => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    useFile(event.dataTransfer.files[0]);
  });
}

// Called by `engine.js`.
async function hybridsimEngine(parts) {
  try {
    const opened = await simulator.load(parts);
    catalogue = opened.catalogue;
    complete.use(opened.schema, catalogue.presets);
    say(`Ready: hybridsim ${catalogue.version}.`);
    fill();
    listen();
    await begin();
    await check();
    document.body.dataset.ready = String(performance.now());
  } catch (error) {
    say(`The simulator cannot be started: ${error.message}`);
  }
}
