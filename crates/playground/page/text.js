"use strict";
// Reads and changes the text of a scenario, line by line: comments and order stay as they are.
const scenarioText = (() => {
  const HEADER = /^\s*\[{1,2}\s*([^\]]+?)\s*\]{1,2}\s*(#.*)?$/;
  const PAIR = /^\s*([A-Za-z0-9_.-]+)\s*=\s*/;

  // The tables of `text`: path, the lines from the header on, and the first comment above it.
  function tables(lines) {
    const found = [{ path: "", first: 0, start: 0, end: lines.length }];
    lines.forEach((line, at) => {
      const header = HEADER.exec(line);
      if (!header) return;
      found[found.length - 1].end = at;
      let first = at;
      while (first > 0 && /^\s*#/.test(lines[first - 1])) first -= 1;
      found.push({ path: header[1].replace(/\s|"/g, ""), first, start: at, end: lines.length });
    });
    return found;
  }

  // A value and the comment behind it; nothing where the value continues on the next line.
  function split(rest) {
    let depth = 0, quote = "";
    for (let at = 0; at < rest.length; at += 1) {
      const letter = rest[at];
      if (quote) {
        if (letter === "\\" && quote === "\"") at += 1;
        else if (letter === quote) quote = "";
      } else if (letter === "\"" || letter === "'") quote = letter;
      else if (letter === "[" || letter === "{") depth += 1;
      else if (letter === "]" || letter === "}") depth -= 1;
      else if (letter === "#") return depth ? null : [rest.slice(0, at), rest.slice(at)];
    }
    return depth || quote ? null : [rest, ""];
  }

  function valueOf(lines, table, name) {
    for (let at = table.start; at < table.end; at += 1) {
      const pair = PAIR.exec(lines[at]);
      if (!pair || pair[1] !== name) continue;
      return { at, head: pair[0], rest: lines[at].slice(pair[0].length) };
    }
    return null;
  }

  // The parts of a list or inline table in one line.
  function parts(inner) {
    const found = [];
    let from = 0;
    for (let at = 0; at <= inner.length; at += 1) {
      const cut = at === inner.length || inner[at] === ",";
      if (!cut || !split(inner.slice(from, at))) continue;
      found.push(inner.slice(from, at).trim());
      from = at + 1;
    }
    return found.filter(Boolean);
  }

  // An inline table, or the word that stands for its kind, with a key set; null for other values.
  function setInline(value, name, literal) {
    if (/^["']/.test(value)) return `{ kind = ${value}, ${name} = ${literal} }`;
    if (!/^\{.*\}$/.test(value)) return null;
    const all = parts(value.slice(1, -1)), pair = `${name} = ${literal}`;
    const at = all.findIndex(part => (PAIR.exec(part) || [])[1] === name);
    if (at < 0) all.push(pair);
    else all[at] = pair;
    return `{ ${all.join(", ")} }`;
  }

  // `path` as its table and its last part.
  function cutLast(path) {
    const cut = path.lastIndexOf(".");
    return [path.slice(0, Math.max(cut, 0)), path.slice(cut + 1)];
  }

  // The value of the key `path` as it is written; null where it has none in one line.
  function get(text, path) {
    const lines = text.split("\n"), [of, name] = cutLast(path);
    const table = tables(lines).find(candidate => candidate.path === of);
    if (table) {
      const found = valueOf(lines, table, name), value = found && split(found.rest);
      return value && value[0].trim();
    }
    const around = of && get(text, of);
    if (!around || !around.startsWith("{")) return null;
    const pair = parts(around.slice(1, -1)).find(part => (PAIR.exec(part) || [])[1] === name);
    return pair ? pair.replace(PAIR, "") : null;
  }

  // `text` with the key `path` set to `literal`; null where that takes more than one line.
  function set(text, path, literal) {
    const lines = text.split("\n"), all = tables(lines), [of, name] = cutLast(path);
    if (all.some(table => table.path === path)) {
      return get(text, `${path}.kind`) ? set(text, `${path}.kind`, literal) : null;
    }
    if (all.some(table => table.path.startsWith(path + "."))) return null;
    const table = all.find(candidate => candidate.path === of);
    if (!table) {
      // Keys of an entry need one that is named in the text.
      if (of.split(".").length <= (of.startsWith("component.") ? 2 : 1)) {
        return `${text.replace(/\n*$/, "\n")}\n[${of}]\n${name} = ${literal}\n`;
      }
      const around = get(text, of), changed = around && setInline(around, name, literal);
      return changed ? set(text, of, changed) : null;
    }
    const old = valueOf(lines, table, name);
    if (old) {
      const value = split(old.rest);
      if (!value) return null;
      const space = /\s*$/.exec(value[0])[0];
      lines[old.at] = old.head + literal + (value[1] ? space + value[1] : "");
      return lines.join("\n");
    }
    let end = table.end;
    while (end > table.start + 1 && /^\s*(#.*)?$/.test(lines[end - 1])) end -= 1;
    lines.splice(end, 0, `${name} = ${literal}`);
    return lines.join("\n");
  }

  // What `text` says, whatever its comments, spaces and title are, with the values of `keys` left
  // out: equal for scenarios that differ in nothing else.
  function essence(text, keys) {
    const fixed = keys.reduce((done, key) => set(done, key, "0") ?? done, text);
    const kept = fixed.split("\n").map(line => (split(line) || [line])[0].replace(/\s+/g, ""));
    return kept.filter(line => line && !line.startsWith("title=")).join("\n");
  }

  const isWorkload = ({ path }) => path === "workload" || path.startsWith("workload.");

  // `text` with a workload that replays `trace`, on a device of any size.
  function replay(text, trace) {
    const lines = text.split("\n"), all = tables(lines);
    const end = at => (all[at + 1] || { first: lines.length }).first;
    const blocks = all.map(({ first }, at) => lines.slice(first, end(at)));
    const several = all.some(({ path }) => path.startsWith("workload."));
    const keep = blocks.map((block, at) => {
      if (isWorkload(all[at])) return [];
      // Keys between several workloads, of which there is one now.
      const shared = line => several && all[at].path === "host" && /^\s*arbitration/.test(line);
      return block.filter(line => !shared(line));
    });
    keep.splice(1, 0, ["[workload]", `trace = ${JSON.stringify(trace)}`, "fit = true", ""]);
    return keep.flat().join("\n");
  }

  // The lines of the workload of `text`.
  function workload(text) {
    const lines = text.split("\n");
    const own = tables(lines).filter(isWorkload);
    return own.map(({ start, end }) => lines.slice(start, end).join("\n").trimEnd()).join("\n\n");
  }

  function title(text) {
    const lines = text.split("\n"), found = valueOf(lines, tables(lines)[0], "title");
    const parts = found && split(found.rest);
    return parts ? parts[0].trim().replace(/^["']|["']$/g, "") : "";
  }

  // The table that contains line `at`, with the values of its lines.
  function around(text, at) {
    const lines = text.split("\n");
    const table = tables(lines).find(({ start, end }) => at >= start && at < end);
    const word = name => {
      const found = valueOf(lines, table, name);
      return found ? /^["']?([^"'#]*)/.exec(found.rest)[1].trim() : "";
    };
    return { path: table.path, word };
  }

  return { get, set, essence, replay, workload, title, around };
})();
