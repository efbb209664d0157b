"""What follows a marker inside a block stands in that block; a lone closing line ends it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from apply_service.edit.place.merge import MergePlan, plan_merge, splice
from apply_service.edit.place.placement import Placement
from apply_service.edit.place.segment_nesting import Room, SegmentNesting, is_cut
from apply_service.edit.read.segment import Segment, SegmentLine
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.syntax.syntax import parse
from apply_service.edit.text.line_index import LineIndex

PYTHON = """\
class Store:
    def __init__(self, path):
        self.path = path

    def load(self):
        for key, value in self.read():
            self.items[key] = value
        return len(self.items)

    def reload(self):
        for key, value in self.read():
            self.items[key] = value
        return len(self.items)

    def fetch(self):
        for key, value in self.read():
            self.items[key] = value
        return len(self.items)


def main():
    print(Store("a").load())
"""
TYPESCRIPT = """\
export class Cart {
  private items: Item[] = [];

  add(item: Item): void {
    if (item.price < 0) {
      throw new Error("price");
    }
    this.changed.emit(item);
  }

  remove(item: Item): void {
    if (item.price < 0) {
      throw new Error("price");
    }
    this.changed.emit(item);
  }
}

export class Order {
  submit(): void {
    this.log.info("submit");
  }
}
"""
GO = """\
package main

func First(w io.Writer) error {
	if err := check(w); err != nil {
		return err
	}
	return nil
}

func Second(w io.Writer) error {
	if err := check(w); err != nil {
		return err
	}
	return nil
}

func Third(w io.Writer) error {
	if err := check(w); err != nil {
		return err
	}
	return nil
}
"""
RUST = """\
impl Reader {
    pub fn open(&self) -> Result<(), Error> {
        match self.state {
            State::New => self.start(),
            State::Done => Err(Error::Closed),
        }
    }

    pub fn close(&self) -> Result<(), Error> {
        match self.state {
            State::New => self.start(),
            State::Done => Err(Error::Closed),
        }
    }
}
"""
RUBY = """\
class Store
  def load
    items.each do |item|
      puts item
    end
  end

  def save
    items.each do |item|
      puts item
    end
  end

  def clear
    items.each do |item|
      puts item
    end
  end
end
"""
C = """\
int first(int a)
{
    if (a > 0)
    {
        go(a);
    }
    return 0;
}

int second(int a)
{
    if (a > 0)
    {
        go(a);
    }
    return 0;
}

int third(int a)
{
    if (a > 0)
    {
        go(a);
    }
    return 0;
}
"""
YAML = """\
services:
  web:
    image: shop
    environment:
      LOG: info
    ports:
      - "80:80"
  worker:
    image: shop
    environment:
      LOG: info
    ports:
      - "80:80"
volumes:
  cache: {}
"""


def planned(original: str, update: str, language: str | None) -> MergePlan:
    lines = original.splitlines()
    snippet = read_snippet(update.splitlines(), lines, language=language)
    return plan_merge(lines, snippet, language=language)


def merged(original: str, update: str, language: str | None) -> str:
    plan = planned(original, update, language)
    assert plan.best is not None
    return "\n".join(splice(plan.original_lines, plan.best)) + "\n"


def changed(original: str, old: str, new: str, *, at: int) -> str:
    """The original with `new` in the place of `old` where that stands for the `at`-th time."""
    parts = original.split(old)
    assert len(parts) > at
    return old.join(parts[:at]) + new + old.join(parts[at:])


@pytest.mark.parametrize(
    ("original", "language", "update", "old", "new"),
    [
        (
            PYTHON,
            "python",
            "class Store:\n    # ...\n    def reload(self):\n        # ...\n"
            "            self.items[key] = value.strip()\n        return len(self.items)\n"
            "    # ...\n",
            "= value\n",
            "= value.strip()\n",
        ),
        (
            PYTHON,
            "python",
            "# ...\n    def reload(self):\n        # ...\n        self.log()\n"
            "        return len(self.items)\n# ...\n",
            "        return len(self.items)\n",
            "        self.log()\n        return len(self.items)\n",
        ),
        (
            TYPESCRIPT,
            "typescript",
            "export class Cart {\n  // ...\n  remove(item: Item): void {\n    // ...\n"
            "    this.changed.emit(item);\n    this.save();\n  }\n}\n// ...\n",
            "    this.changed.emit(item);\n",
            "    this.changed.emit(item);\n    this.save();\n",
        ),
        (
            TYPESCRIPT,
            "typescript",
            "  remove(item: Item): void {\n    if (item.price < 0) {\n      // ...\n"
            '      this.log.warn("price");\n    }\n    // ...\n  }\n// ...\n',
            '      throw new Error("price");\n',
            '      throw new Error("price");\n      this.log.warn("price");\n',
        ),
        (
            GO,
            "go",
            "func Second(w io.Writer) error {\n\t// ...\n\tflush(w)\n\treturn nil\n}\n// ...\n",
            "\treturn nil\n",
            "\tflush(w)\n\treturn nil\n",
        ),
        (
            GO,
            "go",
            "// ...\nfunc Second(w io.Writer) error {\n\t// ...\n"
            "\tif err := check(w); err != nil {\n\t\tlog.Print(err)\n\t\treturn err\n\t}\n"
            "\t// ...\n}\n// ...\n",
            "\t\treturn err\n",
            "\t\tlog.Print(err)\n\t\treturn err\n",
        ),
        (
            RUST,
            "rust",
            "impl Reader {\n    // ...\n    pub fn close(&self) -> Result<(), Error> {\n"
            "        match self.state {\n            // ...\n"
            "            State::Done => Ok(()),\n        }\n    }\n}\n",
            "Err(Error::Closed)",
            "Ok(())",
        ),
        (
            RUBY,
            "ruby",
            "class Store\n  # ...\n  def save\n    # ...\n    flush\n  end\n  # ...\nend\n",
            "    end\n",
            "    end\n    flush\n",
        ),
        (
            RUBY,
            "ruby",
            "# ...\n  def save\n    items.each do |item|\n      # ...\n      log item\n    end\n"
            "  end\n# ...\n",
            "      puts item\n",
            "      puts item\n      log item\n",
        ),
        (
            C,
            "c",
            "// ...\nint second(int a)\n{\n    // ...\n    stop(a);\n    return 0;\n}\n// ...\n",
            "    return 0;\n",
            "    stop(a);\n    return 0;\n",
        ),
        (
            C,
            "c",
            "// ...\nint second(int a)\n{\n    if (a > 0)\n    {\n        // ...\n"
            "        stop(a);\n    }\n    // ...\n}\n// ...\n",
            "        go(a);\n",
            "        go(a);\n        stop(a);\n",
        ),
        (
            C,
            "c",
            "// ...\nint second(int a)\n    // ...\n    stop(a);\n    return 0;\n}\n// ...\n",
            "    return 0;\n",
            "    stop(a);\n    return 0;\n",
        ),
        (
            YAML,
            "yaml",
            'services:\n  # ...\n  worker:\n    # ...\n    ports:\n      - "80:80"\n'
            '      - "82:82"\n# ...\n',
            '      - "80:80"\n',
            '      - "80:80"\n      - "82:82"\n',
        ),
        (
            YAML,
            None,
            "services:\n  # ...\n  worker:\n    # ...\n    environment:\n      LOG: info\n"
            '      TRACE: "1"\n# ...\n',
            "      LOG: info\n",
            '      LOG: info\n      TRACE: "1"\n',
        ),
    ],
    ids=[
        "python loop",
        "python",
        "typescript method",
        "typescript if",
        "go",
        "go if",
        "rust",
        "ruby",
        "ruby block",
        "c",
        "c block",
        "c without its bracket",
        "yaml",
        "yaml by its look",
    ],
)
def test_lines_that_stand_in_every_block_go_into_the_one_that_is_open(
    original: str, language: str | None, update: str, old: str, new: str
) -> None:
    assert merged(original, update, language) == changed(original, old, new, at=2)


def test_a_lone_closing_line_ends_the_block_and_what_follows_stands_behind_it() -> None:
    update = (
        "export class Cart {\n"
        "  // ...\n"
        "  remove(item: Item, quiet = false): void {\n"
        "    // ...\n"
        "  }\n"
        "\n"
        "  clear(): void {\n"
        "    this.items = [];\n"
        "  }\n"
        "}\n"
        "// ...\n"
    )
    expected = TYPESCRIPT.replace("remove(item: Item)", "remove(item: Item, quiet = false)")
    added = "\n  clear(): void {\n    this.items = [];\n  }\n}\n"
    assert merged(TYPESCRIPT, update, "typescript") == changed(
        expected, "}\n\nexp", added + "\nexp", at=1
    )


def test_a_header_with_another_name_opens_its_block_too() -> None:
    header = "func Middle(context Context, input io.Reader, limit int) error {"
    original = GO.replace("func Second(w io.Writer) error {", header)
    update = f"// ...\n{header.replace('Middle', 'Other')}\n\t// ...\n}}\n// ...\n"
    plan = planned(original, update, "go")
    assert merged(original, update, "go") == original.replace("Middle", "Other")
    assert plan.candidates[1][0].is_certain


def test_a_closing_line_that_changes_nothing_is_certain() -> None:
    update = (
        "// ...\n"
        "func Second(w io.Writer) error {\n"
        "\t// ...\n"
        "\tif err := check(w); err != nil {\n"
        "\t\tlog.Print(err)\n"
        "\t\treturn err\n"
        "\t}\n"
        "\t// ...\n"
        "}\n"
        "// ...\n"
    )
    plan = planned(GO, update, "go")
    assert plan.is_unique
    assert GO.splitlines()[plan.candidates[-1][0].start] == "}"


def test_a_call_over_several_lines_does_not_close_the_function_around_it() -> None:
    function = (
        "def {}(a):\n    b = a + 1\n    return dict(\n        a=1,\n        b=2,\n    )\n\n\n"
    )
    original = "".join(map(function.format, ("first", "second", "third")))
    update = (
        "# ...\n"
        "def second(a):\n"
        "    # ...\n"
        "    return dict(\n"
        "        a=1,\n"
        "        b=3,\n"
        "    )\n"
        "# ...\n"
    )
    plan = planned(original, update, "python")
    assert plan.is_unique
    assert merged(original, update, "python") == changed(original, "b=2", "b=3", at=2)


def test_new_lines_in_a_block_stay_in_it_though_the_update_ends_with_them() -> None:
    update = "class Store:\n    # ...\n    def reload(self):\n        # ...\n        self.log()\n"
    result = merged(PYTHON, update, "python")
    header, end = result.index("def reload"), result.index("def fetch")
    assert header < result.index("self.log()") < end
    assert result.replace("        self.log()\n", "") == PYTHON


def test_a_block_at_the_end_of_the_file_ends_the_file() -> None:
    original = PYTHON[: PYTHON.index("\n\ndef main")]
    update = (
        "class Store:\n    # ...\n    def fetch(self):\n        # ...\n        return self.items\n"
    )
    assert merged(original, update, "python") == changed(
        original, "len(self.items)", "self.items", at=3
    )


def test_a_marker_at_column_0_says_nothing_about_nesting() -> None:
    update = "    def load(self):\n# ...\n        self.log()\n        return len(self.items)\n"
    assert rooms(PYTHON, update) == [None, None]
    update = "class Store:\n# ...\n    def main(self):\n        pass\n# ...\n"
    assert rooms(PYTHON, update) == [None, None]


def test_a_second_marker_further_left_leaves_the_block() -> None:
    update = "# ...\n    def load(self):\n        # ...\n\n{}# ...\n        self.log()\n# ...\n"
    inside, behind = (rooms(PYTHON, update.format(indent)) for indent in (" " * 8, " " * 4))
    assert inside[1] is not None
    assert behind[1] is None


def test_a_place_outside_the_block_with_far_better_anchors_wins() -> None:
    """The block is named by mistake; three lines of `submit` and its class say where it goes."""
    update = (
        "export class Cart {\n"
        "  // ...\n"
        "  submit(): void {\n"
        '    this.log.info("submit");\n'
        "    this.send();\n"
        "  }\n"
        "// ...\n"
    )
    expected = TYPESCRIPT.replace('("submit");\n', '("submit");\n    this.send();\n')
    assert merged(TYPESCRIPT, update, "typescript") == expected


def test_a_header_that_stands_as_it_is_takes_no_other_place() -> None:
    """`jobs:` is no second key, though what follows the marker touches it."""
    item = "  - name: {0}\n    image: {0}\n    port: {1}\n"
    original = "jobs:\n" + item.format("web", 80) + item.format("db", 81)
    update = "jobs:\n  # ...\n" + item.format("worker", 82)
    assert merged(original, update, "yaml").count("jobs:") == 1


def segment(text: str, next_indent: int | None = None) -> Segment:
    lines = enumerate(text.splitlines(), start=1)
    return Segment(
        lines=tuple(SegmentLine(line, number) for number, line in lines), next_indent=next_indent
    )


def placed(original: Sequence[str], shown: Segment) -> Placement:
    """Where the lines of `shown` stand in the original for the first time."""
    texts = tuple(shown.texts)
    start = next(
        at for at in range(len(original)) if tuple(original[at : at + len(texts)]) == texts
    )
    return Placement(
        segment=0,
        start=start,
        end=start + len(texts),
        lines=texts,
        weight=1.0,
        reason="context",
    )


def rooms(original: str, update: str) -> list[Room | None]:
    """The room of each segment, where the ones before it stand as they are."""
    lines = original.splitlines()
    nesting = SegmentNesting(LineIndex(lines), ())
    found: list[Room | None] = []
    for shown in read_snippet(update.splitlines(), lines, language="python").segments:
        found.append(nesting.enter(shown))
        is_known = shown.texts[0] in lines
        nesting.leave(shown, placed(lines, shown) if is_known else None)
    return found


def room_after(original: str, header: Segment, shown: Segment, language: str | None) -> Room | None:
    lines = original.splitlines()
    tree = parse(lines, language)
    nesting = SegmentNesting(LineIndex(lines), tree.symbols if tree is not None else ())
    assert nesting.enter(header) is None
    nesting.leave(header, placed(lines, header))
    return nesting.enter(shown)


@pytest.mark.parametrize("language", ["python", None])
def test_a_room_is_the_rest_of_the_block(language: str | None) -> None:
    header = segment("    def reload(self):", 8)
    assert room_after(PYTHON, header, segment("        new()"), language) == Room(10, 13)


@pytest.mark.parametrize("language", ["go", None])
def test_what_shows_the_end_of_the_block_has_to_cover_it(language: str | None) -> None:
    header = segment("func Second(w io.Writer) error {", 8)
    end = GO.splitlines().index("}", 10)
    total = len(GO.splitlines())
    inside = room_after(GO, header, segment("\tnew()"), language)
    covering = room_after(GO, header, segment("\tnew()\n}\n\nfunc Last() {"), language)
    lone = room_after(GO, header, segment("}\n\nfunc Last() {"), language)
    assert inside == Room(10, end)
    assert covering == Room(10, total, closers=(end,))
    assert lone == Room(end, total, closers=(end,), closes=True)


def test_blocks_with_brackets_on_their_own_lines_are_told_apart() -> None:
    header = segment("int second(int a)\n{\n    if (a > 0)\n    {", 8)
    assert room_after(C, header, segment("        new();"), "c") == Room(13, 14)
    closing = segment("        new();\n    }\n    return 0;\n}")
    total = len(C.splitlines())
    assert room_after(C, header, closing, "c") == Room(13, total, closers=(14, 16))


def test_of_definitions_in_one_line_the_longest_is_the_block() -> None:
    original = '{\n  "a": {"b": 1,\n    "c": 2,\n    "d": 3\n  },\n  "e": 4\n}\n'
    header = segment('  "a": {"b": 1,', 4)
    assert room_after(original, header, segment('    "f": 5'), "json") == Room(2, 4)


def test_an_instruction_comment_above_a_header_is_no_header() -> None:
    lines = PYTHON.splitlines()
    comment = SegmentLine("# Call the log", 1, is_optional=True)
    header = segment("    def reload(self):", 8)
    header = msgspec.structs.replace(header, lines=(comment, *header.lines))
    placement = replace(placed(lines, segment(lines[9])), lines=tuple(header.texts))
    nesting = SegmentNesting(LineIndex(lines), ())
    nesting.leave(header, placement)
    assert nesting.enter(segment("        new()")) == Room(10, 13)


def test_a_block_that_was_not_found_says_nothing() -> None:
    lines = GO.splitlines()
    nesting = SegmentNesting(LineIndex(lines), ())
    nesting.leave(segment("func Unknown() {", 8), None)
    assert nesting.enter(segment("\tnew()")) is None
    assert nesting.enter(segment("}")) is None


def test_a_room_admits_what_lies_in_it_and_covers_its_closers() -> None:
    def at(start: int, end: int, *lines: str) -> Placement:
        return Placement(segment=0, start=start, end=end, lines=lines, weight=1.0, reason="context")

    assert Room(2, 5).admits(at(2, 5, "a"))
    assert not Room(2, 5).admits(at(1, 3, "a"))
    assert not Room(2, 5).admits(at(4, 6, "a"))
    assert Room(2, 9, closers=(5,)).admits(at(4, 6, "a", "}"))
    assert not Room(2, 9, closers=(5,)).admits(at(4, 5, "a"))
    closing = Room(5, 9, closers=(5,), closes=True)
    assert closing.admits(at(5, 6, "", "  }"))
    assert not closing.admits(at(5, 6, "a", "}"))


def test_a_room_of_the_whole_file_is_open() -> None:
    assert Room(0, 5).is_open(5)
    assert not Room(1, 5).is_open(5)
    assert not Room(0, 5, closers=(4,)).is_open(5)


@pytest.mark.parametrize(
    ("text", "next_indent", "expected"),
    [
        ("def f():", 4, True),
        ("def f():", 0, False),
        ("def f():", None, False),
        ("def f():\n    go()", 4, False),
        ("\tif a {", 16, True),
        ("", 4, False),
    ],
)
def test_a_segment_is_cut_by_a_deeper_marker(
    text: str, next_indent: int | None, expected: bool
) -> None:
    assert is_cut(segment(text, next_indent)) is expected


NUM_LINES = 20_000
NUM_SEGMENTS = 400
NUM_NESTED = 200


@pytest.mark.parametrize(
    ("original", "shown"),
    [
        (["if (a) {"] * NUM_LINES, ["if (a) {"]),
        (["if (a):", *["        go();"] * NUM_LINES], ["if (a):"]),
        (["if (a) {", *["\t\t\tgo();"] * NUM_LINES], ["if (a) {"]),
        (
            [
                *(" " * depth + "if (a) {" for depth in range(NUM_NESTED)),
                *[" " * NUM_NESTED + "go();"] * NUM_LINES,
            ],
            [" " * depth + "if (a) {" for depth in range(0, NUM_NESTED, 10)],
        ),
    ],
    ids=["flat", "deep", "tabs", "nested"],
)
def test_blocks_that_nothing_closes_take_no_time(original: list[str], shown: list[str]) -> None:
    header = segment("\n".join(shown), NUM_NESTED)
    placement = Placement(
        segment=0, start=0, end=NUM_NESTED, lines=tuple(shown), weight=1.0, reason="context"
    )
    started = time.thread_time()
    nesting = SegmentNesting(LineIndex(original), ())
    for _ in range(NUM_SEGMENTS):
        nesting.enter(header)
        nesting.leave(header, placement)
    assert time.thread_time() - started < 2.0


OWNERS = """\
class Title:
    name: str

    @classmethod
    def from_dict(cls, data):
        return cls(data["name"])


class Copy:
    shelf: str

    def to_dict(self):
        return {"shelf": self.shelf}
"""


def test_a_new_method_is_not_the_one_of_that_name_in_another_class() -> None:
    method = "    @classmethod\n    def from_dict(cls, data):\n        return cls(data['shelf'])\n"
    update = f"class Copy:\n    # ... fields and to_dict ...\n\n{method}"
    assert merged(OWNERS, update, "python") == f"{OWNERS}\n{method}"


JAVA = """\
class Bookings {
    List<Booking> byCustomer(String customer) {
        return all().filter(customer);
    }

    List<Booking> bySailing(String sailing) {
        return all().filter(sailing);
    }

    private Sailing require(String id) {
        return sailings.find(id);
    }
}
"""


def test_what_follows_a_block_in_the_update_follows_it_in_the_file() -> None:
    update = (
        "    List<Booking> byCustomer(String customer) {\n        // ...\n    }\n\n"
        "    private Sailing require(String id) {\n    // ...\n"
    )
    gone = JAVA[JAVA.index("    List<Booking> bySailing") : JAVA.index("    private Sailing")]
    assert merged(JAVA, update, "java") == JAVA.replace(gone, "")
    assert not planned(JAVA, update, "java").is_unique
