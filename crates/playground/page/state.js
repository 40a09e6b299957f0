"use strict";
// The state of the page in the fragment of its address: systems and lesson, compressed.
const pageState = (() => {
  async function through(bytes, stream, most = Infinity) {
    const parts = [];
    let length = 0;
    for await (const part of new Blob([bytes]).stream().pipeThrough(stream)) {
      length += part.length;
      if (length > most) throw new Error("it is too long");
      parts.push(part);
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  }

  // Longer scenarios are files. A short link may hold much more.
  const BYTES_MAX = 4 << 20;

  const toText = bytes => {
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192) {
      text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    }
    return text;
  };

  // A loop: `Uint8Array.from` takes half a second longer for the program.
  function toBytes(base64) {
    const text = atob(base64), bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
    return bytes;
  }

  async function pack(state) {
    const bytes = new TextEncoder().encode(JSON.stringify(state));
    const packed = await through(bytes, new CompressionStream("deflate-raw"));
    return btoa(toText(packed)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  }

  // The state of a fragment; an error where it is damaged.
  async function unpack(fragment) {
    const packed = toBytes(fragment.replace(/-/g, "+").replace(/_/g, "/"));
    const bytes = await through(packed, new DecompressionStream("deflate-raw"), BYTES_MAX);
    const state = JSON.parse(new TextDecoder().decode(bytes));
    const whole = Array.isArray(state.systems) && state.systems.length > 0
      && state.systems.every(text => typeof text === "string");
    if (!whole) throw new Error("it has no systems");
    const current = Math.trunc(Number(state.current) || 0);
    state.current = Math.min(Math.max(current, 0), state.systems.length - 1);
    if (typeof state.lesson !== "string") state.lesson = "";
    return state;
  }

  const gunzip = base64 => through(toBytes(base64), new DecompressionStream("gzip"));

  return { pack, unpack, gunzip, toBytes };
})();
