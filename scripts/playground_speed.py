"""Measures the playground: size, time to the first result, speed and memory beside the program.

    python3 scripts/playground_speed.py --program target/release/hybridsim

Needs Chromium and the page that `make playground` builds.
"""

import argparse
import functools
import gzip
import http.server
import os
import pathlib
import resource
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "target" / "playground"
EXAMPLES = ("disk", "hybrid", "ssd", "slc-mlc", "write-amplification", "op-fcl", "llm-kv-cache")

sys.path.insert(0, str(ROOT / "python" / "tests"))
import chromium  # noqa: E402


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the page without a log."""

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


def processor_seconds(browser: chromium.Chromium) -> float:
    """Processor time of the page's worker: a busy computer changes it little."""
    profile, ticks = browser.profile.name.encode(), 0
    for thread in pathlib.Path("/proc").glob("[0-9]*/task/[0-9]*"):
        try:
            if thread.joinpath("comm").read_text().strip() != "DedicatedWorker":
                continue
            if profile in thread.parents[1].joinpath("cmdline").read_bytes():
                fields = thread.joinpath("stat").read_text().rsplit(")", 1)[1].split()
                ticks += int(fields[11]) + int(fields[12])
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def run(browser: chromium.Chromium) -> dict[str, str]:
    """Runs the system shown and returns the data of its result."""
    browser.evaluate("delete document.body.dataset.done; by('run').click()")
    browser.wait("document.body?.dataset.done", 600)
    return browser.evaluate("({ ...document.querySelector('#runs li').dataset })")


def first_result(command: str) -> tuple[float, float]:
    """Seconds from opening the page in a new browser until it is ready, and the first report."""
    handler = functools.partial(Quiet, directory=OUT)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with chromium.Chromium(command) as browser:
            browser.open(f"http://127.0.0.1:{server.server_port}/index.html")
            browser.wait("document.body?.dataset.ready")
            run(browser)
            times = browser.evaluate("[document.body.dataset.ready, document.body.dataset.done]")
        server.shutdown()
    return float(times[0]) / 1000, float(times[1]) / 1000


def native(program: str, name: str) -> float:
    """Processor seconds of the program for an example, with the report."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    path = ROOT / "examples" / f"{name}.toml"
    out = ROOT / "target" / "playground-speed"
    command = [program, "run", str(path), "--no-cache", "--force", "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Prints sizes and a table of times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="the program to compare with")
    args = parser.parse_args()
    files = [path for path in OUT.rglob("*") if path.is_file() and path.parent.name != "traces"]
    size = sum(len(gzip.compress(path.read_bytes(), 9)) for path in files)
    print(f"page: {size / 1e6:.2f} MB compressed, without traces")
    command = chromium.program()
    assert command is not None, "no Chromium found"
    ready, done = min(first_result(command) for _ in range(3))
    print(f"ready after {ready:.2f} s, first result after {done:.2f} s (example disk)")
    print(f"{'example':22}{'program s':>10}{'page s':>10}{'ratio':>8}{'page MiB':>10}")
    for name in EXAMPLES:
        with chromium.Chromium(command) as browser:
            browser.open(f"{(OUT / 'index.html').as_uri()}#example={name}")
            browser.wait("document.body?.dataset.ready")
            # The second run is of code that the browser has optimised.
            times = []
            for _ in range(2):
                before = processor_seconds(browser)
                result = run(browser)
                times.append(processor_seconds(browser) - before)
        page, beside = min(times), min(native(args.program, name) for _ in range(2))
        mib = int(result["memory"]) >> 20
        print(f"{name:22}{beside:10.2f}{page:10.2f}{beside / page:8.2f}{mib:10}")


if __name__ == "__main__":
    main()
