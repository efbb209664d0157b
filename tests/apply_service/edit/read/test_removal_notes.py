"""A note that a definition is gone is told from a comment by its names and its place."""

from __future__ import annotations

import time

import pytest

from apply_service.apply.conclusion import try_conclude_alone
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.planning.edit_plan import plan_edit
from apply_service.edit.read.marker_scan import MarkerScan
from apply_service.edit.read.original_index import OriginalIndex
from apply_service.edit.read.removal_notes import MAX_NOTES, note_names
from apply_service.edit.read.segment import SegmentLine
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.text.text_file import TextFile

NOTES = [
    ("// isInternational removed", ["isInternational"]),
    ("// cmd_poke removed", ["cmd_poke"]),
    ("// [handleDelete removed]", ["handleDelete"]),
    ("// (handleDelete deleted)", ["handleDelete"]),
    ("// <handleDelete dropped>", ["handleDelete"]),
    ("// removed handleDelete", ["handleDelete"]),
    ("# remove round_up and round_down", ["round_up", "round_down"]),
    ("// removed: foo, bar()", ["foo", "bar"]),
    ("// Removed the functions foo, bar, and baz.", ["foo", "bar", "baz"]),
    ("# deleted function foo", ["foo"]),
    ("// foo() is removed", ["foo"]),
    ("// handleDelete has been removed", ["handleDelete"]),
    ("// handleDelete: removed", ["handleDelete"]),
    ("// handleDelete (removed)", ["handleDelete"]),
    ("// REMOVED: handleDelete", ["handleDelete"]),
    ("// ... handleDelete removed ...", ["handleDelete"]),
    ("# --- parse_header removed ---", ["parse_header"]),
    ("# NOTE: `parse_header` removed, no longer needed", ["parse_header"]),
    ("# parse_header removed (unused)", ["parse_header"]),
    ("# _private and __init__ were deleted", ["_private", "__init__"]),
    ("# both foo & bar removed here", ["foo", "bar"]),
    ("# foo, foo removed", ["foo"]),
    ("-- carts table dropped", ["carts"]),
    ("/* .btn-primary removed */", [".btn-primary"]),
    ("<!-- nav removed -->", ["nav"]),
    ("{/* Footer component removed */}", ["Footer"]),
    ("// Store.clear and Tile::close removed", ["Store.clear", "Tile::close"]),
    ("// store->close(int count, char *name) removed", ["store.close"]),
    ("# empty? and save! removed", ["empty?", "save!"]),
    ("// remove the 'filters by memo' test", ["filters by memo"]),
    ('<!-- "Queries time out" section removed -->', ["Queries time out"]),
    ("// REMOVED: POST /shelves route", ["post /shelves"]),
    ("// `Delete /items/:id` handler removed", ["delete /items/:id"]),
]

COMMENTS = [
    "",
    "# removed",
    "# removed in 2.0",
    "// handleDelete removed in v2, use handlePurge",
    "# remove it once 3.11 is gone",
    "// remove trailing whitespace from every line",
    "# entries are removed from the cache by their age",
    "#parse_header removed",
    '"""parse_header removed"""',
    "parse_header removed",
    "save()  # parse_header removed",
    "items.remove(parse_header)",
    "# items.remove(parse_header)",
    "# " + "a, " * 100 + "b removed",
]


@pytest.mark.parametrize(("line", "names"), NOTES)
def test_a_note_names_what_is_gone(line: str, names: list[str]) -> None:
    assert list(note_names(f"  {line}")) == names


@pytest.mark.parametrize("line", COMMENTS)
def test_other_lines_name_nothing(line: str) -> None:
    assert note_names(line) == ()


ORIGINAL = """\
import math


class Store:
    def load(self):
        return self.path.read_text()

    def clear(self):
        self.path.write_text("")


def round_up(value, step):
    return math.ceil(value / step) * step


def round_down(value, step):
    return math.floor(value / step) * step


def clamp(value, low, high):
    return max(low, min(value, high))
""".splitlines()


def removed(update: str, original: list[str] = ORIGINAL, language: str = "python") -> list[str]:
    snippet = read_snippet(update.splitlines(), original, language=language)
    return [removal.name for removal in snippet.removals]


UP = "    return math.ceil(value / step) * step\n"
CLAMP = "def clamp(value, low, high):\n"


@pytest.mark.parametrize(
    ("update", "names"),
    [
        (f"# ...\n{UP}\n\n# round_down removed\n\n\n{CLAMP}# ...", ["round_down"]),
        (f"# ...\n{UP}# round_down removed\n{CLAMP}# ...", ["round_down"]),
        ("# ...\n# round_down and round_up removed\n# ...", ["round_down", "round_up"]),
        ("# round_down removed", ["round_down"]),
        ("import math\n\n# Store.clear removed\n# round_up removed", ["Store.clear", "round_up"]),
        (f"# ...\n\n# clear(), round_up() removed\n\n# ...\n{CLAMP}", ["clear", "round_up"]),
    ],
)
def test_a_note_between_the_neighbours_of_a_definition_removes_it(
    update: str, names: list[str]
) -> None:
    assert removed(update) == names


@pytest.mark.parametrize(
    ("path", "blocks", "note"),
    [
        (
            "a.test.js",
            (
                "it('opens', () => {\n  open();\n});\n",
                "it('shuts up', () => {\n  shut();\n});\n",
                "it('ends', () => {\n  end();\n});\n",
            ),
            "// remove the 'shuts up' test",
        ),
        (
            "routes.js",
            (
                "app.get('/a', (q, r) => {\n  r.send(1);\n});\n",
                "app.post('/a', (q, r) => {\n  r.add(2);\n});\n",
                "module.exports = app;\n",
            ),
            "// POST /a removed",
        ),
        (
            "a.md",
            ("## Start\n\nRun it.\n", "## In case of fire\n\nRun away.\n", "## End\n\nStop it.\n"),
            "<!-- section 'In case of fire' removed -->",
        ),
    ],
)
def test_titles_and_routes_are_names_too(
    path: str, blocks: tuple[str, str, str], note: str
) -> None:
    head, _, tail = blocks
    request = EditRequest(
        original=TextFile.from_text("\n".join(blocks)),
        update=f"{head}\n{note}\n\n{tail}",
        path=path,
        use_model="never",
    )
    outcome = try_conclude_alone(plan_edit(request, max_file_bytes=1 << 20))
    assert outcome is not None
    assert (outcome.merged, outcome.verdict.status) == (f"{head}\n{tail}", "applied")


@pytest.mark.parametrize(
    "update",
    [
        f"# ...\n{UP}\n\n# clamp removed\n\n\n{CLAMP}# ...",
        f"# ...\n{CLAMP}# ...\n\n# round_down removed\n",
        f"# ...\n{UP}\n\n# round_down and round_off removed\n\n\n{CLAMP}# ...",
        f"# ...\n{UP}\n\n# Tile.round_down removed\n\n\n{CLAMP}# ...",
        f"# ...\n{UP}\n\n# math removed\n\n\n{CLAMP}# ...",
        f"# ...\n{UP}\n\n# value removed\n\n\n{CLAMP}# ...",
    ],
)
def test_a_name_that_stands_elsewhere_or_nowhere_makes_a_comment(update: str) -> None:
    assert removed(update) == []


def test_a_definition_of_the_update_is_not_gone() -> None:
    new = "def round_down(value, step=1):\n    return value\n"
    assert removed(f"# ...\n{UP}\n\n# round_down removed\n\n\n{new}\n\n{CLAMP}# ...") == []
    other = "class Tile:\n    def clear(self):\n        pass\n"
    update = f"# ...\n    # Store.clear removed\n\n\n{other}\n\ndef round_up(value, step):\n# ..."
    assert removed(update) == ["Store.clear"]


def test_a_note_in_a_longer_comment_or_above_new_code_is_text() -> None:
    assert removed(f"# ...\n{UP}\n\n# Less is more:\n# round_down removed\n\n\n{CLAMP}# ...") == []
    assert removed(f"# ...\n{UP}\n\n# round_down removed\nx = 1\n\n\n{CLAMP}# ...") == []
    assert removed(f"# ...\n{UP}\n\n# round_down removed\n# for good\n\n\n{CLAMP}# ...") == []
    assert removed(f"# ...\n{UP}\n\n# round_down removed\n# and removed\n\n\n{CLAMP}#...") == []


def test_a_note_of_the_original_is_text() -> None:
    original = [*ORIGINAL[:17], "# round_down removed", *ORIGINAL[17:]]
    assert removed(f"# ...\n{UP}\n\n# round_down removed\n{CLAMP}# ...", original) == []


def test_a_line_that_stands_elsewhere_does_not_move_a_note() -> None:
    added = "def nearest(value, step):\n    x = 1\n    return max(low, min(value, high))\n"
    update = (
        f"# ...\ndef round_up(value, step):\n{UP}\n\n{added}\n\n# round_down removed\n\n\n# ..."
    )
    assert removed(update) == ["round_down"]


def test_methods_are_called_by_their_own_name() -> None:
    original = [
        "func (s *Server) Open() error {",
        "\treturn s.open()",
        "}",
        "",
        "func (s *Server) Close() error {",
        "\treturn s.close()",
        "}",
    ]
    assert removed("// ...\n\treturn s.open()\n}\n\n// Close removed", original, "go") == ["Close"]
    assert removed("// ...\n// Server.Close removed", original, "go") == ["Server.Close"]
    assert removed("// ...\n// Store.Close removed", original, "go") == []


def test_a_definition_that_no_single_line_shows_has_a_name_too() -> None:
    original = ["static int cmd_peek(int argc)", "{", "    return 1;", "}", ""]
    original += ["static int cmd_poke(int argc)", "{", "    return 2;", "}"]
    assert removed("// ...\n    return 1;\n}\n\n// cmd_poke removed", original, "c") == ["cmd_poke"]


def test_only_lazy_updates_have_notes() -> None:
    update = "<<<<<<< SEARCH\n    return 1\n=======\n# round_down removed\n>>>>>>> REPLACE"
    original = [*ORIGINAL, "    return 1"]
    assert removed(update, original) == []
    diff = f"@@ -12,2 +12,3 @@\n {UP}+# round_down removed\n \n"
    assert removed(diff) == []


def test_thousands_of_notes_end_quickly() -> None:
    notes = ["# " + ", ".join(["round_up", "round_down"] * 9) + " removed", "x = 1", "# ..."] * 3000
    lines = [SegmentLine(text, number) for number, text in enumerate(notes, start=1)]
    started_at = time.perf_counter()
    markers = MarkerScan(OriginalIndex(ORIGINAL), language="python").scan(lines)
    assert sum(marker is not None and marker.kind == "remove" for marker in markers) <= MAX_NOTES
    assert time.perf_counter() - started_at < 10


@pytest.mark.parametrize(
    "piece", ["a and ", "- ", "=-", "the ", "a, ", "(", "a.b-", "is now ", "it's ", "remove &"]
)
def test_a_hostile_comment_is_read_quickly(piece: str) -> None:
    line = "// removed " + piece * 200
    started_at = time.perf_counter()
    for _ in range(100):
        note_names(line[:200])
        note_names(line[:190] + " removed!")
    assert time.perf_counter() - started_at < 2
