"""Tasks that nobody has seen: seeded edits of files, and changes between versions of a package.

The same seed and files give the same tasks. Whoever keeps the seed has a hidden split. Edits are
line edits that keep brackets and depth as a person's would; they need not make sense as a program.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lazy_edit_bench.corpus import tasks_of, written_edits
from lazy_edit_bench.kinds import KINDS, Kind, hunks_of, kind_of
from lazy_edit_bench.languages import Syntax, is_import, syntax_of
from lazy_edit_bench.sources import SourceFile, package_files, read_fetched
from lazy_edit_bench.task import Edit, Task

# The seed of the public split; a hidden one is chosen by whoever keeps it.
PUBLIC_SEED = "public 1"
NUM_PUBLIC_EDITS = 600
MAX_HUNKS_OF_A_VERSION = 6
MAX_LINES_CHANGED = 80
NUM_TRIES = 12
_NAMES = ("limit", "retry", "batch", "window", "region", "offset", "buffer", "margin", "ratio")
_WRAPS = {
    "python": ("if enabled_{0}:", None),
    "go": ("if enabled{0} {{", "}"),
    "rust": ("if enabled_{0} {{", "}"),
    "swift": ("if enabled{0} {{", "}"),
}


@dataclass(frozen=True, slots=True)
class _Draft:
    """A file's lines with what an operator needs beside them."""

    lines: list[str]
    syntax: Syntax
    rng: random.Random


def generate(files: Sequence[SourceFile], *, seed: str, count: int) -> list[Task]:
    """At most `count` edits, kinds and languages taking turns, as tasks of several dialects."""
    rng = random.Random(f"{seed}:{count}")
    by_language: dict[str, list[SourceFile]] = {}
    for file in files:
        by_language.setdefault(syntax_of(file.path).name, []).append(file)
    edits: list[Edit] = []
    languages = sorted(by_language)
    for turn in range(count * 3):
        if len(edits) == count or not languages:
            break
        file = rng.choice(by_language[languages[turn % len(languages)]])
        kind = KINDS[(turn // len(languages)) % len(KINDS)]
        made = _edit(file, kind, rng)
        if made is None:
            continue
        number = len(edits)
        edits.append(replace(made, id=f"generated/{number:05d}"))
    return tasks_of(edits, keep_unchecked=False)


def full_split(folder: Path) -> list[Task]:
    """All public tasks: written ones, those of fetched files, and generated ones.

    Raises BenchError where `folder` lacks a file.
    """
    tasks = tasks_of([*written_edits(), *read_fetched(folder)])
    files = list(package_files(folder))
    return tasks + generate(files, seed=PUBLIC_SEED, count=NUM_PUBLIC_EDITS)


def _edit(file: SourceFile, kind: Kind, rng: random.Random) -> Edit | None:
    """An edit of the kind, or None where the file has no place for one."""
    made_by = "generated"
    result = None
    if file.later is not None and kind == "several" and rng.random() < 0.7:
        result, made_by = _part_of_version(file, rng), "version"
    for _ in range(NUM_TRIES if result is None else 0):
        draft = _Draft(file.text.splitlines(), syntax_of(file.path), rng)
        lines = _OPERATORS[kind](draft)
        if lines is None:
            continue
        text = "\n".join(lines) + ("\n" if file.text.endswith("\n") else "")
        if text != file.text and kind_of(file.path, file.text, text) == kind:
            result, made_by = text, "generated"
            break
    if result is None or result == file.text:
        return None
    return Edit(
        id="",
        path=file.path,
        original=file.text,
        results=(result,),
        made_by=made_by,
        source=file.source,
    )


def _part_of_version(file: SourceFile, rng: random.Random) -> str | None:
    """A few neighbouring hunks of what the next version changed."""
    assert file.later is not None
    old = file.text.splitlines()
    hunks = hunks_of(old, file.later.splitlines())
    if not hunks:
        return None
    first = rng.randrange(len(hunks))
    chosen = hunks[first : first + rng.randint(1, MAX_HUNKS_OF_A_VERSION)]
    if sum(len(hunk.new) + hunk.end - hunk.start for hunk in chosen) > MAX_LINES_CHANGED:
        return None
    for hunk in reversed(chosen):
        old[hunk.start : hunk.end] = hunk.new
    return "\n".join(old) + ("\n" if file.text.endswith("\n") else "")


def _replace(draft: _Draft) -> list[str] | None:
    places = [at for at, line in enumerate(draft.lines) if re.search(r"\b\d+\b|\w{5,}", line)]
    if not places:
        return None
    at = draft.rng.choice(places)
    lines = list(draft.lines)
    for index in range(at, min(len(lines), at + draft.rng.randint(1, 3))):
        lines[index] = _changed(lines[index], draft.rng)
    return lines


def _changed(line: str, rng: random.Random) -> str:
    """The line with another number, or with a word of it made longer."""
    if re.search(r"\b\d+\b", line):
        return re.sub(
            r"\b\d+\b", lambda number: str(int(number[0]) + rng.randint(1, 9)), line, count=1
        )
    words = re.findall(r"[A-Za-z_]{5,}", line)
    if not words:
        return line
    word = rng.choice(words)
    return line.replace(word, f"{word}_{rng.choice(_NAMES)}", 1)


def _insert(draft: _Draft) -> list[str] | None:
    """New lines like those of the file, at a place between two lines of one depth."""
    lines = draft.lines
    models = [line for line in lines if _is_plain(line)]
    places = [
        at
        for at in range(1, len(lines))
        if _is_plain(lines[at - 1])
        and lines[at].strip()
        and _depth(lines[at - 1]) == _depth(lines[at])
    ]
    if not models or not places:
        return None
    at = draft.rng.choice(places)
    indent = lines[at][: _depth(lines[at])]
    new = [
        indent + _changed(draft.rng.choice(models).strip(), draft.rng)
        for _ in range(draft.rng.randint(1, 4))
    ]
    return [*lines[:at], *new, *lines[at:]]


def _delete(draft: _Draft) -> list[str] | None:
    run = _run(draft, least=1, most=6)
    return None if run is None else draft.lines[: run[0]] + draft.lines[run[1] :]


def _rename(draft: _Draft) -> list[str] | None:
    words: dict[str, int] = {}
    for line in draft.lines:
        for word in set(re.findall(r"\b[A-Za-z_]\w{3,}\b", line)):
            words[word] = words.get(word, 0) + 1
    choices = sorted(word for word, count in words.items() if 2 <= count <= 8)
    if not choices:
        return None
    word = draft.rng.choice(choices)
    new = f"{word}_{draft.rng.choice(_NAMES)}"
    return [re.sub(rf"\b{re.escape(word)}\b", new, line) for line in draft.lines]


def _move(draft: _Draft) -> list[str] | None:
    run = _run(draft, least=1, most=8)
    if run is None:
        return None
    start, end = run
    block, rest = draft.lines[start:end], draft.lines[:start] + draft.lines[end:]
    depth = _depth(block[0])
    places = [
        at
        for at in range(1, len(rest))
        if abs(at - start) > 4 and rest[at].strip() and rest[at - 1].strip()
        and _depth(rest[at]) == _depth(rest[at - 1]) == depth
    ]  # fmt: skip
    if not places:
        return None
    at = draft.rng.choice(places)
    return [*rest[:at], *block, *rest[at:]]


def _wrap(draft: _Draft) -> list[str] | None:
    if draft.syntax.blocks == "none":
        return None
    run = _run(draft, least=2, most=8)
    if run is None:
        return None
    start, end = run
    indent = draft.lines[start][: _depth(draft.lines[start])]
    step = "\t" if "\t" in indent else "    "
    opener, closer = _WRAPS.get(draft.syntax.name, ("if (enabled{0}) {{", "}"))
    name = draft.rng.choice(_NAMES)
    inner = [step + line if line.strip() else line for line in draft.lines[start:end]]
    new = [indent + opener.format(name), *inner, *([indent + closer] if closer else [])]
    return [*draft.lines[:start], *new, *draft.lines[end:]]


def _import(draft: _Draft) -> list[str] | None:
    places = [at for at, line in enumerate(draft.lines) if is_import(line, draft.syntax)]
    places = [at for at in places if re.search(r"\w{3,}\W*$", draft.lines[at])]
    if not places:
        return None
    at = draft.rng.choice(places)
    name = draft.rng.choice(_NAMES)
    new = re.sub(r"(\w{3,})(\W*)$", rf"\1_{name}\2", draft.lines[at])
    return [*draft.lines[: at + 1], new, *draft.lines[at + 1 :]]


def _several(draft: _Draft) -> list[str] | None:
    lines: list[str] | None = draft.lines
    for operator in draft.rng.sample((_replace, _insert, _delete), k=draft.rng.randint(2, 3)):
        if lines is None:
            return None
        lines = operator(_Draft(lines, draft.syntax, draft.rng))
    return lines


def _run(draft: _Draft, *, least: int, most: int) -> tuple[int, int] | None:
    """A run of whole statements of one depth, with the deeper lines that belong to them."""
    starts = [at for at, line in enumerate(draft.lines) if line.strip() and _depth(line)]
    for _ in range(NUM_TRIES if starts else 0):
        start = draft.rng.choice(starts)
        end = start + draft.rng.randint(least, most)
        block = draft.lines[start:end]
        inside = all(not line.strip() or _depth(line) >= _depth(block[0]) for line in block)
        follows = end >= len(draft.lines) or _depth(draft.lines[end]) <= _depth(block[0])
        if len(block) >= least and inside and follows and block[-1].strip() and _is_even(block):
            return start, end
    return None


def _is_even(lines: Sequence[str]) -> bool:
    text = "".join(lines)
    return all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}"))


def _is_plain(line: str) -> bool:
    """Whether the line opens and closes nothing."""
    return bool(line.strip()) and _is_even([line]) and not line.rstrip().endswith((":", "{", ","))


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


_OPERATORS: dict[Kind, Callable[[_Draft], list[str] | None]] = {
    "replace": _replace,
    "insert": _insert,
    "delete": _delete,
    "import": _import,
    "rename": _rename,
    "move": _move,
    "wrap": _wrap,
    "several": _several,
}
