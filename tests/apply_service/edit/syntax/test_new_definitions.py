"""Definitions that an update adds, mostly without a line that tells where."""

from __future__ import annotations

import pytest

from apply_service.edit.place.merge import plan_merge
from apply_service.edit.syntax.definitions import SymbolTable
from apply_service.edit.syntax.new_definitions import NewDefinitions
from apply_service.edit.syntax.syntax import parse
from apply_service.edit.text.line_index import LineIndex

FIXTURES = """\
import pytest

from app import create


@pytest.fixture
def app():
    return create()


@pytest.fixture
def client(app):
    return app.test_client()
"""
BOX = """\
class Box:
    def __init__(self, width, height):
        self.width = width
        self.height = height

    @property
    def area(self):
        return self.width * self.height

    def scale(self, by):
        self.width *= by
"""
CART_TEST = """\
public class CartTest {
    @Test
    void addsItem() {
        Cart cart = new Cart();
        cart.add(new Item(1));
        assertEquals(1, cart.size());
    }
}
"""
FACTS = """\
namespace Shop.Tests
{
    public class CartTests
    {
        [Fact]
        public void Adds()
        {
            var cart = new Cart();
            cart.Add(1);
            Assert.Equal(1, cart.Count);
        }
    }
}
"""
RUST = """\
pub fn port() -> u16 {
    80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_is_known() {
        assert_eq!(port(), 80);
    }
}
"""
ROUTES = """\
from flask import Flask

app = Flask(__name__)


@app.route("/")
def index():
    return "index"


@app.route("/about")
def about():
    return "about"


if __name__ == "__main__":
    app.run()
"""
CPP = """\
int Cart::total() const {
    return total_;
}

void Cart::add(const Item& item) {
    total_ += item.price;
}
"""
EXPRESS = """\
app.get('/users', async (request, response) => {
  response.json(await db.users.find());
});

app.listen(3000, () => {
  console.log('listening');
});
"""
DELETE = (
    "app.delete('/users', async (request, response) => {\n  response.json(await clear());\n});\n"
)
CLEAR = "void Cart::clear() {\n    total_ = 0;\n}\n"
RUNNER = "@pytest.fixture\ndef runner(app):\n    return app.test_cli_runner()\n"
PERIMETER = (
    "    @property\n    def perimeter(self):\n        return 2 * (self.width + self.height)\n"
)
TOTALS = """\
    @Test
    void totals() {
        Cart cart = new Cart();
        cart.add(new Item(2));
        assertEquals(2, cart.total());
    }
"""
CLEARS = """\
        [Fact]
        public void Clears()
        {
            var cart = new Cart();
            cart.Clear();
            Assert.Equal(0, cart.Count);
        }
"""
PORT_TEST = "    #[test]\n    fn port_is_small() {\n        assert!(port() < 1024);\n    }\n"
HEALTH = '@app.route("/health")\ndef health():\n    return "ok"\n'


def best_merge(original: str, update: str, language: str) -> str:
    best = plan_merge(original.splitlines(), update.splitlines(), language=language).best
    assert best is not None
    return "\n".join(best) + "\n"


def assert_asked_about(original: str, update: str, meant: str) -> None:
    """Nothing is certain, and one of the two likeliest merges is what is meant."""
    plan = plan_merge(original.splitlines(), update.splitlines(), language="python")
    assert not plan.is_certain
    assert tuple(meant.splitlines()) in plan.merges[:2]


def behind(original: str, line: str, added: str) -> str:
    """The original with `added` behind the first block that ends with `line`."""
    head, tail = original.split(line, 1)
    return head + line + added + tail


ADDED = {
    "fixture at the end": (
        FIXTURES,
        "# ...\n" + RUNNER,
        "python",
        "    return app.test_client()\n",
        "\n\n",
    ),
    "fixture": (
        FIXTURES,
        "# ...\n" + RUNNER + "# ...",
        "python",
        "    return app.test_client()\n",
        "\n\n",
    ),
    "property": (
        BOX,
        "class Box:\n    # ...\n" + PERIMETER + "    # ...",
        "python",
        "*= by\n",
        "\n",
    ),
    "test": (CART_TEST, f"// ...\n\n{TOTALS}}}\n", "java", "    }\n", "\n"),
    "fact": (FACTS, f"// ...\n{CLEARS}// ...", "csharp", "        }\n", "\n"),
    "mod end": (RUST, f"// ...\n\n{PORT_TEST}}}\n", "rust", "80);\n    }\n", "\n"),
    "mod": (RUST, f"mod tests {{\n    // ...\n\n{PORT_TEST}}}\n", "rust", "80);\n    }\n", "\n"),
    "route": (ROUTES, f"# ...\n{HEALTH}# ...", "python", '"about"\n', "\n\n"),
    "handler": (EXPRESS, f"// ...\n{DELETE}// ...", "javascript", "find());\n});\n", "\n"),
    "qualified": (CPP, f"// ...\n{CLEAR}", "cpp", "price;\n}\n", "\n"),
}
# A test of the same shape is taken for the old one under another name.
MISTAKEN = "fact"


def added_to(original: str, update: str, last: str, gap: str) -> str:
    added = next(
        text
        for text in (RUNNER, PERIMETER, TOTALS, CLEARS, PORT_TEST, HEALTH, DELETE, CLEAR)
        if text.strip() in update
    )
    return behind(original, last, gap + added)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(strict=True) if name == MISTAKEN else ())
        for name in ADDED
    ],
)
def test_a_new_definition_takes_the_place_of_none_without_a_word(name: str) -> None:
    original, update, language, last, gap = ADDED[name]
    plan = plan_merge(original.splitlines(), update.splitlines(), language=language)
    expected = added_to(original, update, last, gap).splitlines()
    assert not plan.is_certain or list(plan.merges[0]) == expected


def test_some_new_definitions_go_behind_the_last_one_like_them() -> None:
    right = [
        best_merge(original, update, language) == added_to(original, update, last, gap)
        for original, update, language, last, gap in ADDED.values()
    ]
    assert sum(right) >= 7


def test_a_definition_before_the_first_marker_may_go_behind_the_imports() -> None:
    """Or to the end of the file: it is asked about."""
    added = "def port():\n    return 80\n"
    meant = ROUTES.replace('@app.route("/")\n', f'{added}\n\n@app.route("/")\n')
    assert_asked_about(ROUTES, f"{added}# ... existing code ...\n", meant)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('def index():\n    return "index"\n', 'def home():\n    return "home"\n'),
        ('def index():\n    return "index"\n', 'async def home():\n    return "index"\n'),
    ],
    ids=["its attribute", "its body"],
)
def test_a_definition_may_get_another_name(old: str, new: str) -> None:
    update = f'# ...\n@app.route("/")\n{new}# ...\n'
    assert best_merge(ROUTES, update, "python") == ROUTES.replace(old, new)


def test_a_comment_of_its_own_may_tell_which_definition_is_meant() -> None:
    old = '    def scale(self, by):\n        """Make it wider."""\n        self.width *= by\n'
    new = '    def widen(self, by):\n        """Make it wider."""\n        self._width = by\n'
    below = "\n    def draw(self):\n"
    original = f"class Box:\n{old}{below}        pass\n"
    assert_asked_about(original, f"# ...\n{new}{below}# ...\n", original.replace(old, new))


def test_a_header_inside_a_text_is_no_definition_but_a_place() -> None:
    original = '"""Use it so:\n\n    class Mine(Base):\n        name = "a"\n        size = 1\n"""\n'
    update = '# ...\n    class Mine(Base):\n        name = "b"\n        size = 1\n# ...\n'
    assert best_merge(original, update, "python") == original.replace('"a"', '"b"')


MODELS = """\
class Author(models.Model):
    name = models.CharField(max_length=100)

    def __str__(self):
        return self.name


class Book(models.Model):
    title = models.CharField(max_length=200)
    author = models.ForeignKey(Author, on_delete=models.CASCADE)

    class Meta:
        ordering = ["title"]
"""


def test_a_class_that_others_use_does_not_become_another_one_like_it() -> None:
    added = MODELS.split("class Book")[0].replace("Author", "Publisher")
    update = f"# ...\n{added}class Book(models.Model):\n# ...\n"
    assert best_merge(MODELS, update, "python") == MODELS.replace(
        "class Book", added + "class Book"
    )


def test_a_title_that_changes_is_no_new_test() -> None:
    original = 'test("adds", () => {\n  expect(1 + 1).toBe(2);\n});\n// test("later");\n'
    update = 'test("sums", () => {\n  expect(1 + 1).toBe(2);\n});\n// ...\n'
    assert best_merge(original, update, "javascript") == original.replace("adds", "sums")


def test_a_new_field_goes_into_its_class() -> None:
    field = "    pages = models.IntegerField()"
    lines = ["# ...", "class Book(models.Model):", "    # ...", field, "    # ..."]
    merged = best_merge(MODELS, "\n".join(lines), "python")
    assert merged.replace(f"{field}\n", "") == MODELS
    assert merged.index(field) > merged.index("class Book")


WORKFLOW = """\
jobs:
  lint:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: make lint

  test:
    runs-on: ubuntu-latest
    needs: lint
    steps:
      - uses: actions/checkout@v4
      - run: make test

  publish:
    runs-on: ubuntu-latest
    needs: [lint, test]
    if: github.ref == 'refs/heads/main'
    steps:
      - uses: actions/checkout@v4
      - run: make publish
"""
BENCH_JOB = """\
  bench:
    runs-on: ubuntu-latest
    needs: test
    steps:
      - uses: actions/checkout@v4
      - run: make bench

"""


def test_a_new_job_above_another_takes_the_place_of_none_that_is_like_it() -> None:
    shown = "  publish:\n    runs-on: ubuntu-latest\n    needs: [lint, test, bench]\n"
    update = f"# ...\n\n{BENCH_JOB}{shown}# ...\n"
    expected = WORKFLOW.replace("  publish:\n", f"{BENCH_JOB}  publish:\n")
    expected = expected.replace("needs: [lint, test]", "needs: [lint, test, bench]")
    assert best_merge(WORKFLOW, update, "yaml") == expected


def test_what_the_update_names_gets_no_other_name() -> None:
    old = ["def release(id):", "    check(id)", "    store.release(id)", "    return done(id)"]
    new = ["def delete(id):", "    check(id)", "    store.delete(id)", "    return done(id)"]
    index = LineIndex(old)
    tree, fragment = parse(old, "python"), parse(new, "python")
    assert tree is not None
    assert fragment is not None
    table, shown = SymbolTable(tree.symbols, index), fragment.symbols
    assert NewDefinitions(table, index).rows(shown, new) == set()
    sent = [*new, "app.delete('/x', release)"]
    assert NewDefinitions(table, index, sent=sent).rows(shown, new) == {0, 1, 2, 3}


def test_a_name_that_the_update_replaces_wherever_it_is_used_is_needed_no_more() -> None:
    old = ["func (s *Box) total() int {", "\treturn s.sum(weights)", "}", "", "x := box.total()"]
    new = ["func (s *Box) grams() int {", "\treturn s.sum(weights)", "}"]
    index = LineIndex(old)
    tree, fragment = parse(old, "go"), parse(new, "go")
    assert tree is not None
    assert fragment is not None
    table, shown = SymbolTable(tree.symbols, index), fragment.symbols
    assert NewDefinitions(table, index, sent=new).rows(shown, new) == {0, 1, 2}
    sent = [*new, "    x := box.grams()"]
    assert NewDefinitions(table, index, sent=sent).rows(shown, new) == set()


def test_lines_in_an_inner_definition_are_the_outer_ones_too() -> None:
    form = ['  <form action="/find" method="get">', '    <input type="text" name="query"/>']
    form += ['    <input type="submit" value="Go"/>', "  </form>"]
    old = ['<div id="box">', *form, "</div>"]
    new = ['<search id="box">', *old[1:-1], "</search>"]
    index = LineIndex(old)
    tree, fragment = parse(old, "html"), parse(new, "html")
    assert tree is not None
    assert fragment is not None
    table = SymbolTable(tree.symbols, index)
    assert NewDefinitions(table, index).rows(fragment.symbols, new) == set()
