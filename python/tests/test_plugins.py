from __future__ import annotations

import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import hybridsim
import policies
import pytest
from hybridsim import Policy, _toml
from hybridsim.testing import check_ftl, check_replacement


def test_lru_in_python_is_the_built_in_lru(hybrid):
    built_in = hybridsim.run(hybrid, verify=True)
    ours = hybridsim.run(
        hybrid, overrides={"component.hybrid.replacement": policies.PythonLru}, verify=True
    )
    assert built_in.components["hybrid"].destages > 100
    assert ours.fingerprint == built_in.fingerprint
    assert ours.components == built_in.components
    other = hybridsim.run(hybrid, overrides={"component.hybrid.replacement": "fifo"})
    assert other.fingerprint != built_in.fingerprint, "the policy makes no difference here"


def test_a_translation_layer_in_python(ssd, monkeypatch):
    by_class = hybridsim.run(ssd, overrides={"component.ssd.ftl": policies.PageFtl}, verify=True)
    by_name = hybridsim.run(
        ssd, overrides={"component.ssd.ftl": "page-ftl"}, plugins=[policies.PageFtl], verify=True
    )
    monkeypatch.setenv("HYBRIDSIM_ALLOW_CODE", "1")
    path = Policy("python", **{"class": "policies:PageFtl"})
    by_path = hybridsim.run(ssd, overrides={"component.ssd.ftl": path}, verify=True)
    file = Policy("python", **{"class": f"{policies.__file__}:PageFtl"})
    by_file = hybridsim.run(ssd, overrides={"component.ssd.ftl": file}, verify=True)
    runs = [by_class, by_name, by_path, by_file]
    assert len({run.fingerprint for run in runs}) == 1
    assert by_class.components["ssd"].gc_programs > 0
    assert 1 < by_class.totals.write_amplification < 10
    assert hybridsim.run(by_class.resolved).fingerprint == by_class.fingerprint


def test_the_command_takes_python_policies(ssd, tmp_path):
    ssd["component"]["ssd"]["ftl"] = {"kind": "python", "class": "own:PageFtl"}
    (tmp_path / "scenario.toml").write_text(_toml.document(ssd))
    shutil.copy(policies.__file__, tmp_path / "own.py")
    program = [sysconfig.get_path("scripts") + "/hybridsim", "run", "scenario.toml", "--json"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2, "a scenario alone does not make the program run code"
    assert "`python -m hybridsim --allow-code`" in done.stderr
    plain = [sys.executable, "-m", "hybridsim", *program[1:]]
    done = subprocess.run(plain, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2, "nor does it make the package run code"
    command = [*plain, "--allow-code"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    ours = hybridsim.run(ssd, overrides={"component.ssd.ftl": policies.PageFtl})
    assert ours.fingerprint in done.stdout

    ssd["component"]["ssd"]["ftl"] = {"kind": "python", "class": "own:RaisingFtl"}
    (tmp_path / "scenario.toml").write_text(_toml.document(ssd))
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "a mistake in write" in done.stderr
    assert re.search(r"own\.py\", line \d+", done.stderr)


def test_a_scenario_runs_no_code_without_permission(ssd, tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRIDSIM_ALLOW_CODE", "0")
    ssd["component"]["ssd"]["ftl"] = {"kind": "python", "class": "code/own.py:PageFtl"}
    file = tmp_path / "scenario.toml"
    file.write_text(_toml.document(ssd))
    (tmp_path / "code").mkdir()
    ran = tmp_path / "ran"
    text = pathlib.Path(policies.__file__).read_text()
    touch = f"import pathlib\npathlib.Path({str(ran)!r}).touch()\n"
    (tmp_path / "code" / "own.py").write_text(text + touch)
    vary = {"host.queue_depth": [1]}
    for entry in (hybridsim.check, hybridsim.run, hybridsim.Session):
        with pytest.raises(hybridsim.ScenarioError, match=r"hybridsim.allow_code\(\)"):
            entry(file)
    assert "allow_code" in hybridsim.sweep(file, vary).points[0].error
    hybridsim.register(policies.PageFtl)
    other = {"component.ssd.ftl": Policy("page-ftl", **{"class": "code/own.py:PageFtl"})}
    with pytest.raises(hybridsim.ScenarioError, match=r"needs hybridsim\.allow_code"):
        hybridsim.check(file, overrides=other)
    assert not ran.exists()
    hybridsim.allow_code()
    # The file is found from the folder of the scenario.
    assert hybridsim.run(file).complete
    assert ran.exists()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert not hybridsim.sweep(file, vary, executor=pool).points[0].error
    hybridsim.allow_code(False)
    with pytest.raises(hybridsim.ScenarioError):
        hybridsim.check(file)


RAISING = """
import hybridsim


class Raising(hybridsim.Replacement):
    def update(self, page, access):
        raise ValueError("a mistake in update")

    def remove(self, page):
        pass

    def victims(self):
        return iter(())
"""


@pytest.mark.parametrize(
    "command", [["run", "scenario.toml"], ["trace", "mrc", "trace.csv", "--policy", "{policy}"]]
)
def test_the_command_fails_with_a_cache_policy(hybrid, tmp_path, command):
    policy = {"kind": "python", "class": "own:Raising"}
    hybrid["component"]["hybrid"]["replacement"] = policy
    (tmp_path / "scenario.toml").write_text(_toml.document(hybrid))
    (tmp_path / "own.py").write_text(RAISING)
    head = "time_ns,op,volume,lba,sectors,flags,response_ns"
    (tmp_path / "trace.csv").write_text(f"{head}\n0,read,0,0,8,0,\n9,write,0,8,8,0,\n")
    arguments = [word.format(policy=_toml.inline(policy)) for word in command]
    command = [sys.executable, "-m", "hybridsim", "--allow-code", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout
    assert "error: " in done.stderr
    assert "a mistake in update" in done.stderr


def test_conformance_of_sound_layers():
    coverage = check_ftl(policies.PageFtl, cases=60)
    assert coverage.ran > 20
    assert coverage.writes > 1000
    assert coverage.erases > 100


@pytest.mark.parametrize(
    "layer", [policies.ForgetfulFtl, policies.WrongPageFtl, policies.RaisingFtl]
)
def test_conformance_finds_mistakes(layer):
    with pytest.raises(hybridsim.ConformanceFailure, match=r"after \d+ operations"):
        check_ftl(layer, cases=60)


def test_conformance_of_replacement_policies():
    coverage = check_replacement(policies.PythonLru, cases=50)
    assert coverage.ran == 50
    assert coverage.victims > 500
    with pytest.raises(hybridsim.ConformanceFailure, match=r"0 victims were returned, expected 1"):
        check_replacement(policies.StubbornLru, cases=50)
    with pytest.raises(hybridsim.ConformanceFailure, match="not in the cache"):
        check_replacement(policies.InventingLru, cases=50)
    with pytest.raises(hybridsim.ConformanceFailure, match="a mistake") as caught:
        check_replacement(policies.RaisingLru, cases=50)
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_policy_without_victims_ends_the_run(hybrid):
    with pytest.raises(hybridsim.RunError, match="`stubborn-lru` returned 0 of"):
        hybridsim.run(hybrid, overrides={"component.hybrid.replacement": policies.StubbornLru})


def test_the_documented_policy_acts_in_the_example(root):
    overrides = {"component.hybrid.replacement": policies.PythonLru}
    run = hybridsim.run(root / "examples/hybrid.toml", overrides=overrides)
    assert run.components["hybrid"].destages > 0
    assert not any("made no decision" in warning for warning in run.warnings)


def test_a_wrong_layer_is_caught_by_verification(ssd):
    wrong = {"component.ssd.ftl": policies.WrongPageFtl}
    with pytest.raises(hybridsim.RunError, match="wrong data"):
        hybridsim.run(ssd, overrides=wrong, verify=True)


def test_a_violated_rule_of_flash_raises_where_it_happened(ssd):
    with pytest.raises(hybridsim.RunError) as caught:
        hybridsim.run(ssd, overrides={"component.ssd.ftl": policies.ForgetfulFtl})
    cause = caught.value.__cause__
    assert isinstance(cause, hybridsim.FlashRuleBroken)
    assert "policies.py" in str(caught.value)


@pytest.mark.parametrize("method", ["read", "write"])
def test_an_exception_in_a_layer_ends_the_run(ssd, method):
    hybridsim.register(policies.RaisingFtl)
    layer = Policy("raising-ftl", method=method, after=50)
    with pytest.raises(hybridsim.RunError, match=f"a mistake in {method}") as caught:
        hybridsim.run(ssd, overrides={"component.ssd.ftl": layer})
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.__cause__.__traceback__ is not None
    assert not caught.value.result.complete
    assert caught.value.result.requests < 1000


def test_parameters_are_checked_like_any_other(ssd, monkeypatch):
    monkeypatch.setenv("HYBRIDSIM_ALLOW_CODE", "1")
    hybridsim.register(policies.RaisingFtl)
    with pytest.raises(hybridsim.ScenarioError, match="did you mean `after`"):
        hybridsim.check(ssd, overrides={"component.ssd.ftl": Policy("raising-ftl", aftr=1)})
    with pytest.raises(hybridsim.ScenarioError, match="whole number"):
        hybridsim.check(ssd, overrides={"component.ssd.ftl": Policy("raising-ftl", after="much")})
    assert "raising-ftl" in hybridsim.list("ftl")
    assert "after" in hybridsim.list("ftl")["raising-ftl"].params
    assert "default 100" in hybridsim.explain("raising-ftl")
    options = {"kind": "python", "class": "policies:RaisingFtl", "options": '{"after": 1000000}'}
    assert hybridsim.run(ssd, overrides={"component.ssd.ftl": options}).complete


def test_a_layer_refuses_a_device(ssd):
    spare = {"component.ssd.ftl": policies.PageFtl, "component.ssd.over_provisioning": 0.001}
    with pytest.raises(hybridsim.ScenarioError, match="too little spare space"):
        hybridsim.run(ssd, overrides=spare)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("nowhere:Class", "no module nowhere"),
        ("policies:Nothing", "no class Nothing"),
        ("policies:PythonLru", "not a subclass of hybridsim.Ftl"),
        ("nowhere.py:Class", "no file"),
        ("PageFtl", "module:Class"),
    ],
)
def test_classes_that_cannot_be_found(ssd, path, says, monkeypatch):
    monkeypatch.setenv("HYBRIDSIM_ALLOW_CODE", "1")
    with pytest.raises(hybridsim.ScenarioError, match=says):
        hybridsim.check(ssd, overrides={"component.ssd.ftl": {"kind": "python", "class": path}})


def test_names_are_not_taken_twice():
    class Page(hybridsim.Ftl):
        """A class whose name is that of a built-in layer."""

    with pytest.raises(hybridsim.Error, match="built-in ftl called `page`"):
        hybridsim.register(Page)
    with pytest.raises(hybridsim.Error, match="lower case"):
        hybridsim.register(policies.PageFtl, "My FTL")
    with pytest.raises(hybridsim.Error, match="not a policy"):
        hybridsim.register(int)


def test_classes_with_one_name_stay_apart(ssd):
    def make(after):
        class Lru(policies.RaisingFtl):
            """A class whose default name may be taken by another."""

            def __init__(self, device):
                super().__init__(device, after=after)

        return Lru

    sound, broken = make(10**9), make(10)
    for _ in range(2):
        assert hybridsim.run(ssd, overrides={"component.ssd.ftl": sound}).complete
        with pytest.raises(hybridsim.RunError, match="a mistake in write"):
            hybridsim.run(ssd, overrides={"component.ssd.ftl": broken})
    # A name that is registered again means the newer class.
    named = {"component.ssd.ftl": "twice"}
    hybridsim.register(broken, "twice")
    hybridsim.register(sound, "twice")
    assert hybridsim.run(ssd, overrides=named).complete


def test_a_class_may_be_called_like_a_built_in_policy(hybrid):
    class Lru(policies.PythonLru):
        """Named like a built-in policy, and given as a value."""

    ours = hybridsim.run(hybrid, overrides={"component.hybrid.replacement": Lru})
    assert ours.fingerprint == hybridsim.run(hybrid).fingerprint
    origins = {entry.origin for entry in hybridsim.list("replacement").values()}
    assert f"Python class {__name__}:{Lru.__qualname__}" in origins


def test_mistakes_of_replacement_policies(hybrid):
    with pytest.raises(hybridsim.RunError, match="not in the cache"):
        hybridsim.run(hybrid, overrides={"component.hybrid.replacement": policies.InventingLru})
    with pytest.raises(hybridsim.RunError, match="a mistake") as caught:
        hybridsim.run(hybrid, overrides={"component.hybrid.replacement": policies.RaisingLru})
    assert isinstance(caught.value.__cause__, KeyError)


def test_flash_is_lent_for_one_call_only(ssd):
    kept = []

    @hybridsim.ftl("keeping-ftl")
    class Keeping(policies.PageFtl):
        def write(self, lpn, flash):
            if not kept:
                with pytest.raises(IndexError, match="there is no page"):
                    flash.host_read(2**31)
                with pytest.raises(ValueError, match="of the same call"):
                    flash.host_read(0, after=99)
                with pytest.raises(ValueError, match="no cause"):
                    flash.erase(0, cause="fun")
                assert flash.request_pages == 1
                assert flash.state(0) == "free"
                kept.append(flash)
            super().write(lpn, flash)

    hybridsim.run(ssd, overrides={"component.ssd.ftl": "keeping-ftl"}, verify=True)
    with pytest.raises(ValueError, match="while a method"):
        kept[0].erase(0)


def test_ctrl_c_in_a_policy_is_no_failure(ssd):
    @hybridsim.ftl("interrupted-ftl")
    class Interrupted(policies.PageFtl):
        def write(self, lpn, flash):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hybridsim.run(ssd, overrides={"component.ssd.ftl": "interrupted-ftl"})


def test_a_policy_may_simulate(ssd):
    inner = dict(ssd)

    @hybridsim.ftl("nested-ftl")
    class Nested(policies.PageFtl):
        def __init__(self, device):
            super().__init__(device)
            self.inner = hybridsim.run(inner, detail="bare")

    result = hybridsim.run(ssd, overrides={"component.ssd.ftl": "nested-ftl"})
    assert result.complete
    assert "nested-ftl" in result.resolved
    assert sys.getrefcount(Nested) > 1
