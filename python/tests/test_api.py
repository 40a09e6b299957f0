from __future__ import annotations

import ast
import importlib.metadata
import inspect
import pathlib
import pkgutil
import shutil
import subprocess
import sys
import sysconfig

import hybridsim
import pytest
from hybridsim import _core

PACKAGE = pathlib.Path(hybridsim.__file__).parent


def modules():
    return [info.name for info in pkgutil.iter_modules([str(PACKAGE)]) if info.name != "_core"]


def test_every_public_name_is_described():
    silent = []
    for name in hybridsim.__all__:
        value = getattr(hybridsim, name)
        if name == "__version__":
            continue
        if not inspect.getdoc(value):
            silent.append(name)
        if inspect.isclass(value):
            for member, of in vars(value).items():
                # A method that overrides one says what that one says.
                if not member.startswith("_") and callable(of) and not inspect.getdoc(of):
                    silent.append(f"{name}.{member}")
    assert not silent


@pytest.mark.parametrize("module", modules())
def test_modules_name_what_they_offer(module):
    loaded = __import__(f"hybridsim.{module}", fromlist=["_"])
    for name in getattr(loaded, "__all__", []):
        assert hasattr(loaded, name), name
    assert loaded.__doc__


def test_the_stub_tells_exactly_what_there_is():
    stub = ast.parse((PACKAGE / "_core.pyi").read_text())
    told: dict[str, set[str]] = {}
    for node in stub.body:
        if isinstance(node, ast.FunctionDef):
            told[node.name] = {argument.arg for argument in node.args.args}
        elif isinstance(node, ast.ClassDef):
            told[node.name] = {m.name for m in node.body if isinstance(m, ast.FunctionDef)}
        elif isinstance(node, ast.AnnAssign):
            told[node.target.id] = set()
    there = {name for name in dir(_core) if not name.startswith("_")}
    assert set(told) == there
    for name in there:
        value = getattr(_core, name)
        if inspect.isclass(value):
            members = {m for m in vars(value) if not m.startswith("_")}
            assert told[name] - {"__new__"} == members, name
        elif callable(value) and name != "register":
            assert told[name] == set(inspect.signature(value).parameters), name


def test_the_command_of_the_wheel():
    command = sysconfig.get_path("scripts") + "/hybridsim"
    done = subprocess.run([command, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "compare" in done.stdout
    version = subprocess.run([command, "--version"], capture_output=True, text=True).stdout
    assert version.split() == ["hybridsim", hybridsim.__version__]
    assert importlib.metadata.version("hybridsim") == hybridsim.__version__
    wrong = subprocess.run([command, "run", "nowhere.toml"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "nowhere.toml" in wrong.stderr


def test_lists_and_help():
    kinds = hybridsim.list()
    assert {"part", "ftl", "replacement", "scheduler", "generator", "preset"} <= set(kinds)
    assert "page" in kinds["ftl"]
    entry = hybridsim.list("part")["ssd"]
    assert "channels" in entry.params
    assert hybridsim.list("preset")
    assert "queue_depth" in hybridsim.explain("host.queue_depth")
    schema = hybridsim.schema()
    assert schema["properties"]["host"]["properties"]["queue_depth"]["type"] == "integer"


def test_importing_is_light():
    code = "import sys, hybridsim; print([m for m in ('pandas', 'pyarrow', 'matplotlib') "
    code += "if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("tool", [["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]])
def test_tidiness(tool, root):
    program = shutil.which(tool[0], path=sysconfig.get_path("scripts"))
    if program is None:
        pytest.skip(f"{tool[0]} is not installed")
    done = subprocess.run([program, *tool[1:]], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_runs(root, tmp_path):
    example = root / "examples" / "quickstart.py"
    done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "write amplification" in done.stdout
