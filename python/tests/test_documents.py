"""The commands and programs of the page about policies in Python run."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "policy-python.md"
BLOCK = re.compile(r'^```(sh|python)(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
COMMAND = "import sys; from hybridsim.__main__ import main; sys.exit(main())"


@pytest.mark.skipif(os.name != "posix", reason="the commands are for a shell")
def test_the_page_about_policies_runs(tmp_path):
    for folder in ("examples", "workloads"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, words in (("hybridsim", f"-c '{COMMAND}'"), ("python", "")):
        (programs / name).write_text(f"#!/bin/sh\nexec '{sys.executable}' {words} \"$@\"\n")
        (programs / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    blocks = BLOCK.findall(PAGE.read_text())
    assert [language for language, *_ in blocks] == ["python", "sh", "python"]
    for language, title, text in blocks:
        if title:
            (tmp_path / title).write_text(text)
            continue
        command = ["sh", "-ec", text] if language == "sh" else [sys.executable, "-c", text]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "Hit ratio" in done.stdout or "hit ratio" in done.stdout
