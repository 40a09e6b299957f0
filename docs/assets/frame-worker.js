// Browsers start no workers for pages read from a folder. There the search runs in a hidden frame,
// which has the interface of a worker: postMessage and onmessage.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = `<script>
        const page = window.parent;
        window.postMessage = (data) => page.postMessage({ worker: ${JSON.stringify(script)}, data }, "*");
      </script><script src=${JSON.stringify(script)}></script>`;
      window.addEventListener("message", ({ data }) => {
        if (data && data.worker === script) {
          const event = new MessageEvent("message", { data: data.data });
          this.dispatchEvent(event);
          if (this.onmessage) this.onmessage(event);
        }
      });
      this.frame.addEventListener("load", () => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
      document.body.append(this.frame);
    }

    postMessage(data) {
      if (!this.ready) {
        this.waiting.push(data);
      } else {
        this.frame.contentWindow.onmessage(new MessageEvent("message", { data }));
      }
    }

    terminate() {
      this.frame.remove();
    }
  };
}
