"""The playground in Chromium: the native program's results, and a visitor's way through the page.

`make playground` builds the page; without it, or without Chromium, the tests are skipped.
"""

import collections.abc
import pathlib

import chromium
import hybridsim
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "target" / "playground" / "index.html"
EXAMPLES = sorted((ROOT / "examples").rglob("*.toml"))
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
