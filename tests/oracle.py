"""Runs an oracle by hand: `python tests/oracle.py service.soak_run --minutes 30`.

The name is a module below `tests/oracles`; what follows are its own arguments. Imports are found
where pytest finds them, in this process and in those that the oracle starts.
"""

from __future__ import annotations

import os
import runpy
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(arguments: list[str]) -> None:
    """Run one oracle as a program."""
    paths = sorted((ROOT / "tests/oracles").glob("*/*.py"))
    runnable = [path for path in paths if "__main__" in path.read_text(encoding="utf-8")]
    names = [f"{path.parent.name}.{path.stem}" for path in runnable]
    if not arguments or arguments[0] not in names:
        sys.exit("name one of: " + ", ".join(names))
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folders = [str(ROOT / name) for name in settings["tool"]["pytest"]["ini_options"]["pythonpath"]]
    sys.path[:1] = folders
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, *([inherited] if inherited else [])])
    sys.argv = arguments
    runpy.run_module(f"oracles.{arguments[0]}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
