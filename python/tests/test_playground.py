"""The playground in Chromium: the native program's results, and a visitor's way through the page.

`make playground` builds the page; without it, or without Chromium, the tests are skipped.
"""

import collections.abc
import json
import math
import pathlib
import re
import typing

import chromium
import hybridsim
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "target" / "playground" / "index.html"
EXAMPLES = sorted((ROOT / "examples").rglob("*.toml"))
LESSONS = re.findall(
    r'src="lessons/(.+)\.js"', (ROOT / "crates/playground/page/index.html").read_text()
)
READY = "document.body?.dataset.ready"
DONE = "document.body?.dataset.done"
SMALL = """
title = "Small"
[workload]
generator = { kind = "uniform", requests = 100 }
[component.device]
kind = "constant-device"
capacity = "1GiB"
"""


def skipped() -> str:
    """The reason to skip all tests, if there is one."""
    if not PAGE.exists():
        return "there is no playground: run `make playground`"
    if chromium.program() is None:
        return "no Chromium found; set HYBRIDSIM_CHROMIUM to its path"
    return ""


pytestmark = pytest.mark.skipif(bool(skipped()), reason=skipped())


@pytest.fixture(name="browser")
def _browser() -> collections.abc.Iterator[chromium.Chromium]:
    command = chromium.program()
    assert command is not None
    with chromium.Chromium(command) as browser:
        browser.open(PAGE.as_uri())
        browser.wait(READY)
        yield browser
        assert browser.console == []


def write(browser: chromium.Chromium, text: str) -> None:
    """Writes a scenario into the editor."""
    browser.evaluate(f"editor.value = {text!r}; editor.dispatchEvent(new Event('input'))")


def fingerprints(browser: chromium.Chromium) -> list[str]:
    """The fingerprints that the page shows."""
    return browser.evaluate(
        "[...document.querySelectorAll('#runs li')].map(item => item.dataset.fingerprint)"
    )


def press(browser: chromium.Chromium, button: str) -> None:
    """Presses a button that runs something, and waits for its end."""
    browser.evaluate(f"delete document.body.dataset.done; by('{button}').click()")
    browser.wait(DONE, 600)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_have_the_fingerprint_of_the_program(
    browser: chromium.Chromium, path: pathlib.Path
) -> None:
    native = hybridsim.run(path)
    if browser.evaluate("catalogue.sources") != native.versions["sources"]:
        pytest.skip("the playground is of other sources: run `make playground`")
    name = path.relative_to(ROOT / "examples").with_suffix("").as_posix()
    write(browser, browser.evaluate(f"example('{name}')"))
    press(browser, "run")
    assert fingerprints(browser) == [native.fingerprint], browser.evaluate(
        "by('status').textContent + by('problems').textContent"
    )


def test_a_stranger_compares_three_systems_with_a_trace_and_shares_the_link(
    browser: chromium.Chromium, tmp_path: pathlib.Path
) -> None:
    trace = tmp_path / "mine.csv"
    # The format of MSR Cambridge: times in steps of 100 ns, bytes.
    start = 128166372003061629
    lines = (
        f"{start + n * 100_000},mine,0,{('Read', 'Write')[n % 2]},{n * 7919 % 99_991 * 4096},4096,0"
        for n in range(2000)
    )
    trace.write_text("\n".join(lines) + "\n")
    assert browser.evaluate("state.systems.length") == 3
    browser.give_file("#file", trace)
    browser.wait("by('status').textContent.includes('mine.csv')")
    press(browser, "compare")
    assert len(set(fingerprints(browser))) == 3, browser.evaluate("by('status').textContent")
    report = browser.evaluate("report")
    assert all(title in report for title in ("Hard disk", "SSD", "Hybrid disk"))
    before = fingerprints(browser)
    # A knob changes the text, and the link contains it.
    browser.evaluate("select(1)")
    browser.wait("document.getElementById('knob-component.ssd.over_provisioning')")
    browser.evaluate(
        "(knob => { knob.value = 0.3; knob.dispatchEvent(new Event('change')); })"
        "(document.getElementById('knob-component.ssd.over_provisioning'))"
    )
    browser.evaluate("remember()")
    systems, link = browser.evaluate("state.systems"), browser.evaluate("location.href")
    assert "over_provisioning = 0.3" in systems[1]
    assert "mine.csv" in systems[1]
    browser.open("about:blank")
    browser.open(link)
    browser.wait(READY)
    assert browser.evaluate("state.systems") == systems
    browser.wait("by('problems').textContent.includes('mine.csv is not in this browser')")
    browser.give_file("#file", trace)
    browser.wait("by('status').textContent.includes('mine.csv')")
    press(browser, "compare")
    after = fingerprints(browser)
    assert after[0] == before[0]
    assert after[1] != before[1]
    assert after[2] == before[2]


def test_problems_are_shown_at_their_line_and_go_when_they_are_mended(
    browser: chromium.Chromium,
) -> None:
    write(browser, SMALL.replace("requests", "reqests"))
    browser.wait("document.querySelector('#lines .wrong')")
    assert browser.evaluate("document.querySelector('#lines .wrong').textContent") == "4"
    assert "did you mean `requests`" in browser.evaluate("by('problems').textContent")
    press(browser, "run")
    assert "problem" in browser.evaluate("by('status').textContent")
    write(browser, SMALL)
    browser.wait("document.querySelectorAll('#lines .wrong, .problem').length === 0")
    press(browser, "run")
    assert len(fingerprints(browser)) == 1


def test_a_run_is_cancelled_and_another_follows(browser: chromium.Chromium) -> None:
    endless = SMALL.replace("requests = 100", "requests = 1000000000")
    write(browser, f'{endless}[host]\nmode = "closed"\n')
    browser.evaluate("by('run').click()")
    browser.wait("by('status').textContent.includes('requests')")
    browser.evaluate("by('cancel').click()")
    browser.wait("by('status').textContent === 'Cancelled.'")
    write(browser, SMALL)
    press(browser, "run")
    assert len(fingerprints(browser)) == 1


def test_keys_and_values_are_completed(browser: chromium.Chromium) -> None:
    write(browser, SMALL + "lat")
    browser.evaluate(
        "editor.focus(); editor.setSelectionRange(editor.value.length, editor.value.length);"
        "editor.dispatchEvent(new KeyboardEvent('keydown', { key: ' ', ctrlKey: true }))"
    )
    assert "latency" in browser.evaluate("by('completions').textContent")
    browser.evaluate("editor.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }))")
    assert browser.evaluate("/\\nlatency\\w* = $/.test(editor.value)")


def test_the_page_fits_a_phone_and_controls_have_names(browser: chromium.Chromium) -> None:
    write(browser, SMALL)
    press(browser, "run")
    browser.picture(360, 800, dark=True)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 360
    unnamed = (
        "[...document.querySelectorAll('button, input, select, textarea, iframe')].filter("
        "it => !(it.labels && it.labels.length) && !it.textContent.trim() && !it.title"
        " && !it.getAttribute('aria-labelledby')).map(it => it.id)"
    )
    assert browser.evaluate(unnamed) == []


def open_step(browser: chromium.Chromium, name: str) -> dict[str, typing.Any]:
    """Opens a step such as `cache/2` and returns its data."""
    browser.evaluate(f"location.hash = 'lesson={name}'")
    browser.wait(f"state.lesson === '{name}' && by('verdict')")
    lesson, number = name.split("/")
    step: dict[str, typing.Any] = browser.evaluate(
        f"lessons.all.find(one => one.id === '{lesson}').steps[{number} - 1]"
    )
    return step


def answer(browser: chromium.Chromium, value: object) -> str:
    """Answers the question of the step and returns the verdict: right or wrong, and why."""
    browser.evaluate(
        "(form => { if (form.elements.answer) form.elements.answer.value = "
        f"{json.dumps(str(value))}; form.requestSubmit(); }})"
        "(document.querySelector('#lesson form'))"
    )
    return browser.evaluate("by('verdict').className + ': ' + by('verdict').textContent")


def set_and_run(browser: chromium.Chromium, values: dict[str, str]) -> None:
    """Sets keys in the text of the system shown, and runs all systems of the step."""
    for key, value in values.items():
        text = browser.evaluate(f"scenarioText.set(editor.value, {key!r}, {value!r})")
        write(browser, text)
    press(browser, "lesson-run")


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_student_walks_through_a_lesson(browser: chromium.Chromium, lesson: str) -> None:
    steps = browser.evaluate(f"lessons.all.find(one => one.id === '{lesson}').steps.length")
    for number in range(1, steps + 1):
        step = open_step(browser, f"{lesson}/{number}")
        title, solution = step["title"], step["solution"]
        assert answer(browser, 0).startswith("wrong: Run "), title
        press(browser, "lesson-run")
        settings: list[dict[str, str]] = []
        if choices := step["ask"].get("choices"):
            wrong = [value for value in range(len(choices)) if value != solution]
        elif isinstance(solution, (int, float)):
            wrong = [solution * 1.2, solution / 1.2]
            assert answer(browser, "much") == "wrong: Enter a number."
        else:
            wrong, settings = [0], solution if isinstance(solution, list) else [solution]
        for value in wrong:
            assert answer(browser, value).startswith("wrong: Not yet. "), (title, value)
        for values in settings:
            set_and_run(browser, values)
        assert answer(browser, solution).startswith("right: Right. "), title
        assert browser.evaluate("lessons.runs.flatMap(run => run.results.warnings)") == [], title
        assert browser.evaluate("document.querySelectorAll('.problem').length") == 0, title
    browser.open("about:blank")
    browser.open(PAGE.as_uri())
    browser.wait(READY)
    assert f"{steps} of {steps} answered" in browser.evaluate("by('lessons').textContent")


def test_runs_of_lessons_agree_with_theory(browser: chromium.Chromium) -> None:
    def series(step: str, key: str, values: list[str], figure: str) -> list[tuple[float, float]]:
        open_step(browser, step)
        for value in values:
            set_and_run(browser, {key: value})
        pairs = browser.evaluate(f"lessons.runs.map(run => [run.key('{key}'), run.{figure}])")
        return [(float(re.sub("[^0-9.]", "", word)), found) for word, found in pairs]

    spare, shares = "component.ssd.over_provisioning", ["0.12", "0.28", "0.5"]
    for p, found in series("write-amplification/2", spare, shares, "writeAmplification"):
        assert found == pytest.approx((1 + p) / p, rel=0.03)
    for p, found in series("write-amplification/3", spare, shares, "writeAmplification"):
        u = 1 - 1 / found
        assert -math.log(u) / (1 - u) == pytest.approx(1 + p, rel=0.01)
    greedy = series("write-amplification/4", spare, shares, "writeAmplification")
    assert sorted(greedy, key=lambda pair: -pair[1]) == greedy
    sizes = ['"8MiB"', '"16MiB"', '"48MiB"']
    for mib, found in series("cache/1", "component.cache.size", sizes, "hits"):
        assert found == pytest.approx(100 * mib / 64, abs=1)


def test_runs_of_other_scenarios_do_not_count_in_a_lesson(browser: chromium.Chromium) -> None:
    open_step(browser, "write-amplification/4")
    set_and_run(browser, {"component.ssd.blocks_per_plane": "1024"})
    assert "only component.ssd.over_provisioning may differ" in browser.evaluate(
        "by('verdict').textContent"
    )
    assert answer(browser, 0).startswith("wrong: Run ")
    # Comments, spaces, the title and a value written otherwise are no difference.
    browser.evaluate("[...document.querySelectorAll('#lesson button')][1].click()")
    text = browser.evaluate("editor.value").replace("title = ", "# mine\ntitle =  ")
    write(browser, text.replace("over_provisioning = 0.07", 'over_provisioning = "7%"  # less'))
    press(browser, "lesson-run")
    assert browser.evaluate("lessons.runs.length") == 1
    # The link contains the lesson.
    browser.evaluate("remember()")
    link = browser.evaluate("location.href")
    browser.open("about:blank")
    browser.open(link)
    browser.wait(READY)
    assert browser.evaluate("state.lesson") == "write-amplification/4"
    assert browser.evaluate("lessons.runs.length") == 0


def test_lessons_work_where_the_browser_keeps_no_progress(browser: chromium.Chromium) -> None:
    refuse = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } })"
    browser.send("Page.addScriptToEvaluateOnNewDocument", source=refuse)
    browser.open("about:blank")
    browser.open(PAGE.as_uri())
    browser.wait(READY)
    open_step(browser, "cache/1")
    set_and_run(browser, {"component.cache.size": '"32MiB"'})
    assert answer(browser, 0).startswith("right: ")
    assert "1 of 5 answered" in browser.evaluate("by('lessons').textContent")
    browser.picture(390, 800)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390


def test_sliders_change_keys_of_entries_and_of_the_generator(browser: chromium.Chromium) -> None:
    write(
        browser,
        """
[workload]
generator = { kind = "streams", requests = 100, region = "1MiB", active = 2 } # two
[component.ssd]
preset = "flashsim-large-block"
ftl = "page"
""",
    )

    def move(key: str, value: str) -> None:
        browser.wait(f"by('knob-{key}')")
        browser.evaluate(
            f"Object.assign(by('knob-{key}'), {{ value: '{value}' }})"
            ".dispatchEvent(new Event('change'))"
        )

    move("workload.generator.active", "7")
    move("component.ssd.ftl.gc", "fifo")
    move("component.ssd.map_unit", "13")
    text = browser.evaluate("editor.value")
    assert 'region = "1MiB", active = 7 } # two' in text
    assert 'ftl = { kind = "page", gc = "fifo" }' in text
    assert 'map_unit = "8KiB"' in text
    label = browser.evaluate("by('knob-component.ssd.over_provisioning').parentElement.textContent")
    assert label.startswith("Over-provisioning ssd.over_provisioning")
    assert " %" in label
