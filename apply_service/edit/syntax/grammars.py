"""Loads grammars on first use: source bytes in, tree-sitter tree out."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING

from apply_service.edit.syntax.symbol_rules import SymbolRules

if TYPE_CHECKING:
    from tree_sitter import Language, Tree

    from apply_service.edit.syntax.symbol_rules import Reader

# The parser calls back every hundred steps of its work, 0.01 times for a byte of real source and
# 0.016 times at most. Error recovery can take quadratic time, so parsing stops after so many calls,
# the same on every machine; where one step takes long, after this much time of its thread.
MAX_SOURCE_BYTES = 4_000_000
MIN_CALLS, CALLS_PER_BYTE = 3_000, 0.04
MAX_PARSE_S = 1.2
READ_BYTES = 65_536
# A thread's clock may cost as much as the parser's work between two of its calls.
CALLS_PER_LOOK = 16

# Nodes that hold statements, members or entries one after another, in the words of most grammars.
_CONTAINER = re.compile(
    r"(?:^|_)(?:block|body|program|module|source_file|compilation_unit|translation_unit|document"
    r"|statements|declarations|stylesheet|section|chunk)$|(?:declaration|field_declaration"
    r"|enumerator|declaration_or|template|spec)_list$"
)
# Sources that a grammar must not see: it would crash, or take too much memory or time.
MAX_OPEN_ANGLES = 2000
# Minified code: a megabyte of it takes 100 MB as a tree, and an edit by lines gains nothing.
MAX_LINE_BYTES = 100_000
_ANGLE_LANGUAGES = frozenset({"typescript", "tsx", "cpp"})
_HOSTILE: Mapping[str, re.Pattern[bytes]] = MappingProxyType(
    {
        # Its scanner writes past a buffer with 250 blocks open; two can begin at a column.
        "yaml": re.compile(rb"(?m)^[ \t?:-]{100}"),
        # What a run of these signs opens is looked for anew at each of them.
        "swift": re.compile(rb"#{1000}"),
        "scala": re.compile(rb"`{1000}"),
    }
)


@dataclass(frozen=True, slots=True)
class Traits:
    """The properties of one kind of node that the walk needs."""

    reader: Reader | None
    is_wrapper: bool
    is_leading: bool
    is_scope: bool
    is_open: bool
    is_leaf: bool
    is_container: bool


@dataclass(frozen=True, slots=True)
class Grammar:
    """A loaded grammar; `traits` are indexed by the kind id of named nodes.

    Threads may share it.
    """

    name: str
    language: Language
    traits: Mapping[int, Traits]

    def parse(self, source: bytes) -> Tree | None:
        """The tree of `source` (UTF-8), or None beyond the limits on size and work."""
        from tree_sitter import Parser

        if len(source) > MAX_SOURCE_BYTES:
            return None
        if _is_hostile(source, self.name):
            return None
        # Some scanners take NUL for the end of the text and then hardly move on.
        view = memoryview(source.replace(b"\0", b" "))
        pieces = [view]
        deadline, calls = time.thread_time() + MAX_PARSE_S, count(1)
        max_calls = MIN_CALLS + CALLS_PER_BYTE * len(source)

        def is_over(_offset: int, _has_error: bool) -> bool:
            call = next(calls)
            return call > max_calls or (
                call % CALLS_PER_LOOK == 0 and time.thread_time() > deadline
            )

        def read(offset: int, _point: object) -> memoryview | bytes:
            if offset >= len(view):
                return b""
            pieces.append(view[offset : offset + READ_BYTES])
            return pieces[-1]

        try:
            return Parser(self.language).parse(
                read,
                encoding="utf8",
                progress_callback=is_over,
            )
        except ValueError:  # the parser's word for "stopped by the callback"
            return None
        finally:
            # The parser keeps whatever it was given for ever; emptied, that is little.
            while pieces:
                pieces.pop().release()


@dataclass(frozen=True, slots=True)
class _Wheel:
    """The package of a grammar, and the name of its table in `grammar_rules.<rules>`."""

    module: str
    rules: str
    table: str
    function: str = "language"


_WHEELS: Mapping[str, _Wheel] = MappingProxyType(
    {
        "python": _Wheel("tree_sitter_python", "python", "PYTHON"),
        "javascript": _Wheel("tree_sitter_javascript", "ecmascript", "JAVASCRIPT"),
        "typescript": _Wheel(
            "tree_sitter_typescript", "ecmascript", "TYPESCRIPT", "language_typescript"
        ),
        "tsx": _Wheel("tree_sitter_typescript", "ecmascript", "TYPESCRIPT", "language_tsx"),
        "go": _Wheel("tree_sitter_go", "go", "GO"),
        "rust": _Wheel("tree_sitter_rust", "rust", "RUST"),
        "java": _Wheel("tree_sitter_java", "jvm", "JAVA"),
        "kotlin": _Wheel("tree_sitter_kotlin", "jvm", "KOTLIN"),
        "scala": _Wheel("tree_sitter_scala", "jvm", "SCALA"),
        "c": _Wheel("tree_sitter_c", "c_family", "C"),
        "cpp": _Wheel("tree_sitter_cpp", "c_family", "CPP"),
        "csharp": _Wheel("tree_sitter_c_sharp", "c_family", "CSHARP"),
        "ruby": _Wheel("tree_sitter_ruby", "scripting", "RUBY"),
        "php": _Wheel("tree_sitter_php", "scripting", "PHP", "language_php"),
        "lua": _Wheel("tree_sitter_lua", "scripting", "LUA"),
        "bash": _Wheel("tree_sitter_bash", "scripting", "BASH"),
        "swift": _Wheel("tree_sitter_swift", "scripting", "SWIFT"),
        "html": _Wheel("tree_sitter_html", "markup", "HTML"),
        "css": _Wheel("tree_sitter_css", "markup", "CSS"),
        "json": _Wheel("tree_sitter_json", "markup", "JSON"),
        "yaml": _Wheel("tree_sitter_yaml", "markup", "YAML"),
        "toml": _Wheel("tree_sitter_toml", "markup", "TOML"),
        "markdown": _Wheel("tree_sitter_markdown", "markup", "MARKDOWN"),
        "sql": _Wheel("tree_sitter_sql", "markup", "SQL"),
    }
)


@cache
def try_load_grammar(language: str) -> Grammar | None:
    """The grammar of a canonical language name; None if no installed package fits."""
    wheel = _WHEELS.get(language)
    if wheel is None:
        return None
    try:
        from tree_sitter import Language

        loaded = Language(getattr(import_module(wheel.module), wheel.function)())
    except (ImportError, AttributeError, ValueError):  # no wheel, another API, another ABI
        return None
    rules = getattr(
        import_module(f"apply_service.edit.syntax.grammar_rules.{wheel.rules}"), wheel.table
    )
    return Grammar(language, loaded, _traits(loaded, rules))


def _traits(language: Language, rules: SymbolRules) -> dict[int, Traits]:
    """One entry for each named node kind; plain kinds share one object."""
    traits: dict[int, Traits] = {}
    for kind_id in range(language.node_kind_count):
        kind = language.node_kind_for_id(kind_id)
        if kind is None or not language.node_kind_is_named(kind_id):
            continue
        traits[kind_id] = Traits(
            reader=rules.definitions.get(kind),
            is_wrapper=kind in rules.wrappers,
            is_leading=kind in rules.leading,
            is_scope=kind in rules.scopes,
            is_open=kind in rules.opens,
            is_leaf=kind in rules.leaves,
            is_container=kind in rules.containers or bool(_CONTAINER.search(kind)),
        )
    return traits


def _is_hostile(source: bytes, language: str) -> bool:
    """True if a parser of `language` must not read `source`; text rules apply instead."""
    if len(source) > MAX_LINE_BYTES and max(map(len, source.split(b"\n"))) > MAX_LINE_BYTES:
        return True
    pattern = _HOSTILE.get(language)
    if pattern is not None and pattern.search(source):
        return True
    # Open type arguments are copied one by one when the text ends: quadratic time and memory.
    return (
        language in _ANGLE_LANGUAGES and source.count(b"<") > source.count(b">") + MAX_OPEN_ANGLES
    )
