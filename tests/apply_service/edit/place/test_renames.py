"""Names that an update gives to what has another name in the file."""

from __future__ import annotations

import time

import pytest

from apply_service.edit.place.merge import plan_merge, splice
from apply_service.edit.place.renames import MAX_COMPARED, MIN_RENAMED_SHARE, find_renames
from apply_service.edit.read.snippet import read_snippet

PYTHON = """\
LIMIT = 14


def load(path):
    return open(path).read()


def check(text):
    if len(text) > LIMIT:
        raise ValueError("text", LIMIT)


def main():
    text = load("a")
    check(text)
    other = load("b")
    check(other)
"""
TYPESCRIPT = """\
export class Order {
  private readonly total: number;

  toJson(): string {
    return JSON.stringify({ total: this.total });
  }
}

export function send(order: Order, api: Api): Promise<void> {
  return api.post("/orders", order.toJson());
}

export function save(order: Order, disk: Disk): void {
  disk.write("order.json", order.toJson());
}
"""
GO = """\
func (s *Store) Read(key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items[key], nil
}

func copyItem(s *Store, key string) error {
	value, err := s.Read(key)
	if err != nil {
		return err
	}
	return s.Write(key, value)
}
"""
RUST = """\
pub enum LexError {
    UnexpectedChar(char),
    End,
}

fn next(input: &mut Chars) -> Result<char, LexError> {
    match input.next() {
        Some('#') => Err(LexError::UnexpectedChar('#')),
        Some(found) => Ok(found),
        None => Err(LexError::End),
    }
}
"""
RUBY = """\
class Cart
  def sum
    items.map(&:price).inject(:+)
  end

  def report
    puts "all: #{sum}"
    puts "mean: #{sum / items.size}"
  end
end
"""
C = """\
static int read_block(struct device *dev)
{
    return dev->read(dev);
}

int copy(struct device *dev, struct device *to)
{
    int count = read_block(dev);
    while (count > 0 && to->ready(to))
    {
        count = read_block(dev);
    }
    return count;
}
"""


def renames(original: str, *segments: str) -> dict[str, str]:
    lines = [line.strip() for line in original.splitlines()]
    return dict(find_renames([segment.splitlines() for segment in segments], lines))


def merged(original: str, update: str, language: str | None) -> str:
    lines = original.splitlines()
    snippet = read_snippet(update.splitlines(), lines, language=language)
    plan = plan_merge(lines, snippet, language=language)
    assert plan.best is not None
    return "\n".join(splice(lines, plan.best)) + "\n"


@pytest.mark.parametrize(
    ("original", "language", "update", "old", "new"),
    [
        (
            PYTHON,
            "python",
            "# ...\ndef read_text(path):\n    # ...\n\n\ndef main():\n    # ...\n"
            '    text = read_text("a")\n    # ...\n    other = read_text("b")\n    # ...\n',
            "load",
            "read_text",
        ),
        (
            PYTHON,
            "python",
            "MAX_TEXT = 14\n\n# ...\n    if len(text) > MAX_TEXT:\n"
            '        raise ValueError("text", MAX_TEXT)\n# ...\n',
            "LIMIT",
            "MAX_TEXT",
        ),
        (
            TYPESCRIPT,
            "typescript",
            "// ...\n  serialize(): string {\n    return JSON.stringify({ total: this.total });\n"
            '  }\n// ...\n  return api.post("/orders", order.serialize());\n'
            '// ...\n  disk.write("order.json", order.serialize());\n// ...\n',
            "toJson",
            "serialize",
        ),
        (
            GO,
            "go",
            "// ...\nfunc (s *Store) Load(key string) ([]byte, error) {\n\t// ...\n}\n"
            "// ...\n\tvalue, err := s.Load(key)\n// ...\n",
            "Read",
            "Load",
        ),
        (
            RUST,
            "rust",
            "pub enum LexError {\n    InvalidChar(char),\n    // ...\n}\n\n// ...\n"
            "        Some('#') => Err(LexError::InvalidChar('#')),\n// ...\n",
            "UnexpectedChar",
            "InvalidChar",
        ),
        (
            RUBY,
            "ruby",
            "# ...\n  def total\n    items.map(&:price).inject(:+)\n  end\n# ...\n"
            '    puts "all: #{total}"\n    puts "mean: #{total / items.size}"\n# ...\n',
            "sum",
            "total",
        ),
        (
            C,
            "c",
            "static int fetch_block(struct device *dev)\n{\n    // ...\n}\n// ...\n"
            "    int count = fetch_block(dev);\n// ...\n"
            "        count = fetch_block(dev);\n// ...\n",
            "read_block",
            "fetch_block",
        ),
    ],
    ids=["python", "constant", "typescript", "go", "rust", "ruby", "c"],
)
def test_lines_with_a_new_name_take_the_place_of_those_with_the_old_one(
    original: str, language: str, update: str, old: str, new: str
) -> None:
    assert merged(original, update, language) == original.replace(old, new)


def test_a_word_that_alone_is_new_stands_for_the_one_in_its_place() -> None:
    first, second = '    text = parse("a")', '    other = parse("b")'
    assert renames(PYTHON, first, second) == {"parse": "load"}


@pytest.mark.parametrize(
    "segments",
    [
        ['    text = parse("a")'],
        ['    text = parse("a")\n    other = load("b")'],
        ['    text = parse("a", encoding)', '    other = parse("b", encoding)'],
        ["    parse(a)", "    parse(b)"],
        ["CEILING = 14"],
        ["    text = parse(1)", "    other = parse(1)"],
        ['    text = "x"', '    other = "y"'],
        PYTHON.split("\n\n\n"),
        [""],
        [],
    ],
    ids=[
        "half of the lines",
        "the old name is shown",
        "two new words",
        "few tokens",
        "an assignment",
        "other lines",
        "no name",
        "nothing new",
        "blank",
        "no segments",
    ],
)
def test_what_is_no_rename(segments: list[str]) -> None:
    assert renames(PYTHON, *segments) == {}


def test_hardly_a_line_may_keep_the_old_name() -> None:
    original = "".join(f"    use(old, {number})\n" for number in range(8))
    update = original.replace("old", "new").splitlines(keepends=True)
    needed = int(8 * MIN_RENAMED_SHARE)
    assert renames(original, "".join(update[:needed])) == {"new": "old"}
    assert renames(original, "".join(update[: needed - 1])) == {}


def test_a_word_of_two_former_ones_is_no_rename() -> None:
    assert renames("    copy(old, older)\n", "    copy(new, new)\n") == {}
    assert renames("    copy(old, old)\n", "    copy(new, new)\n") == {"new": "old"}


def test_names_of_lines_that_are_alike_keep_their_order() -> None:
    original = "    add(one, kind)\n    add(two, kind)\n"
    update = "    add(first, kind)\n    add(second, kind)\n"
    assert renames(original, update) == {"first": "one", "second": "two"}


SIBLING = '    text = parse("a")\n    other = parse("b")\n'


@pytest.mark.parametrize(
    "definition",
    [
        "def parse(path):\n    return json.loads(path)\n",
        "def parse(path):\n    with lock:\n        return tree.of(path)\n    check(path)\n",
        "class parse:\n    name = 1\n",
    ],
)
def test_a_definition_of_new_lines_beside_the_others_is_no_rename(definition: str) -> None:
    assert renames(PYTHON, definition, SIBLING) == {}
    assert renames(PYTHON, SIBLING, definition) == {}


def test_a_definition_with_the_lines_of_the_old_one_is_a_rename() -> None:
    definition = "def parse(path):\n    return open(path).read()\n"
    assert renames(PYTHON, definition, SIBLING) == {"parse": "load"}
    assert renames(PYTHON, definition.splitlines()[0], SIBLING) == {"parse": "load"}


@pytest.mark.parametrize(
    ("original", "added"),
    [
        (PYTHON, "def parse(text):\n    if len(text) > LIMIT:\n        return text\n"),
        (
            PYTHON,
            'def verify(text):\n    if len(text) > LIMIT:\n        raise OSError("text", LIMIT)\n',
        ),
        (GO, "func dropItem(s *Store, key string) error {\n\tvalue, err := s.Drop(key)\n}\n"),
        (C, "int drop(struct device *dev)\n{\n    int count = drop_block(dev);\n}\n"),
        (
            "web:\n  image: shop/web:1.2\n  port: 80\n",
            "cache:\n  image: shop/cache:1.2\n  port: 80\n",
        ),
        (
            'const urls = {\n  web: { path: "a/web", method: GET },\n};\n',
            'cache: {\n  path: "a/cache", method: GET },\n',
        ),
    ],
    ids=["python", "resembles", "go", "c", "yaml", "javascript"],
)
def test_a_line_in_a_new_definition_tells_of_no_rename(original: str, added: str) -> None:
    assert renames(original, added) == {}


@pytest.mark.parametrize("header", ["try:", "else:", "finally:"])
def test_a_new_block_without_a_name_is_no_definition(header: str) -> None:
    lines = [f"    {line}" for line in SIBLING.splitlines()]
    assert renames(PYTHON, "\n".join([f"    {header}", *lines])) == {"parse": "load"}


def test_a_new_entry_beside_others_leaves_them() -> None:
    original = (
        "services:\n  web:\n    image: shop/web:1.2\n    port: 80\n"
        "  worker:\n    image: shop/worker:1.2\n    port: 81\n"
    )
    added = "  cache:\n    image: shop/cache:1.2\n    port: 82\n"
    result = merged(original, f"services:\n  # ...\n{added}", "yaml")
    assert result == original + added


def test_a_new_function_and_its_call_leave_the_others() -> None:
    added = "def parse(path):\n    return json.loads(path)\n"
    update = f"# ...\n{added}\n\ndef main():\n    # ...\n    tree = parse('a')\n    # ...\n"
    result = merged(PYTHON, update, "python")
    lines = result.replace(added, "").replace("    tree = parse('a')\n", "").split("\n")
    assert [line for line in lines if line] == [line for line in PYTHON.split("\n") if line]


NUM_LINES = 20_000
NUM_SEGMENTS = 400


def named_lines(num_sizes: int) -> list[str]:
    """Lines of many lengths, each with a name of its own."""
    return [
        " + ".join([f"name{number}", *[f"k{number % num_sizes}"] * (4 + number % num_sizes)])
        for number in range(NUM_SEGMENTS)
    ]


@pytest.mark.parametrize(
    ("original", "segments"),
    [
        (["x = f(a, b)"] * NUM_LINES, [["x = f(a, c)"]] * NUM_SEGMENTS),
        (
            [f"value_{number} = call(arg_{number}, old)" for number in range(NUM_LINES)],
            [[f"value_{number} = call(arg_{number}, new)"] for number in range(NUM_SEGMENTS)],
        ),
        (
            [*named_lines(20), *(f"filler of a usual line {n}" for n in range(NUM_LINES))],
            [[line.replace("name", "gnome")] for line in named_lines(20)],
        ),
        (
            [f"int f{number}(a)" for number in range(NUM_LINES)],
            [["a" * 199 + " " + "b" * 199 for _ in range(20)]] * NUM_SEGMENTS,
        ),
        (["word " * 5_000 + str(number) for number in range(200)], [["word " * 5_000 + "new"]]),
    ],
    ids=["equal", "all different", "as many renames", "nearly declarations", "long"],
)
def test_many_lines_take_no_time(original: list[str], segments: list[list[str]]) -> None:
    started = time.thread_time()
    find_renames(segments, original)
    assert time.thread_time() - started < 2.0


def test_every_rename_of_many_is_found() -> None:
    lines = named_lines(20)
    found = find_renames([[line.replace("name", "gnome")] for line in lines], lines)
    assert found == {f"gnome{number}": f"name{number}" for number in range(NUM_SEGMENTS)}


def test_beyond_the_limit_of_comparisons_nothing_is_told() -> None:
    size = int(MAX_COMPARED**0.5) + 1
    lines = [f"    call(name{number}, other)" for number in range(size)]
    assert find_renames([[line.replace("name", "gnome") for line in lines]], lines) == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("export * as fee from './fee.js'", "export * as zone from './zone.js'"),
        ("import { fee } from './money.js'", "import { zone } from './money.js'"),
        ("from ledger.models import fee", "from ledger.models import zone"),
        ("use crate::money::fee;", "use crate::money::zone;"),
    ],
)
def test_a_name_that_is_imported_or_passed_on_tells_nothing(old: str, new: str) -> None:
    assert find_renames([[new]], [old]) == {}


def test_other_spaces_make_no_other_line() -> None:
    old = ["store  *Store", "now    func() time.Time", "return s.now()", "at := s.now()"]
    new = ["clock func() time.Time", "return s.clock()", "at  :=  s.clock()"]
    assert find_renames([new], old) == {"clock": "now"}
