"""Headless Chromium for tests, driven through its remote debugging pipe."""

import collections.abc
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import typing

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def program() -> str | None:
    """The path of Chromium; `HYBRIDSIM_CHROMIUM` may name it."""
    named = os.environ.get("HYBRIDSIM_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """A browser with one page and a profile of its own."""

    def __init__(self, command: str) -> None:
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.to_write = os.pipe()
        self.to_read, to_write = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        options += ["--remote-debugging-pipe", f"--user-data-dir={self.profile.name}"]
        # Nothing from outside of this computer.
        options += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        options += ["--disable-background-networking", "--disable-component-update"]
        # The browser reads descriptor 3 and writes descriptor 4.
        script = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "chromium", command, *options, "about:blank"],
            pass_fds=(to_read, to_write),
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self.number, self.rest, self.session = 0, b"", ""
        self.console: list[str] = []
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=page, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "DOM", "Log"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> typing.Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.to_write)
        os.close(self.to_read)
        self.profile.cleanup()

    def _messages(self) -> collections.abc.Iterator[dict[str, typing.Any]]:
        while True:
            while b"\0" not in self.rest:
                more = os.read(self.to_read, 1 << 20)
                if not more:
                    raise RuntimeError("the browser ended")
                self.rest += more
            message, self.rest = self.rest.split(b"\0", 1)
            yield json.loads(message)

    def send(self, method: str, **parameters: object) -> dict[str, typing.Any]:
        """Sends a command and returns its result."""
        self.number += 1
        message: dict[str, object] = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        for answer in self._messages():
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.console.append(json.dumps(answer["params"]))
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, typing.Any] = answer["result"]
                return result
        raise AssertionError("messages do not end")

    def open(self, address: str) -> None:
        """Opens a page."""
        self.send("Page.navigate", url=address)

    def evaluate(self, script: str) -> typing.Any:
        """The value of a JavaScript expression, once it is settled."""
        result = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, script: str, seconds: float = 180) -> None:
        """Waits until the expression is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.evaluate(f"Boolean({script})"):
                return
            time.sleep(0.05)
        raise TimeoutError(f"{script} is not true after {seconds} s")

    def give_file(self, selector: str, path: pathlib.Path) -> None:
        """Chooses a file in an input of the page."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def picture(self, width: int, height: int, *, dark: bool = False) -> str:
        """A picture of the page in this size, in base64."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        data: str = self.send("Page.captureScreenshot", format="png")["data"]
        return data
