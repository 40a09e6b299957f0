"""Prints the requirements of the Python tests from pyproject.toml."""

import pathlib
import tomllib

project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]["test"]
print(*(f"{name}" for name in project["dependencies"] + extras))
