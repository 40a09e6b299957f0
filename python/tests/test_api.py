from __future__ import annotations

import ast
import importlib.metadata
import inspect
import pathlib
import pkgutil
import re
import shutil
import subprocess
import sys
import sysconfig

import hybridsim
import pytest
from hybridsim import _core

PACKAGE = pathlib.Path(hybridsim.__file__).parent


def modules():
    found = pkgutil.iter_modules([str(PACKAGE)])
    return [info.name for info in found if info.name != "_core"]


def test_public_names_have_docstrings():
    silent = []
    for name in hybridsim.__all__:
        value = getattr(hybridsim, name)
        if name == "__version__":
            continue
        if not inspect.getdoc(value):
            silent.append(name)
        if inspect.isclass(value):
            for member, of in vars(value).items():
                # An overriding method inherits its docstring.
                if not member.startswith("_") and callable(of) and not inspect.getdoc(of):
                    silent.append(f"{name}.{member}")
    assert not silent


@pytest.mark.parametrize("module", modules())
def test_modules_define_all(module):
    loaded = __import__(f"hybridsim.{module}", fromlist=["_"])
    for name in getattr(loaded, "__all__", []):
        assert hasattr(loaded, name), name
    assert loaded.__doc__


def test_the_stub_matches_the_module():
    stub = ast.parse((PACKAGE / "_core.pyi").read_text())
    declared: dict[str, set[str]] = {}
    for node in stub.body:
        if isinstance(node, ast.FunctionDef):
            declared[node.name] = {argument.arg for argument in node.args.args}
        elif isinstance(node, ast.ClassDef):
            declared[node.name] = {m.name for m in node.body if isinstance(m, ast.FunctionDef)}
        elif isinstance(node, ast.AnnAssign):
            declared[node.target.id] = set()
    there = {name for name in dir(_core) if not name.startswith("_")}
    assert set(declared) == there
    for name in there:
        value = getattr(_core, name)
        if inspect.isclass(value):
            members = {m for m in vars(value) if not m.startswith("_")}
            assert declared[name] - {"__new__"} == members, name
        elif callable(value) and name != "register":
            assert declared[name] == set(inspect.signature(value).parameters), name


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
    assert {"component", "ftl", "replacement", "scheduler", "generator", "preset"} <= set(kinds)
    assert "page" in kinds["ftl"]
    entry = hybridsim.list("component")["ssd"]
    assert "channels" in entry.params
    assert hybridsim.list("preset")
    assert "queue_depth" in hybridsim.explain("host.queue_depth")
    schema = hybridsim.schema()
    assert schema["properties"]["host"]["properties"]["queue_depth"]["type"] == "integer"


def test_optional_packages_are_imported_lazily():
    code = "import sys, hybridsim; print([m for m in ('pandas', 'pyarrow', 'matplotlib') "
    code += "if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_starts_without_numpy():
    code = "import sys, hybridsim.__main__; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_layouts_of_records_are_made_when_they_are_used():
    for module in (hybridsim.events, hybridsim.traces):
        assert not hasattr(module, "nothing")
        assert "DTYPE" in dir(module)
        assert module.DTYPE is module.DTYPE
        assert "time_ns" in module.DTYPE.names


@pytest.mark.parametrize("tool", [["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]])
def test_lint(tool, root):
    program = shutil.which(tool[0], path=sysconfig.get_path("scripts"))
    if program is None:
        pytest.skip(f"{tool[0]} is not installed")
    done = subprocess.run([program, *tool[1:]], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_examples_of_the_python_page_run(root, tmp_path, monkeypatch):
    for folder in ("examples", "workloads", "presets"):
        (tmp_path / folder).symlink_to(root / folder)
    monkeypatch.chdir(tmp_path)
    text = (root / "docs" / "reference" / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 4
    scope: dict = {}
    for block in blocks:
        exec(block, scope)


def test_the_example_runs(root, tmp_path):
    example = root / "examples" / "quickstart.py"
    done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "write amplification" in done.stdout
