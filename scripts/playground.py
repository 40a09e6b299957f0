"""Builds the playground, a page that simulates in the browser: `make playground`.

The engine is compiled to WebAssembly and stands in a script as text, so that the page in
target/playground also works from a folder, where browsers let no page fetch files.
"""

import argparse
import base64
import gzip
import json
import pathlib
import shutil
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "crates" / "playground" / "page"
OUT = ROOT / "target" / "playground"
TOOLS = ROOT / "target" / "tools"
TARGET = "wasm32-unknown-unknown"
PROFILE = "release"
# In the worker's script, not a file of its own.
WORKER = "worker.js"


def bindgen_version() -> str:
    """The version that the command has to have: that of the crate."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return next(it["version"] for it in lock["package"] if it["name"] == "wasm-bindgen")


def bindgen() -> pathlib.Path:
    """The command wasm-bindgen, installed if needed."""
    version, command = bindgen_version(), TOOLS / "bin" / "wasm-bindgen"
    if command.exists():
        text = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
        if text.stdout.split()[1] == version:
            return command
    install = ["cargo", "install", "wasm-bindgen-cli", "--version", version, "--root", TOOLS]
    subprocess.run(install, cwd=ROOT, check=True)
    return command


def has_target() -> bool:
    """Whether Rust can compile for browsers, after an attempt to install what that takes."""
    ask = ["rustc", "--print", "target-libdir", "--target", TARGET]
    answer = subprocess.run(ask, capture_output=True, text=True)
    if answer.returncode == 0 and pathlib.Path(answer.stdout.strip()).is_dir():
        return True
    if shutil.which("rustup") is None:
        return False
    return subprocess.run(["rustup", "target", "add", TARGET], cwd=ROOT).returncode == 0


def compile_engine(profile: str) -> tuple[bytes, str]:
    """The WebAssembly module and the JavaScript that calls it."""
    build = ["cargo", "build", "--locked", "--package", "hybridsim-playground", "--lib"]
    subprocess.run([*build, "--profile", profile, "--target", TARGET], cwd=ROOT, check=True)
    made = ROOT / "target" / TARGET / profile / "hybridsim_playground.wasm"
    folder = ROOT / "target" / "wasm-bindgen"
    options = ["--target", "no-modules", "--no-typescript", "--remove-producers-section"]
    options += ["--remove-name-section"]
    command = [bindgen(), made, "--out-dir", folder, "--out-name", "engine", *options]
    subprocess.run(command, check=True)
    return (folder / "engine_bg.wasm").read_bytes(), (folder / "engine.js").read_text()


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def write(wasm: bytes, glue: str) -> None:
    """Writes the page into an empty folder."""
    shutil.rmtree(OUT, ignore_errors=True)
    shutil.copytree(PAGE, OUT, ignore=shutil.ignore_patterns(WORKER))
    (OUT / "traces").mkdir()
    traces = sorted((ROOT / "workloads").glob("*.hst"))
    for trace in traces:
        call = f'hybridsimTrace("{trace.name}", "{text_of(trace.read_bytes())}");\n'
        (OUT / "traces" / f"{trace.name}.js").write_text(call)
    packed = gzip.compress(wasm, 9, mtime=0)
    parts = {"wasm": text_of(packed), "worker": f"{glue}\n{(PAGE / WORKER).read_text()}"}
    names = json.dumps([trace.name for trace in traces])
    engine = f"const hybridsimTraces = {names};\nhybridsimEngine({json.dumps(parts)});\n"
    (OUT / "engine.js").write_text(engine)
    print(f"{OUT}/index.html: WebAssembly {len(wasm):,} bytes, {len(packed):,} compressed")


def main() -> int:
    """Builds the page, or says why that is impossible here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", default=PROFILE, help="the profile of Cargo.toml to use")
    args = parser.parse_args()
    if not has_target():
        print(f"no playground: this Rust cannot compile for {TARGET}, and rustup cannot add it")
        return 1
    write(*compile_engine(args.profile))
    return 0


if __name__ == "__main__":
    sys.exit(main())
