"use strict";
// Completion of keys and values in the editor, from the JSON Schema of the scenario format.
function completion(editor, list, lines) {
  let schema = null, presets = [], shown = [], chosen = 0, from = 0;

  const resolve = node => {
    if (!node) return {};
    return node.$ref ? resolve(schema.$defs[node.$ref.split("/").pop()]) : node;
  };
  // The alternatives of a schema.
  const variants = node => (resolve(node).anyOf || [resolve(node)]).map(resolve);

  // The properties that the table around a line may have.
  function properties({ path, word }) {
    const [section, ...rest] = path.split(".");
    if (section === "") return schema.properties;
    if (section !== "component" || rest.length === 0) {
      return (schema.properties[section] || {}).properties || {};
    }
    const preset = presets.find(({ name }) => name === word("preset"));
    const kind = word("kind") || (preset || {}).kind;
    const all = variants({ $ref: "#/$defs/component" });
    const own = all.filter(({ properties }) => properties && properties.kind
      && properties.kind.const === kind);
    const found = Object.assign({}, ...own.reverse().map(({ properties }) => properties));
    const kinds = all.map(({ properties }) => ((properties || {}).kind || {}).const);
    return {
      ...found,
      kind: { enum: [...new Set(kinds.filter(Boolean))] },
      preset: { enum: presets.map(({ name }) => name) },
    };
  }

  function values(node) {
    const words = variants(node).flatMap(one => one.enum
      || (one.type === "boolean" ? [true, false] : []));
    return words.map(word => ({ text: JSON.stringify(word), about: "" }));
  }

  function candidates() {
    if (!schema) return [];
    const before = editor.value.slice(0, editor.selectionStart);
    const start = before.lastIndexOf("\n") + 1, line = before.slice(start);
    const here = scenarioText.around(editor.value, before.split("\n").length - 1);
    const known = properties(here);
    const value = /^\s*([A-Za-z0-9_]+)\s*=\s*(\S*)$/.exec(line);
    if (value) {
      from = before.length - value[2].length;
      return known[value[1]] ? match(values(known[value[1]]), value[2]) : [];
    }
    const key = /^\s*([A-Za-z0-9_]*)$/.exec(line);
    if (!key) return [];
    from = before.length - key[1].length;
    const keys = Object.entries(known).filter(([, node]) => resolve(node).type !== "object");
    return match(keys.map(([name, node]) => ({
      text: `${name} = `, about: node.description || "",
    })), key[1]);
  }

  function match(all, typed) {
    const wanted = typed.replace(/"/g, "").toLowerCase();
    const found = all.filter(({ text }) => text.replace(/"/g, "").toLowerCase().includes(wanted));
    const begins = ({ text }) => text.replace(/"/g, "").toLowerCase().startsWith(wanted);
    return found.sort((a, b) => begins(b) - begins(a));
  }

  function draw() {
    list.hidden = shown.length === 0;
    editor.parentElement.classList.toggle("open", shown.length > 0);
    editor.setAttribute("aria-expanded", String(shown.length > 0));
    list.replaceChildren(...shown.map(({ text, about }, at) => {
      const item = document.createElement("li");
      item.id = `completion-${at}`;
      item.role = "option";
      item.ariaSelected = String(at === chosen);
      item.textContent = text;
      item.title = about;
      item.addEventListener("mousedown", event => { event.preventDefault(); accept(at); });
      return item;
    }));
    if (shown.length === 0) return editor.removeAttribute("aria-activedescendant");
    editor.setAttribute("aria-activedescendant", `completion-${chosen}`);
    list.children[chosen].scrollIntoView({ block: "nearest" });
    const before = editor.value.slice(0, from), line = before.split("\n").length;
    const height = parseFloat(getComputedStyle(editor).lineHeight);
    list.style.top = `${8 + line * height - editor.scrollTop}px`;
    const column = Math.min(before.length - before.lastIndexOf("\n") - 1, 40);
    list.style.left = `${lines.offsetWidth + 8 + column * 7}px`;
  }

  function accept(at) {
    editor.setRangeText(shown[at].text, from, editor.selectionStart, "end");
    close();
    editor.dispatchEvent(new Event("input"));
  }

  function close() { shown = []; draw(); }
  function open() { [shown, chosen] = [candidates().slice(0, 100), 0]; draw(); }

  editor.addEventListener("keydown", event => {
    if (event.key === " " && event.ctrlKey) { event.preventDefault(); return open(); }
    if (shown.length === 0) return undefined;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      chosen = (chosen + step + shown.length) % shown.length;
      draw();
    } else if (event.key === "Enter" || event.key === "Tab") accept(chosen);
    else if (event.key === "Escape") close();
    else return undefined;
    return event.preventDefault();
  });
  editor.addEventListener("input", () => { if (shown.length > 0) open(); });
  editor.addEventListener("blur", close);

  return { use(newSchema, newPresets) { [schema, presets] = [newSchema, newPresets]; } };
}
