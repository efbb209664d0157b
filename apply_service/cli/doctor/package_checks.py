"""Python, the packages and the grammars: there, and as new as they must be."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

from apply_service.cli.doctor.check import Check, failed, passed, warned
from apply_service.edit.syntax.grammars import try_load_grammar
from apply_service.edit.syntax.languages import LANGUAGES

DISTRIBUTION = "apply-service"
MIN_PYTHON = (3, 11)
# What the line for people names; the others only if something is wrong with them.
_SHOWN = ("torch", "transformers", "triton", "tree-sitter", "litestar", "uvicorn")
_REMEDY = "install again from the source folder: pip install --constraint constraints.txt"


def check_python() -> Check:
    """The interpreter."""
    text = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info < MIN_PYTHON:
        needed = ".".join(map(str, MIN_PYTHON))
        return failed("python", text, remedy=f"use Python {needed} or newer")
    return passed("python", text, version=platform.python_version(), executable=sys.executable)


def check_packages() -> Check:
    """Everything that the server imports, against what this package asks for."""
    try:
        own_version = version(DISTRIBUTION)
        needed = _requirements()
    except PackageNotFoundError:
        return failed("packages", f"{DISTRIBUTION} is not installed", remedy=f"{_REMEDY} '.'")
    found: dict[str, str] = {DISTRIBUTION: own_version}
    wrong = []
    for requirement in needed:
        try:
            found[requirement.name] = version(requirement.name)
        except PackageNotFoundError:
            wrong.append(f"{requirement.name} is not installed")
            continue
        if not requirement.specifier.contains(found[requirement.name], prereleases=True):
            is_not = f"{found[requirement.name]}, not {requirement.specifier}"
            wrong.append(f"{requirement.name} is {is_not}")
    if wrong:
        remedy = f"{_REMEDY} '.[service]'"
        return failed("packages", "; ".join(wrong), remedy=remedy, versions=found)
    found.setdefault("triton", _version_or_none("triton"))
    shown = [f"{name} {found[name]}" for name in (DISTRIBUTION, *_SHOWN) if name in found]
    return passed("packages", ", ".join(shown), versions=found)


def check_grammars() -> Check:
    """The tree-sitter grammars; without one, files of its language are edited without syntax."""
    missing = [language for language in LANGUAGES if try_load_grammar(language) is None]
    if missing:
        return warned(
            "grammars",
            f"no grammar that fits for {', '.join(missing)}; the syntax of such files is unchecked",
            remedy=f"{_REMEDY} '.[service]'",
            missing=missing,
        )
    return passed("grammars", f"{len(LANGUAGES)} languages", languages=list(LANGUAGES))


def _requirements() -> list[Requirement]:
    """What the package and its extra `service` ask for on this machine."""
    requirements = [Requirement(text) for text in requires(DISTRIBUTION) or ()]
    return [
        requirement
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": "service"})
    ]


def _version_or_none(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
