"""Cases of a file and of a package, checked.

The new file has no more errors than the old one, and its lines are those of the snippet in order.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from tree_sitter import Node

from apply_service.evaluate.cases.case_file import Case
from training.generated.small_edits.branches import arm, branch
from training.generated.small_edits.edit import Edit, Source
from training.generated.small_edits.headers import decorator, go_import, imported, parameter
from training.generated.small_edits.members import entry, struct_field, variant
from training.generated.small_edits.places import (
    DATA,
    GRAMMARS,
    Block,
    Item,
    find_blocks,
    indent_of,
    num_errors,
    parse,
    rows_of,
)
from training.generated.small_edits.releases import PinnedPackage, language_of
from training.generated.small_edits.snippet import write_snippet
from training.generated.small_edits.statements import (
    assertion,
    early_return,
    guard,
    last_statement,
    log,
)

MAX_A_FILE, MAX_A_PACKAGE = 6, 120
# Files of a package that are looked at, for each language.
MAX_FILES, MAX_FILES_OF_DATA = 45, 150
MAX_A_KIND, MAX_A_KIND_OF_DATA, MAX_TRIES = 2, 6, 8
MIN_ROWS_OF_DATA = 5
MIN_ROWS, MAX_ROWS, MAX_COLUMNS, MAX_SNIPPET_ROWS = 10, 1200, 240, 90
# Files that speak of left-out code are no good for snippets with markers.
_MARKER_LIKE = re.compile(
    r"^\s*(?:#|//|--|/\*|\*)?\s*(?:\.\.\.|…|\[existing|\(unchanged|<existing)"
)

_Maker = Callable[[Source, Block, random.Random], "Edit | None"]
MAKERS: tuple[tuple[_Maker, tuple[str, ...]], ...] = (
    (guard, ("function",)),
    (early_return, ("function",)),
    (log, ("function",)),
    (assertion, ("function",)),
    (last_statement, ("function",)),
    (parameter, ("function",)),
    (decorator, ("function",)),
    (branch, ("chain",)),
    (arm, ("switch",)),
    (variant, ("enum", "constants")),
    (struct_field, ("class", "struct")),
    (entry, ("entries",)),
    (go_import, ("imports",)),
)


def package_cases(package: PinnedPackage, files: Iterable[tuple[str, str]]) -> list[Case]:
    """At most `MAX_A_PACKAGE` cases of a package, of all kinds and languages in turn."""
    groups: dict[str, list[Case]] = {}
    seen: set[str] = set()
    num_files = Counter[str]()
    in_order = sorted(files, key=lambda file: hashlib.sha256(file[0].encode()).digest())
    for path, text in in_order:
        language = language_of(path)
        most = MAX_FILES_OF_DATA if language in DATA else MAX_FILES
        if text in seen or num_files[language] == most:
            continue
        seen.add(text)
        num_files[language] += 1
        for case in file_cases(package, path, text):
            groups.setdefault(str(case.style), []).append(case)
    for cases in groups.values():
        cases.sort(key=lambda case: case.id)
    return list(islice(_in_turn(groups), MAX_A_PACKAGE))


def _in_turn(groups: dict[str, list[Case]]) -> Iterator[Case]:
    """The first case of each group, then the second ones, and so on."""
    names = sorted(groups)
    for turn in range(max(map(len, groups.values()), default=0)):
        yield from (groups[name][turn] for name in names if turn < len(groups[name]))


def file_cases(package: PinnedPackage, path: str, text: str) -> list[Case]:
    """At most `MAX_A_FILE` cases of one file, of as many kinds as it has."""
    language = language_of(path)
    source = read_source(path, text, language)
    if source is None:
        return []
    rng = random.Random(f"small:{package.name}:{path}")
    num_errors_old = num_errors(parse(text, language))
    by_kind: dict[str, list[Case]] = {}
    most = MAX_A_KIND_OF_DATA if language in DATA else MAX_A_KIND
    for edits in _edits_by_kind(source, rng):
        cases = (_checked_case(package, source, edit, num_errors_old, rng) for edit in edits)
        for case in islice((case for case in cases if case is not None), most):
            by_kind.setdefault(str(case.style), []).append(case)
    kinds = rng.sample(sorted(by_kind), len(by_kind))
    return list(
        islice(_in_turn({f"{kinds.index(kind):02}": by_kind[kind] for kind in kinds}), MAX_A_FILE)
    )


def _edits_by_kind(source: Source, rng: random.Random) -> Iterator[Iterator[Edit]]:
    """For each kind, some edits in blocks by chance."""
    for maker, kinds in MAKERS:
        blocks = [block for block in source.blocks if block.kind in kinds]
        picked = rng.sample(blocks, min(len(blocks), MAX_TRIES))
        made = (maker(source, block, rng) for block in picked)
        yield (edit for edit in made if edit is not None)
    if source.language not in DATA:
        once = imported(source, rng)
        yield iter([once] if once is not None else [])


def _checked_case(
    package: PinnedPackage, source: Source, edit: Edit, num_errors_old: int, rng: random.Random
) -> Case | None:
    """The case of an edit, or None if its place is unclear or the new file is not well-formed."""
    lines = source.lines
    new = [*lines[: edit.start], *edit.new, *lines[edit.end :]]
    if _is_known(source, edit):
        return None
    made = write_snippet(source, edit, package.part, rng)
    if made is None or len(made.lines) > MAX_SNIPPET_ROWS or len(made.shown) == len(made.lines):
        return None
    text = "\n".join(new) + "\n"
    if not is_in_order(made.shown, new):
        return None
    if num_errors(parse(text, source.language)) > num_errors_old:
        return None
    told = "\0".join((package.name, source.path, edit.kind, text, *made.lines))
    return Case(
        id=f"small-{hashlib.sha256(told.encode()).hexdigest()[:16]}",
        path=source.path,
        original="\n".join(lines) + "\n",
        update="\n".join(made.lines) + "\n",
        expected=text,
        style=f"{edit.kind}/{source.language}",
        language=source.language,
        package=package.name,
    )


def _is_known(source: Source, edit: Edit) -> bool:
    """Whether the block has the new code already, or there is none."""
    block, lines = edit.around, source.lines
    around = lines if block is None else lines[block.start : block.stop]
    old = lines[edit.start : edit.end]
    new = [line for line in edit.new if line not in old and re.search(r"\w{3}", line)]
    return not new or new[0].strip() in {line.strip() for line in around}


def is_in_order(shown: Iterable[str], lines: Iterable[str]) -> bool:
    """Whether all lines that are shown are in a file, in their order."""
    rest = iter(lines)
    return all(line in rest for line in shown)


def read_source(path: str, text: str, language: str) -> Source | None:
    """A file with its blocks, or None if it is not fit for edits."""
    lines = text.removesuffix("\n").split("\n")
    fewest = MIN_ROWS_OF_DATA if language in DATA else MIN_ROWS
    if not fewest <= len(lines) <= MAX_ROWS or any(_MARKER_LIKE.match(line) for line in lines):
        return None
    ends_well = text.endswith("\n") and not text.endswith("\n\n") and "\r" not in text
    if not ends_well or max(map(len, lines)) > MAX_COLUMNS:
        return None
    tree = parse(text, language)
    imports = list(_imports(tree.root_node, language, lines))
    return Source(
        path, language, lines, find_blocks(tree, lines, language), imports, _unit_of(lines)
    )


def _unit_of(lines: Sequence[str]) -> str:
    if sum(line.startswith("\t") for line in lines) > len(lines) / 8:
        return "\t"
    return "  " if any(indent_of(line) == "  " for line in lines) else "    "


def _imports(root: Node, language: str, lines: Sequence[str]) -> Iterator[Item]:
    """The imports at the margin, each on rows of its own."""
    starts = {"javascript": ("import", "const"), "lua": ("local",), "ruby": ("require",)}
    last_end = 0
    for node in root.named_children:
        start, end = node.start_point, rows_of(node)[1]
        is_import = node.type in GRAMMARS[language].imports and not start.column
        first = lines[start.row]
        if not is_import or not first.startswith(starts.get(language, "")) or start.row < last_end:
            continue
        if node.type in ("lexical_declaration", "variable_declaration") and (
            "require" not in first or end != start.row + 1
        ):
            continue
        last_end = end
        yield Item(start.row, end, node.type, node)
