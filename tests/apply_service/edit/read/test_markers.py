"""Markers are recognised as agents write them, and code that looks like one stays code."""

from __future__ import annotations

import time

import pytest

from apply_service.edit.read.markers import (
    Marker,
    MarkerReader,
    is_listing,
    is_marker,
    parse_marker,
    split_segments,
)

KEEP_MARKERS = [
    "// ... existing code ...",
    "# ... existing code ...",
    "-- ... existing code ...",
    "% ... existing code ...",
    "; ... existing code ...",
    ";; ... existing code ...",
    "/* ... existing code ... */",
    "/** ... existing code ... */",
    "<!-- ... existing code ... -->",
    "{/* ... existing code ... */}",
    "{# ... existing blocks ... #}",
    "{{!-- ... existing code ... --}}",
    "(* ... existing code ... *)",
    "--[[ ... existing code ... ]]",
    '""" ... existing code ... """',
    "''' ... existing code ... '''",
    "' ... existing code ...",
    "! ... existing code ...",
    "REM ... existing code ...",
    "    // ... existing code ...",
    "\t# ... existing code ...   ",
    "//...existing code...",
    "// ...existing code...",
    "#...existing code...",
    "// … existing code …",
    "// .... existing code ....",
    "// ... rest of code ...",
    "// ... rest of the code remains the same ...",
    "// ... rest of the file ...",
    "// ... the rest of the methods stay the same ...",
    "// rest of the code",
    "// Rest of the file remains unchanged",
    "// ... keep existing code",
    "// ... keep fooFunction ...",
    "// ... keep calculateTotalFunction ...",
    "// keep existing code",
    "// Keep the rest of the function as is",
    "// ... code remains the same",
    "// code remains unchanged",
    "// ... existing imports ...",
    "// ... existing methods ...",
    "// ... existing variants",
    "// ... existing matches ...",
    "// ... existing logics ...",
    "# ... same ...",
    "# ... (same as before) ...",
    "# ... unchanged ...",
    "# unchanged",
    "# (unchanged)",
    "// no changes here",
    "// ... other methods ...",
    "// ... imports ...",
    "// ... previous code ...",
    "// ... remaining code unchanged ...",
    "// existing code...",
    "// existing code ...",
    "// Existing imports...",
    "// other methods...",
    "# ...",
    "#...",
    "//...",
    "// ...",
    "-- ...",
    "/* ... */",
    "<!-- ... -->",
    "{/* ... */}",
    "# …",
    "…",
    "… existing code …",
    "... existing code ...",
    "...existing code...",
    "[... existing code ...]",
    "UNCHANGED CODE",
    " * ... existing documentation ...",
    "- ... existing items ...",
    "// [... existing code ...]",
    "// <... existing code ...>",
    "// --- existing code ---",
    "{{ edit_1 }}",
    "// {{ edit_2 }}",
    "# ... rest of class ...",
    "# ... Member class unchanged ...",
    "// ... existing StationStore interface ...",
]

TEXTS = [
    "",
    "   ",
    "...",
    "    ...",
    "def f(): ...",
    "x = ...",
    "...,",
    "...rest",
    "...existing,",
    "...existingCode,",
    "...props}",
    "  ...(cond ? existing : {}),",
    "function f(...rest) {",
    "const { a, ...rest } = props;",
    "Tuple[int, ...]",
    '"""..."""',
    '"""Return the existing code."""',
    "'''...'''",
    "rest of code",
    "existing code",
    "unchanged",
    "#unchanged",
    "#rest-of-code {",
    "#existing code",
    "--existing-code: 1px;",
    "--unchanged",
    "--rest",
    ".same-as-before {",
    "%unchanged",
    "'unchanged'",
    "'rest of the code'",
    "'... existing code ...',",
    '"... existing code ...",',
    'marker = "// ... existing code ..."',
    "git diff main...feature",
    "echo ...",
    "for f in ...; do",
    "/* same */",
    "// keep trying until it works...",
    "# loading ...",
    "# Loading the existing users...",
    "// same as above",
    "# returns the existing connection",
    "// Existing users are migrated here",
    "# The rest of the arguments are passed on",
    "# Compute the rest of the digits",
    "// wait ... then retry",
    "# TODO: ...and the tests",
    "#!/bin/sh",
    "#include <rest>",
    "# type: ignore",
    "-- keep this index in step with the model",
    "; keep the stack aligned",
    "// keep existing behaviour for callers that pass None",
    "SELECT ... FROM t",
    "// remove trailing whitespace from every line",
    "# remove it once 3.11 is gone",
    "<p>...</p>",
    "- ...",
    "* ...",
    "key: ...",
    "{{ edit }}",
    "{{ name_1 }}",
    "{{ edit_1 }} years",
    "---",
    "--- # a second document",
    "***",
    "| ... | rest |",
    "1. The rest of the code ...",
    "And so on, the rest remains the same...",
    "> ... existing code",
    "--rest-of-code: 0;",
    "@import '...existing.css';",
    "SELECT * FROM existing -- keep the index",
    "rm -rf ./*  # ...and the rest",
    "fn f(..., rest: u8)",
    "case ...:",
    "match x { .. => existing }",
    "for (const x of [...existing]) {",
    "}, ...rest);",
    "[...existing, code]",
    "# existing code is kept in sync by hand",
    "# keep in sync with the other file",
]


@pytest.mark.parametrize("line", KEEP_MARKERS)
def test_keep_markers_are_recognised(line: str) -> None:
    assert parse_marker(line) == Marker("keep")


@pytest.mark.parametrize("line", TEXTS)
def test_look_alikes_are_text(line: str) -> None:
    marker = parse_marker(line)
    assert marker is None or marker.kind == "remove"
    assert not is_marker(line, ["x = 1"])


def test_what_stands_in_the_original_is_text() -> None:
    original = ["x = 1", "    # ... existing code ...", "# ..."]
    assert not is_marker("# ... existing code ...", original)
    assert not is_marker("# ...", original)
    assert is_marker("// ... existing code ...", original)


@pytest.mark.parametrize(
    "line",
    [
        "// remove parseHeader",
        "# remove parse_header",
        "# removed: parse_header",
        "// delete the function parseHeader()",
        "# remove parse_header function",
        "# Remove the method Reader.parse_header",
        "<!-- remove parseHeader -->",
        "// parseHeader() was removed",
        "# function parse_header removed",
        "# the parse_header function has been deleted here",
        "# dropped parse_header",
    ],
)
def test_removal_directives_name_something_of_the_original(line: str) -> None:
    original = ["def parse_header(): ...", "function parseHeader() {}"]
    marker = MarkerReader(original).read(line)
    assert marker is not None
    assert marker.kind == "remove"
    (name,) = marker.names
    assert name.lower().replace("_", "").endswith("parseheader")
    assert not is_marker(line, ["def other(): ..."])


@pytest.mark.parametrize(
    "original", [["LIMIT = 10"], ["import LIMIT"], ['  "LIMIT": 1,'], ["export const LIMIT = 3;"]]
)
def test_a_directive_may_name_what_is_bound_or_imported(original: list[str]) -> None:
    assert is_marker("# remove LIMIT", original)


@pytest.mark.parametrize(
    "original", [["print(LIMIT)"], ["# LIMIT is ten"], ["if x == LIMIT:"], ["LIMITS = 3"], []]
)
def test_a_directive_may_not_name_what_is_only_used(original: list[str]) -> None:
    assert not is_marker("# remove LIMIT", original)


def test_a_directive_may_name_a_selector() -> None:
    original = [".card h2 {", "  margin: 0;", "}"]
    assert is_marker("/* remove .card h2 */", original)
    assert is_marker("/* Remove the `.card h2` rule */", original)
    assert not is_marker("/* remove .card h */", original)


@pytest.mark.parametrize(
    ("line", "is_inline"),
    [
        ("const o = { port: 1, // ... existing ... }", True),
        ("{ port: // ... existing ..., ssl: true }", True),
        ("call(a, /* ... existing arguments ... */)", True),
        ("def f(self): ...  # ... existing code ...", True),
        ("x = 1  # ... and so on", False),
        ('print("# ... existing code ...")', False),
        ("url = 'http://... existing ...'", False),
        ("range(0, 10)  # ...", False),
        ("foo(a, b)", False),
    ],
)
def test_inline_markers(line: str, is_inline: bool) -> None:
    assert MarkerReader([]).has_inline_marker(line) is is_inline


LISTINGS = [
    "# ... fixtures and TestAdding, TestRemoving, TestCoupons ...",
    "// ... rest of the includes, TileKey and Tile unchanged ...",
    "/* ... helpers ... */",
    "<!-- ... header and nav ... -->",
    "{/* ... header and nav ... */}",
    "-- ... users, carts and orders ...",
    "; ... frame setup ...",
    "    // … toGrams(), toMillimetres() …",
    "//...toGrams…",
    "#...fixtures...",
    "// [... reset, clear ...]",
    "# (... `load` to `save` ...)",
    "# ... remove, discard and pop ...",
    "# .... fixtures ....",
    "# ... " + "test_case_of_shipping, " * 12 + "test_last ...",
]

NO_LISTINGS = [
    "",
    "...",
    "    ...",
    "# ...",
    "// ... ...",
    "# see foo ... bar",
    "# ... and then the queue is empty",
    "# and so on ...",
    "# [...] the old form [...]",
    "# (...) or (...)",
    "# ..., -2, -1, 0, 1, 2, ...",
    "# ...: any number of values ...",
    "// ... handleDelete removed ...",
    "# ... the cache is gone ...",
    "# ... remove parse_header ...",
    "...args, ...rest",
    "...fixtures...",
    "[...first, ...last]",
    "f(...first, ...)",
    "def f(x: int = ...) -> Callable[..., int]: ...",
    "x = 1  # ... fixtures ...",
    '""" ... fixtures ... """',
    '""" ... fixtures ... ',
    "'... fixtures ...',",
    " * ... fixtures ...",
    "- ... fixtures ...",
    "# " + "... fixtures " * 40 + "...",
]


@pytest.mark.parametrize("line", LISTINGS)
def test_dots_at_both_ends_of_a_comment_make_a_listing(line: str) -> None:
    assert is_listing(line)
    assert MarkerReader(["x = 1"]).is_listing(line)
    assert not MarkerReader(["x = 1", "  " + line.strip()]).is_listing(line)


@pytest.mark.parametrize("line", NO_LISTINGS)
def test_dots_elsewhere_make_no_listing(line: str) -> None:
    assert not is_listing(line)


def test_segments_are_cut_at_listings() -> None:
    update = ["a", "# ... fixtures and b ...", "c"]
    assert split_segments(update, ["z"]) == [["a"], ["c"]]
    assert split_segments(update, update) == [update]


def test_segments_are_cut_at_markers() -> None:
    update = ["a", "# ... existing code ...", "", "# ...", "b", "", "c", "x(1, # ... rest ...)"]
    assert split_segments(update, ["z"]) == [["a"], ["b", "", "c"]]
    assert split_segments(update, ["# ..."]) == [["a"], ["", "# ...", "b", "", "c"]]
    assert split_segments([], ["z"]) == []
    assert split_segments(["# ..."], []) == []


def test_segments_keep_a_removal_directive_out() -> None:
    update = ["def a():", "# remove old", "def b():"]
    assert split_segments(update, ["old = 1"]) == [["def a():"], ["def b():"]]


def test_ten_thousand_hostile_lines_end_quickly() -> None:
    lines = ["# " + "... existing " * 12, "..." + " " * 120, "# " + "a " * 70 + "..."] * 3000
    assert split_segments(lines, ["x"]) is not None


@pytest.mark.parametrize("inner", ["." * 390, "... a" + "." * 380 + "b", "... " * 95, ".a" * 190])
def test_a_hostile_listing_is_read_quickly(inner: str) -> None:
    started_at = time.perf_counter()
    for _ in range(1000):
        is_listing(f"# {inner}")
        is_listing(f"# ... {inner} ...")
    assert time.perf_counter() - started_at < 5
