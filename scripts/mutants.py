"""Counts the changes of an operator or a returned value that the tests notice, by crate.

    mutants.py [--sample N] [--seed N] [--longest SECONDS] [CRATE...]

Draws places in the sources of crates (without one: those that simulate), and builds all tests once,
in `target/mutants`, with every change behind a switch. Then the tests run with one change at a
time, those of its own crate first, until one of them fails. Test programs that take longer than
`--longest` are left out, and those that fail without any change, such as checks of the sources.
Results are kept: a later run of the same commit and limit continues, and a larger sample contains a
smaller of the same seed.

Needs `pip install tree-sitter tree-sitter-rust`.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import planted
import tree_sitter
import tree_sitter_rust

FOLDER = planted.ROOT / "target/mutants"
CRATES = ["engine", "flash", "ssd", "disk", "array", "cache", "hybrid", "layer", "host",
          "interconnect"]
LANGUAGE = tree_sitter.Language(tree_sitter_rust.language())
OPERATORS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||",
             "||": "&&", "+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "+=": "-=",
             "-=": "+=", "<<": ">>", ">>": "<<", "&": "|", "|": "&"}
# What a function returns at once instead, by its return type.
RETURNED = {"": [""], "bool": ["true", "false"], "u64": ["0"], "u32": ["0"], "usize": ["0"],
            "f64": ["0.0"]}
# In these no function can be called, or a change is not of the program.
SKIPPED = {"const_item", "static_item", "const_block", "array_type", "enum_variant",
           "attribute_item", "macro_definition", "type_arguments"}
SWITCH = """
/// Whether the change of this number is active.
pub(crate) fn mutant(number: u32) -> bool {
    static ACTIVE: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    let active = || std::env::var("MUTANT").ok()?.parse().ok();
    *ACTIVE.get_or_init(|| active().unwrap_or(0)) == number
}
"""


class Mutant(NamedTuple):
    """A change: text that replaces bytes of a file, `{}` in it being the number of the change."""

    file: str
    start: int
    end: int
    text: str
    line: int
    change: str

    @property
    def key(self):
        return f"{self.file}:{self.start}..{self.end}: {self.change}"


def of_node(file, node, source):
    def text(part):
        return source[part.start_byte:part.end_byte].decode()
    line = node.start_point[0] + 1
    if node.type in ("binary_expression", "compound_assignment_expr"):
        left, operator, right = (node.child_by_field_name(it)
                                 for it in ("left", "operator", "right"))
        if other := OPERATORS.get(text(operator)):
            # In parentheses, as the other operator may bind more tightly.
            first = text(left) if other.endswith("=") else f"({text(left)})"
            whole = f"{first} {other} ({text(right)})"
            new = f"(if crate::mutant({{}}) {{{{ {whole} }}}} else {{{{ {text(node)} }}}})"
            if "{" not in text(node):
                yield Mutant(file, node.start_byte, node.end_byte, new, line,
                             f"{text(operator)} to {other}")
    elif node.type == "unary_expression" and text(node).startswith("!"):
        new = f"(crate::mutant({{}}) ^ {text(node)})"
        if "{" not in text(node):
            yield Mutant(file, node.start_byte, node.end_byte, new, line, "! left out")
    elif node.type == "function_item":
        kind, body = (node.child_by_field_name(it) for it in ("return_type", "body"))
        name = "" if kind is None else text(kind)
        values = ["None"] if name.startswith("Option<") else RETURNED.get(name, [])
        values = [it for it in values if text(body).strip("{} \n") != it]
        for value in values:
            start = body.start_byte + 1
            change = f"{text(node.child_by_field_name('name'))} returns {value}".strip()
            yield Mutant(file, start, start,
                         f" if crate::mutant({{}}) {{{{ return {value}; }}}}", line, change)


def is_skipped(node, source):
    before = node.prev_named_sibling
    while before is not None and before.type in ("attribute_item", "line_comment"):
        if b"cfg(test)" in source[before.start_byte:before.end_byte]:
            return True
        before = before.prev_named_sibling
    modifiers = [it for it in node.children if it.type == "function_modifiers"]
    return node.type in SKIPPED or any(
        b"const" in source[it.start_byte:it.end_byte] for it in modifiers)


def mutants_of(crate, copy):
    parser = tree_sitter.Parser(LANGUAGE)
    found, only_tests = [], {"testing", "conformance"}
    for path in sorted((copy / "crates" / crate / "src").rglob("*.rs")):
        source, file = path.read_bytes(), str(path.relative_to(copy))
        left = [parser.parse(source).root_node]
        while left:
            node = left.pop()
            if not is_skipped(node, source):
                found.extend(of_node(file, node, source))
                left.extend(node.children)
            elif node.type == "mod_item":
                name = node.child_by_field_name("name")
                only_tests.add(source[name.start_byte:name.end_byte].decode())
    return [it for it in found if only_tests.isdisjoint(Path(it.file).with_suffix("").parts)]


def apply(copy, chosen):
    """Writes the changes behind their switches. Returns where each is then: file, start, end."""
    places = {}
    for file in {mutant.file for mutant in chosen.values()}:
        source, out, at = (copy / file).read_bytes(), b"", 0
        here = [(it.start, it.end, number) for number, it in chosen.items() if it.file == file]
        for start, end, number in sorted(here):
            out += source[at:start]
            new = chosen[number].text.format(number).encode()
            places[number] = (file, len(out), len(out) + len(new))
            out, at = out + new, end
        (copy / file).write_bytes(out + source[at:])
    for crate in {mutant.file.split("/")[1] for mutant in chosen.values()}:
        root = copy / "crates" / crate / "src/lib.rs"
        root.write_text(root.read_text() + SWITCH)
    return places


def cargo(copy, *words):
    """The messages of a command as JSON."""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(FOLDER / "build"),
                   "CARGO_INCREMENTAL": "0", "RUSTFLAGS": "-Awarnings"}
    command = ["cargo", *words, "--quiet", "--locked", "--message-format=json"]
    done = subprocess.run(command, cwd=copy, env=environment, stdout=subprocess.PIPE, text=True,
                          check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def not_compiling(copy, places, crates):
    """Numbers of changes at which the compiler reports errors."""
    packages = [word for crate in crates for word in ("--package", f"hybridsim-{crate}")]
    code, messages = cargo(copy, "check", "--keep-going", *packages)
    errors = [it["message"] for it in messages
              if it["reason"] == "compiler-message" and it["message"]["level"] == "error"]
    bad = set()
    for span in (span for error in errors for span in error["spans"]):
        bad |= {number for number, (file, start, end) in places.items()
                if span["file_name"] == file and start <= span["byte_start"] < end}
    if code and not bad:
        sys.exit("cargo check failed: " + "\n".join(it["rendered"] for it in errors))
    return bad


def draw(copy, options):
    """The changes by number, all of which compile, written into `copy`; and how many there are."""
    chosen, possible, rest = {}, {}, {}
    for crate in options.crates:
        every = mutants_of(crate, copy)
        possible[crate] = len(every)
        random.Random(options.seed).shuffle(every)
        rest[crate] = every
    numbers = iter(range(1, 1 << 30))
    bad = None
    while bad is None or bad:
        chosen = {number: it for number, it in chosen.items() if number not in (bad or ())}
        for crate in options.crates:
            mine = [it for it in chosen.values() if it.file.startswith(f"crates/{crate}/")]
            while len(mine) < options.sample and rest[crate]:
                new = rest[crate].pop(0)
                if not any(it.file == new.file and it.start <= new.end and new.start <= it.end
                           for it in mine):
                    mine.append(new)
                    chosen[next(numbers)] = new
        subprocess.run(["git", "checkout", "--quiet", "--force", "HEAD"], cwd=copy, check=True)
        bad = not_compiling(copy, apply(copy, chosen), options.crates)
        print(f"{len(chosen)} changes drawn, {len(bad)} do not compile", flush=True)
    return chosen, possible


class Program(NamedTuple):
    package: str
    name: str
    path: str
    folder: str

    def run(self, number, seconds):
        """Exit code, or None after `seconds`; and the seconds taken."""
        began = time.monotonic()
        # What one change leaves behind must not reach the next: cached states, failed inputs.
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "MUTANT": str(number), "HYBRIDSIM_CACHE": cache,
                           "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1"}
            process = subprocess.Popen([self.path, "--quiet"], cwd=self.folder, env=environment,
                                       start_new_session=True, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return code, time.monotonic() - began


def programs(copy):
    code, messages = cargo(copy, "test", "--workspace", "--no-run", "--exclude",
                           "hybridsim-python")
    if code:
        sys.exit("the tests do not build")
    built = [it for it in messages if it["reason"] == "compiler-artifact" and it["executable"]
             and it["profile"]["test"]]
    return [Program(Path(it["manifest_path"]).parent.name, it["target"]["name"], it["executable"],
                    str(Path(it["manifest_path"]).parent)) for it in built]


def baseline(every, longest):
    """Seconds of each program that passes without a change and takes no longer than that."""
    times = {}
    for program in every:
        code, took = program.run(0, longest)
        if code == 0:
            times[program] = took
        else:
            why = "takes longer" if code is None else "fails without a change"
            print(f"left out: {program.package} {program.name} {why}", flush=True)
    print(f"{len(times)} test programs take {sum(times.values()):.0f} s", flush=True)
    return times


def outcome(mutant, number, times, kills):
    """How the tests noticed a change: the program and whether it failed or did not end."""
    crate = mutant.file.split("/")[1]
    def order(program):
        return program.package != crate, -kills[program], times[program]
    for program in sorted(times, key=order):
        code, _ = program.run(number, 4 * times[program] + 20)
        if code != 0:
            kills[program] += 1
            return "timeout" if code is None else "killed", f"{program.package} {program.name}"
    return "survived", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crates", nargs="*", default=CRATES, metavar="CRATE")
    parser.add_argument("--sample", type=int, default=10, help="changes of each crate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=60, metavar="SECONDS")
    options = parser.parse_args()
    copy = FOLDER / "copy"
    copy.parent.mkdir(parents=True, exist_ok=True)
    planted.last_commit(copy)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=copy, check=True,
                            stdout=subprocess.PIPE, text=True).stdout.strip()
    results = FOLDER / f"results-{commit}-{options.longest:g}.json"
    known = json.loads(results.read_text()) if results.exists() else {}
    chosen, possible = draw(copy, options)
    times = baseline(programs(copy), options.longest)
    kills, counts = Counter(), Counter()
    # One of each crate in turn, so that an interrupted run has some of all.
    crates = {number: it.file.split("/")[1] for number, it in chosen.items()}
    turn = {number: [it for it in crates if crates[it] == crates[number]].index(number)
            for number in chosen}
    for number in sorted(chosen, key=lambda it: turn[it]):
        mutant, crate = chosen[number], crates[number]
        if mutant.key not in known:
            known[mutant.key] = outcome(mutant, number, times, kills)
            results.with_suffix(".new").write_text(json.dumps(known, indent=1))
            results.with_suffix(".new").replace(results)
        how, by = known[mutant.key]
        counts[crate, how] += 1
        print(f"{how}: {mutant.file}:{mutant.line}: {mutant.change} {by}", flush=True)
    print("\n| crate | possible | tried | killed | timeout | survived |")
    print("|---|---:|---:|---:|---:|---:|")
    for crate in options.crates:
        row = [counts[crate, how] for how in ("killed", "timeout", "survived")]
        print(f"| {crate} | {possible[crate]:,} | {sum(row)} | {' | '.join(map(str, row))} |")


if __name__ == "__main__":
    main()
