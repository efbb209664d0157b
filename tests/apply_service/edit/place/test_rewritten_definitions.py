"""Definitions, keys and values that an update writes anew take the place of the old ones."""

from __future__ import annotations

import pytest

from apply_service.edit.place.merge import plan_merge, splice
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.syntax.syntax import parse

JAVA = """\
class CartTest {
    @Test
    void rejectsAnUnknownCoupon() {
        when(coupons.lookup("NOPE")).thenReturn(empty());
        assertThrows(UnknownCoupon.class, () -> service.apply("NOPE"));
    }

    @Test
    void mergesCarts() {
        service.merge(guest, user);
    }
}
"""
GO = """\
package fn

func Sum(args []Value) (Value, error) {
\treturn add(args)
}

func Min(args []Value) (Value, error) {
\tif len(args) == 0 {
\t\treturn Value{}, ErrArity
\t}
\tbest := math.Inf(1)
\tfor _, arg := range args {
\t\tbest = math.Min(best, arg.Num)
\t}
\treturn number(best), nil
}

func Upper(args []Value) (Value, error) {
\treturn text(strings.ToUpper(args[0].Text)), nil
}
"""
SCALA = """\
class Pipeline(sink: Sink) {
  def temperature(readings: Seq[Reading]): Option[Double] = {
    val values = readings.collect { case Temperature(_, celsius) => celsius }
    if (values.isEmpty) None else Some(values.sum / values.size)
  }

  def latest(readings: Seq[Reading]): Option[Reading] =
    readings.sortBy(_.at).lastOption

  def count(readings: Seq[Reading]): Int =
    readings.size
}
"""
PACKAGE = """\
{
  "main": "./index.js",
  "engines": {
    "node": ">=18"
  },
  "devDependencies": {
    "@types/node": "^18.19.0",
    "@types/vscode": "^1.84.0",
    "eslint": "^8.54.0"
  }
}
"""
SETTINGS = """\
{
  "properties": {
    "units": {
      "type": "string",
      "description": "Units of heights."
    },
    "speed": {
      "type": "number",
      "description": "Units of speeds."
    }
  }
}
"""
LOOP = """\
def draw(count):
    digits = ""
    for _ in range(count):
        digits += str(random.randint(0, 9))
    return digits
"""


def merged(original: str, update: str, language: str) -> str:
    lines = original.splitlines()
    snippet = read_snippet(update.splitlines(), lines, language=language)
    plan = plan_merge(lines, snippet, language=language)
    assert plan.best is not None
    return "\n".join(splice(lines, plan.best)) + "\n"


def test_new_attributes_take_the_place_of_the_old_ones() -> None:
    method = """\
    @ParameterizedTest
    @ValueSource(strings = {"NOPE", ""})
    void rejectsAnUnknownCoupon(String code) {
        when(coupons.lookup(code)).thenReturn(empty());
        assertThrows(UnknownCoupon.class, () -> service.apply(code));
    }
"""
    start, end = (
        JAVA.index("    @Test\n    void rejects"),
        JAVA.index("\n    @Test\n    void merges"),
    )
    assert merged(JAVA, f"// ...\n\n{method}\n// ...\n", "java") == (
        JAVA[:start] + method + JAVA[end:]
    )


def test_a_definition_does_not_stand_twice_beside_a_new_one() -> None:
    new = """\
func fold(args []Value, start float64, combine func(a, b float64) float64) (Value, error) {
\tif len(args) == 0 {
\t\treturn Value{}, ErrArity
\t}
\tbest := start
\tfor _, arg := range args {
\t\tbest = combine(best, arg.Num)
\t}
\treturn number(best), nil
}

func Min(args []Value) (Value, error) {
\treturn fold(args, math.Inf(1), math.Min)
}

"""
    start, end = GO.index("func Min"), GO.index("func Upper")
    update = f"// ...\n\n{new}func Upper(args []Value) (Value, error) {{\n// ...\n"
    assert merged(GO, update, "go") == GO[:start] + new + GO[end:]


def test_a_body_without_braces_takes_the_place_of_one_with_them() -> None:
    new = """\
  def temperature(readings: Seq[Reading]): Option[Double] =
    average(readings.collect { case Temperature(_, celsius) => celsius })
"""
    start, end = SCALA.index("  def temperature"), SCALA.index("\n  def latest")
    assert merged(SCALA, f"{new}\n  // ...\n", "scala") == SCALA[:start] + new + SCALA[end:]


def test_definitions_without_braces_end_before_the_next_one() -> None:
    tree = parse(SCALA.splitlines(), "scala")
    assert tree is not None
    spans = {symbol.name: (symbol.header, symbol.end) for symbol in tree.symbols}
    assert spans["latest"] == (6, 8)
    assert spans["count"] == (9, 11)


def test_keys_alone_are_found_where_they_stand() -> None:
    new = '    "@types/node": "^20.11.0",\n    "@types/vscode": "^1.90.0",\n'
    old = '    "@types/node": "^18.19.0",\n    "@types/vscode": "^1.84.0",\n'
    update = f'  "engines": {{\n    "node": ">=20"\n  }},\n  // ...\n{new}  // ...\n'
    assert merged(PACKAGE, f"  // ...\n{update}", "json") == PACKAGE.replace(old, new).replace(
        ">=18", ">=20"
    )


def test_a_new_last_key_comes_before_the_old_end_of_the_block() -> None:
    shown = '      "description": "Units of speeds."\n    }'
    new = ',\n    "theme": {\n      "type": "string",\n      "description": "Colours."\n    }'
    update = f"// ...\n{shown}{new}\n// ...\n"
    assert merged(SETTINGS, update, "json") == SETTINGS.replace(shown, shown + new)


@pytest.mark.parametrize("operator", ["+=", "="])
def test_a_lone_assignment_takes_the_place_of_the_only_one_as_deep(operator: str) -> None:
    original = LOOP.replace("+=", operator)
    line = f"        digits {operator} str(secrets.randbelow(10))\n"
    old = f"        digits {operator} str(random.randint(0, 9))\n"
    assert merged(original, f"# ...\n{line}# ...\n", "python") == original.replace(old, line)


def test_a_value_that_another_line_as_deep_binds_is_that_one() -> None:
    original = """\
struct Args {
    level: Level,
    paths: Vec<String>,
}

fn parse() -> Args {
    let args = Args {
        level: Level::Debug,
        paths: Vec::new(),
    };
    args
}
"""
    update = "// ... existing code ...\n        level: Level::Trace,\n// ... existing code ...\n"
    assert merged(original, update, "rust") == original.replace("Level::Debug", "Level::Trace")


def test_a_method_under_the_header_of_its_class_is_no_function_elsewhere() -> None:
    original = """\
def test_unknown_zone(table, parcel):
    with pytest.raises(UnknownZoneError):
        quote(table, parcel, zone="moon")


class TestQuoteMany:
    def test_empty(self, table):
        assert quote_many(table, []) == []


class TestSurcharge:
    def test_none(self, table):
        assert surcharge(table) == 0
"""
    method = """\
    def test_no_zone(self, table, parcel):
        with pytest.raises(UnknownZoneError):
            quote_many(table, [parcel], zone="moon")
"""
    update = f"class TestQuoteMany:\n    # ... existing tests ...\n\n{method}"
    last = "        assert quote_many(table, []) == []\n"
    assert merged(original, update, "python") == original.replace(last, f"{last}\n{method}")


def test_a_new_method_like_many_others_may_stand_beside_them() -> None:
    def method(name: str, sign: str) -> str:
        return f"""\
    public double? {name}(string id)
    {{
        if (!_entries.TryGetValue(id, out var entry))
        {{
            return null;
        }}
        lock (entry)
        {{
            double? found = null;
            foreach (var reading in entry.History)
            {{
                if (found is null || reading.Value {sign} found)
                {{
                    found = reading.Value;
                }}
            }}
            return found;
        }}
    }}

"""

    names = ("GetFirst", "GetMaximum", "GetMedian", "GetLast", "GetOdd", "GetEven")
    methods = "".join(method(name, sign) for name, sign in zip(names, "<>=!%/", strict=True))
    tail = (
        "    public bool Forget(string id)\n    {\n        return _entries.Remove(id);\n    }\n}\n"
    )
    head = "class SensorHub\n{\n"
    new = method("GetMinimum", "<=")
    update = f"    // ... existing code ...\n\n{new}    public bool Forget(string id)\n    // ...\n"
    original = f"{head}{methods}{tail}".splitlines()
    snippet = read_snippet(update.splitlines(), original, language="csharp")
    plan = plan_merge(original, snippet, language="csharp")
    assert plan.accepts(f"{head}{methods}{new}{tail}".splitlines())
