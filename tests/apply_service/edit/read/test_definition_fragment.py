"""Which lines of a file the definitions of a marker-less update take the place of."""

from __future__ import annotations

import pytest

from apply_service.edit.read.definition_fragment import DefinitionFragment, Replacement
from apply_service.edit.syntax.definitions import find_definitions
from apply_service.edit.syntax.syntax import parse, parse_fragment
from apply_service.edit.text.line_index import LineIndex

SHAPES = """\
import math


class Circle:
    def __init__(self, radius):
        self.radius = radius

    @property
    def area(self):
        return math.pi * self.radius**2

    def scale(self, factor):
        self.radius *= factor


class Square:
    def __init__(self, side):
        self.side = side

    @property
    def area(self):
        return self.side**2


def largest(shapes):
    shapes = sorted(shapes, key=area_of)
    log(shapes)
    return shapes[-1]


def area_of(shape):
    return shape.area
"""


AREA = "    @property\n    def area(self):\n"
AREA_OF = "def area_of(shape):\n    return 1\n"


def replaced(update: str, original: str = SHAPES, language: str = "python") -> list[Replacement]:
    """The replacements of one update."""
    lines, texts = original.splitlines(), update.splitlines()
    tree = parse(lines, language)
    return DefinitionFragment(
        texts,
        LineIndex(lines),
        symbols=find_definitions(lines) if tree is None else tree.symbols,
        shown=find_definitions(texts) if tree is None else parse_fragment(texts, language),
        language=None if tree is None else language,
    ).replacements()


def spans(found: list[Replacement]) -> list[tuple[int, int]]:
    """The lines that give way, counted from 1, both included."""
    return [(one.old + 1, one.old_end) for one in found]


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ("def area_of(shape, scale=1):\n    return shape.area * scale", [(31, 32)]),
        ("    def scale(self, by):\n        self.radius *= by\n", [(12, 13)]),
        (AREA_OF + "\n\ndef largest(shapes):\n    return 2\n", [(31, 32), (25, 28)]),
        ("class Square:\n    def __init__(self, side=1):\n        self.side = side\n", [(17, 18)]),
        (AREA + "        return 2 * self.side**2 / 2\n", []),
        (AREA + "        check(self)\n        return self.side**2\n", [(20, 22)]),
        ("def area(self):\n    return 0\n", []),
        ("def smallest(shapes):\n    return shapes[0]\n", []),
        ("check(3)\n\n\n" + AREA_OF, []),
        (AREA_OF + "\n\n" + AREA_OF, []),
    ],
    ids=[
        "another signature",
        "a method",
        "against the order",
        "in the header of its class",
        "one of two",
        "one of two, by its line",
        "one of two without its indentation",
        "a new one",
        "behind a statement",
        "twice",
    ],
)
def test_a_definition_takes_the_place_of_the_only_one_of_its_name(
    update: str, expected: list[tuple[int, int]]
) -> None:
    assert spans(replaced(update)) == expected


def test_a_new_definition_goes_with_the_one_before_it() -> None:
    smallest = "def smallest(shapes):\n    return shapes[0]\n"
    (one,) = replaced(AREA_OF + "\n\n" + smallest)
    assert (one.new, one.new_end) == (0, 6)
    assert spans([one]) == [(31, 32)]
    assert replaced(smallest + "\n\n" + AREA_OF) == []


@pytest.mark.parametrize(
    ("body", "is_open"),
    [
        ("    shapes = list(shapes)\n", True),
        ('    """Find it."""\n    shapes = sorted(shapes)\n', True),
        ("    if not shapes:\n        return None\n", True),
        ("    return max(shapes)\n", False),
        ("    return shapes[-1]\n    # the last one\n", False),
        ("    shapes = list(shapes)\n    log(shapes)\n    return shapes[0]\n", False),
    ],
)
def test_a_definition_may_go_on_unless_its_end_is_shown(body: str, is_open: bool) -> None:
    (one,) = replaced("def largest(shapes):\n" + body)
    assert one.is_open == is_open


def test_lines_above_a_header_stay_unless_the_update_shows_others() -> None:
    original = "# How large it is.\n# In metres.\n@cache\ndef size(): ...\n"
    for lead, expected in (
        ("", [(4, 4)]),
        ("@cache\n", [(3, 4)]),
        ("# How large it may be.\n@cache\n", [(1, 4)]),
        ("# How large it may be.\n", []),
        ("@cached\n", []),
    ):
        assert spans(replaced(lead + "def size(): return 1\n", original)) == expected, lead


def test_without_a_grammar_brackets_tell_that_a_definition_is_whole() -> None:
    original = "proc start {\n  run a\n}\n\nfunction stop() {\n  kill a\n}\n"
    whole = "function stop() {\n  kill -9 a\n}\n"
    assert spans(replaced(whole, original, "tcl")) == [(5, 7)]
    assert replaced(whole.replace("}", ""), original, "tcl") == []


STORE = """\
interface Store {
    Task<int> Count(Token token = default);
}

class SqlStore : Store
{
    public async Task<int> Count(Token token = default)
    {
        var open = await Open(token);
        return open.Count;
    }
}
"""


def test_what_has_a_body_is_not_what_an_interface_declares() -> None:
    body = "    public Task<int> Count(Token token = default)\n    {\n        return 1;\n    }\n"
    assert spans(replaced(body, STORE, "csharp")) == [(7, 11)]
    declared = "    Task<long> Count(Token token = default);\n"
    assert spans(replaced(declared, STORE, "csharp")) == [(2, 2)]


SQL = """\
CREATE FUNCTION consumption(p_id integer) RETURNS numeric AS $$
    SELECT round(100 * sum(r.liters) / (
        SELECT sum(t.distance)
        FROM trips t
        WHERE t.vehicle_id = p_id
    ), 1)
    FROM refuelings r
    WHERE r.vehicle_id = p_id;
$$ LANGUAGE sql STABLE;
"""


@pytest.mark.parametrize("num_left_out", range(4))
def test_a_sql_function_may_break_off_at_a_bracket_or_semicolon_of_its_body(
    num_left_out: int,
) -> None:
    lines = SQL.replace("SELECT sum(t.distance)", "SELECT nullif(sum(t.distance), 0)").splitlines()
    update = "\n".join(lines[: len(lines) - num_left_out])
    found = replaced(update, SQL, "sql")
    assert [one.is_open for one in found] == [num_left_out > 0]
