"""Builds the manual as a site and checks its links: `make site`.

The pages of `docs`, the reference that the program generates, and the pages of the top folder are
gathered in target/site-pages, from which zensical builds the folder `site`.
"""

import argparse
import functools
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ROOT / "target" / "site-pages"
SITE = ROOT / "site"
PLAYGROUND = ROOT / "target" / "playground"
# Pages of the top folder and their names in the site.
DEVELOPMENT = {
    "ARCHITECTURE.md": "development/architecture.md",
    "CONTRIBUTING.md": "development/contributing.md",
    "CHANGELOG.md": "development/changelog.md",
}
# What zensical would load from elsewhere, and our script that does the same.
ELSEWHERE = ("https://unpkg.com/iframe-worker/shim", "assets/frame-worker.js")
# Code blocks at the margin, fenced or indented, and what they run.
BLOCK = re.compile(r"^```.*\n(?:.*\n)*?```\n|^\n(?:    .*\n)+", re.MULTILINE)
COMMAND = re.compile(r"hybridsim (?:run|compare) ")
EXAMPLE = re.compile(r"examples/([\w/-]+)\.toml")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def gather(program: str) -> None:
    """Copies and generates all pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    subprocess.run([program, "man", "--markdown", PAGES / "reference"], check=True)
    for page, name in DEVELOPMENT.items():
        (PAGES / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / page, PAGES / name)
    places = {ROOT / "docs" / path.relative_to(PAGES): path for path in PAGES.rglob("*.md")}
    places |= {ROOT / page: PAGES / name for page, name in DEVELOPMENT.items()}
    for source, page in places.items():
        move = functools.partial(moved, source=source, page=page, places=places)
        text = LINK.sub(move, page.read_text())
        page.write_text(with_playground(text, page) if PLAYGROUND.exists() else text)


def with_playground(text: str, page: pathlib.Path) -> str:
    """`text` with a link behind every code block that runs examples, which opens them in a page."""
    target = pathlib.Path(os.path.relpath(PAGES / "playground" / "index.html", page.parent))

    def unbroken(code: str) -> list[str]:
        return code.replace("\\\n", " ").splitlines()

    def linked(block: re.Match[str]) -> str:
        commands = [line for line in unbroken(block[0]) if COMMAND.search(line)]
        names = dict.fromkeys(name for line in commands for name in EXAMPLE.findall(line))
        if not names:
            return block[0]
        link = f"{target.as_posix()}#example={','.join(names)}"
        what = "this example" if len(names) == 1 else "these examples"
        return f"{block[0]}\n[Run {what} in the browser]({link})\n"

    return BLOCK.sub(linked, text)


def moved(link: re.Match[str], source: pathlib.Path, page: pathlib.Path, places: dict) -> str:
    """`link` of the page written at `source`, from where the page is now."""
    text, target = link.groups()
    path, _, anchor = target.partition("#")
    if not path or ":" in path:
        return link[0]
    wanted = (source.parent / path).resolve()
    if wanted not in places:
        # A file of the repository that is no page: its name stays.
        inside = (ROOT / "docs") in wanted.parents
        return link[0] if inside else text
    relative = pathlib.Path(os.path.relpath(places[wanted], page.parent)).as_posix()
    return f"[{text}]({relative}{'#' + anchor if anchor else ''})"


class Page(html.parser.HTMLParser):
    """Links, anchors and loaded files of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what a tag refers to."""
        values = {name: value or "" for name, value in attrs}
        self.anchors.add(values.get("id", ""))
        if tag == "a":
            self.links.append(values.get("href", ""))
        elif tag in ("img", "script", "source", "iframe"):
            self.loaded.append(values.get("src", ""))
        elif tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(values.get("href", ""))


def keep_offline() -> None:
    """Replaces the script that pages would load from elsewhere."""
    address, script = ELSEWHERE
    for path in SITE.rglob("*.html"):
        relative = pathlib.Path(os.path.relpath(SITE / script, path.parent)).as_posix()
        path.write_text(path.read_text().replace(address, relative))


def add_playground() -> None:
    """Puts the playground in the place of the page that says how to build it."""
    if not PLAYGROUND.exists():
        print("the site has no playground: run `make playground` first")
        return
    shutil.rmtree(SITE / "playground")
    shutil.copytree(PLAYGROUND, SITE / "playground")


def check() -> list[str]:
    """Links that lead nowhere, and files from elsewhere."""
    pages = {path: Page(path.read_text()) for path in SITE.rglob("*.html")}
    problems = []
    for path, page in pages.items():
        # The page of a server for addresses that do not exist has absolute links.
        if path.name == "404.html":
            continue
        name = path.relative_to(SITE)
        for target in page.loaded:
            if urllib.parse.urlsplit(target).netloc:
                problems.append(f"{name} loads {target}")
        for target in page.links + page.loaded:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            file = (path.parent / urllib.parse.unquote(parts.path)).resolve()
            file = path if not parts.path else file / "index.html" if file.is_dir() else file
            anchor = urllib.parse.unquote(parts.fragment)
            if not file.exists():
                problems.append(f"{name} links to {target}")
            elif anchor.startswith("example="):
                for example in anchor.removeprefix("example=").split(","):
                    if not (ROOT / "examples" / f"{example}.toml").exists():
                        problems.append(f"{name} runs {example}, which does not exist")
            elif anchor and file in pages and anchor not in pages[file].anchors:
                problems.append(f"{name} links to {target}, which has no such heading")
    if len(pages) < 40:
        problems.append(f"only {len(pages)} pages were built")
    return problems


def main() -> int:
    """Builds, checks, and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="hybridsim", help="the hybridsim to take help from")
    args = parser.parse_args()
    gather(args.program)
    shutil.rmtree(SITE, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "zensical", "build", "--clean"], cwd=ROOT, check=True)
    keep_offline()
    add_playground()
    problems = check()
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(list(SITE.rglob('*.html')))} pages in {SITE}, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
