"""Makes the pictures of the gallery: `make pictures`.

Runs the commands of docs/gallery.md in a folder of their own. The comment below a picture names
its source: a figure of a report, which Chromium draws, or an SVG file.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import matplotlib.image
import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
GALLERY = ROOT / "docs" / "gallery.md"
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)\n<!-- (\S+)(?: (\S+))? -->")
WIDTH, HEIGHT, SCALE = 900, 1600, 1


def chromium() -> str:
    """The browser."""
    names = (os.environ.get("HYBRIDSIM_CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    for name in filter(None, names):
        if path := shutil.which(name):
            return path
    sys.exit("no Chromium found: install it, or set HYBRIDSIM_CHROMIUM")


def draw(report: pathlib.Path, figure: str, picture: pathlib.Path) -> None:
    """Draws one figure of a report."""
    command = [
        chromium(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--force-device-scale-factor={SCALE}",
        f"--window-size={WIDTH},{HEIGHT}",
        "--virtual-time-budget=6000",
        f"--screenshot={picture}",
        f"{report.as_uri()}#theme=light&only={figure}",
    ]
    subprocess.run(command, check=True, capture_output=True)
    pixels = matplotlib.image.imread(picture)[:, :, :3]
    drawn = numpy.argwhere((pixels < 0.97).any(axis=2))
    if not len(drawn):
        sys.exit(f"{figure} of {report} is empty")
    margin = 8 * SCALE
    (top, left), (bottom, right) = drawn.min(0) - margin, drawn.max(0) + margin
    cut = pixels[max(top, 0) : bottom, max(left, 0) : right]
    matplotlib.image.imsave(picture, cut)


def main() -> None:
    """Runs the commands, then draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="hybridsim", help="the hybridsim to run")
    wanted = parser.parse_args().program
    # Commands run in a folder of their own.
    program = pathlib.Path(shutil.which(wanted) or sys.exit(f"no program {wanted}")).absolute()
    text = GALLERY.read_text()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([program, "examples", folder], check=True, capture_output=True)
        environment = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}"}
        for command in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
            print(command.strip(), flush=True)
            subprocess.run(
                ["sh", "-ec", command], cwd=folder, env=environment, check=True, capture_output=True
            )
        for target, source, figure in PICTURE.findall(text):
            picture = GALLERY.parent / target
            if figure:
                draw(folder / source, figure, picture)
            else:
                shutil.copy(folder / source, picture)
            print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size // 1024} KiB", flush=True)


if __name__ == "__main__":
    main()
