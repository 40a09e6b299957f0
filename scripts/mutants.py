"""Counts the changes of an operator or a returned value that the tests notice, by crate.

    mutants.py [--sample N] [--seed N] [--longest SECONDS] [--budget SECONDS] [CRATE...]

Draws places in the sources of crates (without one: those that simulate), and builds all tests once,
in `target/mutants`, with every change behind a switch. Each test runs once without a change and
records the places it reaches. Then those that reach a place run with its change, until one of them
fails. Tests that fail without any change are left out, such as checks of the sources. Results are
kept: a later run of the same commit continues, and a larger sample contains a smaller of the same
seed.

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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import switches
import tree_sitter
import tree_sitter_rust

FOLDER = switches.ROOT / "target/mutants"
CRATES = ["engine", "flash", "ssd", "disk", "array", "cache", "hybrid", "layer", "host",
          "interconnect"]
LANGUAGE = tree_sitter.Language(tree_sitter_rust.language())
OPERATORS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||",
             "||": "&&", "+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "+=": "-=",
             "-=": "+=", "<<": ">>", ">>": "<<", "&": "|", "|": "&"}
# What a function returns at once instead, by its return type.
RETURNED = {"": [""], "bool": ["true", "false"], "u64": ["0"], "u32": ["0"], "usize": ["0"],
            "f64": ["0.0"]}
# Not run: the code is run by none of the tests that are not left out.
OUTCOMES = ["killed", "timeout", "survived", "not run", "undecided"]
# In these no function can be called, or a change is not of the program.
SKIPPED = {"const_item", "static_item", "const_block", "array_type", "enum_variant",
           "attribute_item", "macro_definition", "type_arguments"}


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
            new = f"(if crate::changed({{}}) {{{{ {whole} }}}} else {{{{ {text(node)} }}}})"
            if "{" not in text(node):
                yield Mutant(file, node.start_byte, node.end_byte, new, line,
                             f"{text(operator)} to {other}")
    elif node.type == "unary_expression" and text(node).startswith("!"):
        new = f"(crate::changed({{}}) ^ {text(node)})"
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
                         f" if crate::changed({{}}) {{{{ return {value}; }}}}", line, change)


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
    for path in sorted((copy.path / "crates" / crate / "src").rglob("*.rs")):
        source, file = path.read_bytes(), str(path.relative_to(copy.path))
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
        source, out, at = (copy.path / file).read_bytes(), b"", 0
        here = [(it.start, it.end, number) for number, it in chosen.items() if it.file == file]
        for start, end, number in sorted(here):
            out += source[at:start]
            new = chosen[number].text.format(number).encode()
            places[number] = (file, len(out), len(out) + len(new))
            out, at = out + new, end
        (copy.path / file).write_bytes(out + source[at:])
    copy.add_switch(mutant.file for mutant in chosen.values())
    return places


def not_compiling(copy, places, crates):
    """Numbers of changes at which the compiler reports errors."""
    packages = [word for crate in crates for word in ("--package", f"hybridsim-{crate}")]
    code, messages = copy.cargo("check", "--keep-going", *packages)
    errors = switches.errors(messages)
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
        copy.git("checkout", "--quiet", "--force", "HEAD")
        bad = not_compiling(copy, apply(copy, chosen), options.crates)
        print(f"{len(chosen)} changes drawn, {len(bad)} do not compile", flush=True)
    return chosen, possible


class Test(NamedTuple):
    """One test of a test program; `folder` is where it runs."""

    package: str
    program: str
    path: str
    folder: str
    name: str

    def __str__(self):
        return f"{self.package} {self.program} {self.name}"

    def run(self, seconds, **variables):
        """Exit code, or None after `seconds`."""
        # What one change leaves behind must not reach the next: cached states, failed inputs.
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "HYBRIDSIM_CACHE": cache,
                           "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1", **variables}
            process = subprocess.Popen([self.path, "--quiet", "--exact", self.name],
                                       cwd=self.folder, env=environment, start_new_session=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                return None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def tests(copy):
    built = copy.cargo("test", "--workspace", "--no-run", "--exclude", "hybridsim-python")
    for message in switches.executables(*built):
        if message["profile"]["test"]:
            folder = Path(message["manifest_path"]).parent
            listed = subprocess.run([message["executable"], "--list", "--format", "terse"],
                                    cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
            for line in listed.stdout.splitlines():
                name, _, kind = line.rpartition(": ")
                if kind == "test":
                    yield Test(folder.name, message["target"]["name"], message["executable"],
                               str(folder), name)


class Baseline(NamedTuple):
    """How long a test takes without a change, and the numbers of the changes in code it runs."""

    seconds: float
    reached: frozenset


def baseline(test, longest):
    """`None` for a test that fails without a change or takes longer."""
    began = time.monotonic()
    with tempfile.NamedTemporaryFile() as reached:
        if test.run(longest, HYBRIDSIM_CHANGES_REACHED=reached.name) != 0:
            return None
        return Baseline(time.monotonic() - began, frozenset(map(int, reached.read().split())))


def outcome(number, baselines, kills, budget):
    """What became of a change, and by which test."""
    reach = [it for it, known in baselines.items() if number in known.reached]
    # Those that have noticed most changes in the shortest time first.
    reach.sort(key=lambda it: (0.1 + baselines[it].seconds) / (1 + kills[it]))
    if not reach:
        return "not run", ""
    began = time.monotonic()
    for done, test in enumerate(reach):
        if time.monotonic() - began > budget:
            return "undecided", f"after {done} of {len(reach)} tests"
        code = test.run(4 * baselines[test].seconds + 20, HYBRIDSIM_CHANGE=str(number))
        if code != 0:
            kills[test] += 1
            return "timeout" if code is None else "killed", str(test)
    return "survived", f"{len(reach)} tests"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crates", nargs="*", default=CRATES, metavar="CRATE")
    parser.add_argument("--sample", type=int, default=10, help="changes of each crate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=20, metavar="SECONDS",
                        help="leaves out tests that take longer")
    parser.add_argument("--budget", type=float, default=60, metavar="SECONDS",
                        help="time after which a change that no test has noticed is undecided")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests at a time")
    options = parser.parse_args()
    copy = switches.Copy(FOLDER)
    results = FOLDER / f"results-{copy.git('rev-parse', '--short', 'HEAD')}.json"
    known = json.loads(results.read_text()) if results.exists() else {}
    chosen, possible = draw(copy, options)
    every = list(tests(copy))
    kills, counts = Counter(), Counter()
    crates = {number: it.file.split("/")[1] for number, it in chosen.items()}
    # One of each crate in turn, so that an interrupted run has some of all.
    turn, turns = {}, Counter()
    for number, crate in crates.items():
        turn[number] = turns[crate]
        turns[crate] += 1

    def settle(number):
        how, by = known.get(chosen[number].key, ("undecided", ""))
        if how in ("undecided", "not run"):
            how, by = outcome(number, baselines, kills, options.budget)
        return how, by

    with ThreadPoolExecutor(options.jobs) as pool:
        taken = pool.map(lambda it: baseline(it, options.longest), every)
        baselines = {test: it for test, it in zip(every, taken, strict=True) if it}
        for test in every:
            if test not in baselines:
                print(f"left out: {test} fails without a change or takes longer", flush=True)
        print(f"{len(baselines)} tests take {sum(it.seconds for it in baselines.values()):.0f} s",
              flush=True)
        order = sorted(chosen, key=turn.get)
        for number, settled in zip(order, pool.map(settle, order), strict=True):
            mutant, crate = chosen[number], crates[number]
            known[mutant.key] = how, by = settled
            results.with_suffix(".new").write_text(json.dumps(known, indent=1))
            results.with_suffix(".new").replace(results)
            counts[crate, how] += 1
            print(f"{how}: {mutant.file}:{mutant.line}: {mutant.change}; {by}", flush=True)
    print(f"\n| crate | possible | tried | {' | '.join(OUTCOMES)} |")
    print("|---|" + "---:|" * (2 + len(OUTCOMES)))
    for crate in options.crates:
        row = [counts[crate, how] for how in OUTCOMES]
        print(f"| {crate} | {possible[crate]:,} | {sum(row)} | {' | '.join(map(str, row))} |")


if __name__ == "__main__":
    main()
