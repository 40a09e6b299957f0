"use strict";
// The simulator in its worker. A run is cancelled by ending the worker; the next call starts
// another, which gets the traces again.
const simulator = (() => {
  let module = null, source = "", worker = null, opened = null, number = 0;
  const waiting = new Map(), traces = new Map();
  let onProgress = () => {};

  function start() {
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    worker = new Worker(address);
    URL.revokeObjectURL(address);
    worker.onmessage = ({ data }) => {
      if (data.progress) return onProgress(data.progress);
      if (data.error) return stop(data.error);
      waiting.get(data.id).resolve(data.answer);
      return waiting.delete(data.id);
    };
    worker.onerror = event => stop(`The worker failed: ${event.message}`);
    opened = ask("open", module);
    traces.forEach((bytes, name) => ask("trace", name, bytes).catch(() => {}));
    return opened;
  }

  function ask(call, ...values) {
    number += 1;
    const id = number;
    worker.postMessage({ id, call, values });
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  }

  function stop(reason) {
    if (worker) worker.terminate();
    worker = null;
    waiting.forEach(({ reject }) => reject(new Error(reason)));
    waiting.clear();
  }

  // `engine.js` calls it: the program, and the source of the worker with its glue.
  async function load({ wasm, worker: text }) {
    source = text;
    module = await WebAssembly.compile(await pageState.gunzip(wasm));
    return start();
  }

  async function call(name, ...values) {
    if (!worker) await start();
    return ask(name, ...values);
  }

  async function addTrace(name, bytes) {
    const answer = await call("trace", name, bytes);
    traces.set(name, bytes);
    return answer;
  }

  return {
    load, call, addTrace, stop,
    hasTrace: name => traces.has(name),
    set onProgress(listener) { onProgress = listener; },
  };
})();
