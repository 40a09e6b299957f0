"use strict";
// Runs the simulator beside the page. Each message asks for one call and gets one answer.
let playground = null, memory = null, opened = null;

const calls = {
  async open(module) {
    ({ memory } = await wasm_bindgen({ module_or_path: module }));
    playground = new wasm_bindgen.Playground();
    const [catalogue, schema] = [playground.catalogue(), playground.schema()];
    return { catalogue: JSON.parse(catalogue), schema: JSON.parse(schema) };
  },
  trace: (name, bytes) => playground.put_trace(name, new Uint8Array(bytes)),
  check: text => JSON.parse(playground.check(text)),
  clear: () => playground.clear(),
  run(text, name) {
    const began = performance.now();
    const progress = (fraction, requests, preparing) =>
      postMessage({ progress: { fraction, requests, preparing } });
    const answer = JSON.parse(playground.run(text, name, progress));
    const seconds = (performance.now() - began) / 1000;
    return { ...answer, seconds, memory: memory.buffer.byteLength };
  },
  report: () => playground.report(),
};

onmessage = async ({ data: { id, call, values } }) => {
  try {
    if (call === "open") opened = calls.open(...values);
    // Calls may arrive while the program is being instantiated.
    const first = await opened;
    if (call === "open") return postMessage({ id, answer: first });
    return postMessage({ id, answer: await calls[call](...values) });
  } catch (error) {
    // Bad input has answers; after an error the simulator cannot be used any more.
    const memoryOrDefect = "it needs more memory than a page gets (4 GiB), or has a defect";
    const trapped = error instanceof WebAssembly.RuntimeError;
    const text = trapped ? memoryOrDefect : String(error.message || error);
    return postMessage({ id, error: `The simulator ended: ${text}.` });
  }
};
