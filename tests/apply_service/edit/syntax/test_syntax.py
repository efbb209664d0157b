"""What a file and a fragment are made of.

`tests/cases/outlines` holds one source a language, `=====`, and its outline: a line a symbol,
indented by nesting, as `kind name @ start header end`.
"""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_service.edit.syntax.grammars import try_load_grammar
from apply_service.edit.syntax.languages import LANGUAGES
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.syntax.syntax import SyntaxTree, parse, parse_fragment

OUTLINES = Path(__file__).parents[3] / "cases" / "outlines"


def read_case(language: str) -> tuple[list[str], str]:
    source, _, outline = (OUTLINES / f"{language}.txt").read_text().partition("\n=====\n")
    return source.split("\n"), outline


def outline_of(tree: SyntaxTree) -> str:
    rows: list[str] = []
    depths: list[int] = []
    for symbol in tree.symbols:
        depths.append(0 if symbol.parent is None else depths[symbol.parent] + 1)
        place = f"{symbol.start} {symbol.header} {symbol.end}"
        rows.append(f"{'  ' * depths[-1]}{symbol.kind} {symbol.name} @ {place}")
    spans = "".join(f" {start}-{end}" for start, end in tree.imports)
    errors = "".join(f" {line}" for line in tree.error_lines)
    return "\n".join([*rows, f"imports{spans}", f"errors{errors}", ""])


def check_well_formed(symbols: Sequence[Symbol], num_lines: int) -> None:
    for place, symbol in enumerate(symbols):
        assert 0 <= symbol.start <= symbol.header < symbol.end <= num_lines
        assert place == 0 or symbols[place - 1].start <= symbol.start
        if symbol.parent is not None:
            parent = symbols[symbol.parent]
            assert symbol.parent < place
            assert parent.start <= symbol.start
            assert symbol.end <= parent.end


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_its_outline(language: str) -> None:
    lines, outline = read_case(language)
    tree = parse(lines, language)
    assert tree is not None
    assert outline_of(tree) == outline
    check_well_formed(tree.symbols, len(lines))


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_broken_files_still_give_well_formed_symbols(language: str, data: st.DataObject) -> None:
    lines, _ = read_case(language)
    places = st.integers(0, len(lines) - 1)
    for place in data.draw(st.lists(places, max_size=4)):
        lines[place] = data.draw(st.sampled_from(["", "}", "(", '"', "  x", lines[place][:-3]]))
    start, end = sorted((data.draw(places), data.draw(places)))
    piece = lines[start : end + 1]
    tree = parse(piece, language)
    assert tree is not None
    check_well_formed(tree.symbols, len(piece))
    assert all(0 <= border <= len(piece) for border in tree.border_depths)
    assert all(0 <= line < len(piece) for line in tree.error_lines)
    assert all(0 <= a < b <= len(piece) for a, b in tree.imports)
    check_well_formed(parse_fragment(piece, language), len(piece))


@pytest.mark.parametrize("lines", [[], [""], ["\ufeff"], ["\0"], ["\ud800 = 1"], ["\r", "x\r"]])
def test_odd_texts_are_parsed(lines: list[str]) -> None:
    for language in LANGUAGES:
        assert parse(lines, language) is not None
        parse_fragment(lines, language)


def test_borders_keep_comments_and_decorators_with_what_they_belong_to() -> None:
    tree = parse(
        [
            "import a",
            "",
            "# About f.",
            "@b",
            "def f():",
            "    # why",
            "    x = 1",
            "    y = 2",
            "z",
        ],
        "python",
    )
    assert tree is not None
    assert set(tree.border_depths) == {0, 1, 2, 5, 7, 8, 9}
    assert tree.border_depths[2] == 0
    assert tree.border_depths[7] > 0


def test_error_lines_are_where_the_errors_are() -> None:
    good = ["def f():", "    return 1", "", "x = 2"]
    tree = parse(good, "python")
    assert tree is not None
    assert tree.error_lines == ()
    broken = parse([*good, "y = (1,"], "python")
    assert broken is not None
    assert broken.error_lines
    unclosed = parse(["function f() {", "  return 1;"], "javascript")
    assert unclosed is not None
    assert unclosed.error_lines
    # Here the grammar gives up on the whole file.
    unclosed = parse(["test('a', () => {", "  call();"], "javascript")
    assert unclosed is not None
    assert unclosed.error_lines == (1,)


@pytest.mark.parametrize(
    ("language", "lines", "error_lines"),
    [
        ("javascript", ["/**", "", "/** One. */", "const one = 1;"], (2,)),
        ("javascript", ["/**", " * One /* two.", " */", "const one = 1;"], ()),
        ("css", [".a {", "  /* one", "  /* two */", "}"], (2,)),
        ("html", ["<!-- one", "<!-- two -->", "<p>three</p>"], (1,)),
        ("rust", ["/* one", "/* two */", "*/", "fn three() {}"], ()),
    ],
)
def test_a_comment_that_the_next_one_closes_is_an_error(
    language: str, lines: list[str], error_lines: tuple[int, ...]
) -> None:
    tree = parse(lines, language)
    assert tree is not None
    assert tree.error_lines == error_lines


def test_names_that_share_a_property_differ() -> None:
    tree = parse(["class A {", "  get x() {}", "  set x(v) {}", "}"], "javascript")
    assert tree is not None
    assert [symbol.name for symbol in tree.symbols] == ["A", "get x", "set x"]


def test_local_variables_are_no_symbols() -> None:
    tree = parse(["app.get('/', (request) => {", "  const user = 1;", "});"], "javascript")
    assert tree is not None
    assert [symbol.name for symbol in tree.symbols] == ["get /"]


def test_kotlin_bodies_on_one_line_are_understood() -> None:
    lines = ["object A { fun f() {} }", "class B { val x = 1 }", 'val t = "${ 1 }"']
    tree = parse(lines, "kotlin")
    assert tree is not None
    assert [symbol.name for symbol in tree.symbols][:2] == ["A", "B"]


def test_no_grammar_means_no_tree() -> None:
    assert parse(["x"], None) is None
    assert parse(["x"], "cobol") is None
    assert parse_fragment(["x"], "cobol") == ()
    assert parse_fragment(["x"], None) == ()


@pytest.fixture
def _fresh_grammars() -> Iterator[None]:
    try_load_grammar.cache_clear()
    yield
    try_load_grammar.cache_clear()


@pytest.mark.usefixtures("_fresh_grammars")
def test_a_missing_wheel_means_text_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter_go", None)
    assert parse(["package a"], "go") is None


@pytest.mark.usefixtures("_fresh_grammars")
def test_a_wheel_for_another_parser_means_text_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    import tree_sitter_go

    def incompatible() -> object:
        raise ValueError("Incompatible Language version 99")

    monkeypatch.setattr(tree_sitter_go, "language", incompatible)
    assert parse(["package a"], "go") is None


def test_grammars_are_loaded_on_first_use_only() -> None:
    program = (
        "import sys; from apply_service.edit.syntax.syntax import parse;"
        "before = [m for m in sys.modules if m.startswith('tree_sitter')];"
        "parse(['x = 1'], 'python');"
        "print(before, sorted(m for m in sys.modules if m.startswith('tree_sitter_')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = done.stdout.decode().split("] [")
    assert loaded[0] == "["
    assert "tree_sitter_python" in loaded[1]
    assert "tree_sitter_go" not in loaded[1]


def test_threads_share_grammars() -> None:
    lines, outline = read_case("typescript")
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(lambda _: parse(lines * 3, "typescript"), range(32)))
    assert all(tree == trees[0] for tree in trees)
    assert trees[0] is not None
    assert outline


def test_limits_give_no_tree() -> None:
    assert parse(["x = 1"] * 700_000, "python") is None
    assert parse(["x = 1;" * 20_000], "javascript") is None


@pytest.mark.parametrize(
    ("language", "lines"),
    [
        ("java", ["/*"] * 30_000),
        ("python", ["(" * 100_000]),
        ("json", ["["] * 100_000),
        ("javascript", ["}"] * 100_000),
        ("html", ["<div>" * 20_000]),
        ("yaml", ["- " * 50_000]),
        ("markdown", ["> " * 50_000]),
        ("bash", ["$(" * 20_000]),
        ("kotlin", ["a<b," * 20_000]),
        ("css", ["{" * 100_000]),
        ("yaml", [" " * depth + "a:" for depth in range(2000)]),
        ("swift", ["#" * 100_000]),
        ("scala", ["`" * 100_000]),
        ("tsx", ["a<b," * 50_000]),
        ("tsx", ["`"] * 20_001),
        ("bash", ["\0" * 1000] * 100),
    ],
)
def test_hostile_files_end(language: str, lines: list[str]) -> None:
    tree = parse(lines, language)
    if tree is not None:
        check_well_formed(tree.symbols, len(lines))


def names(symbols: Sequence[Symbol]) -> list[tuple[str, bool]]:
    return [(symbol.name, symbol.is_complete) for symbol in symbols]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("python", "    @x\n    def f(self):\n        return 1", [("f", True)]),
        ("python", "        return 1\n\n    def g(self):\n        pass", [("g", True)]),
        ("python", "class A(B):", [("A", False)]),
        ("python", "    @x\n    async def f(\n        self,", [("f", False)]),
        ("python", "else:\n    x = 1\n\ndef f():\n    pass", [("x", True), ("f", True)]),
        ("javascript", "  read() {\n    return 1;\n  }", [("read", True)]),
        ("javascript", "    return 1;\n  }\n\n  async open() {", [("open", False)]),
        ("typescript", "  a(x: string): void {\n    1;\n  }\n}\n\nfunction b() {}", None),
        ("tsx", "export class A extends B {", [("A", False)]),
        ("javascript", "  });\n\n  it('reads', () => {\n    a;\n  });", [("reads", True)]),
        ("javascript", "  a: 1,\n  b() {\n  },", [("b", True)]),
        ("javascript", " * const x = 1;\n */\nfunction f() {}", [("f", True)]),
        ("typescript", "function f() {}\n\n/**\n * const x = 1;", [("f", True)]),
        ("tsx", "  if (loading) {\n    return 1;\n  }\n  return (", []),
        ("typescript", "  const user = await find();\n  let y = 1;", []),
        ("typescript", "  private size = 1;\n  readonly b = 2;", [("size", True), ("b", True)]),
        ("javascript", "    done();\n  });\n  run(() => {\n    it();\n  });\n});", []),
        ("python", "        name = 1\n        other = 2", []),
        ("python", "    name = 1\n    other = 2", [("name", True), ("other", True)]),
        ("python", ") -> str:\n    return 1\n\ndef g():\n    pass", [("g", True)]),
        ("python", 'of the doc.\n"""\nx = 1', [("x", True)]),
        ("go", "\treturn nil\n}\n\nfunc (s *S) Close() error {\n\treturn nil\n}", None),
        ("rust", "    /// Doc.\n    pub fn new() -> Self {\n        Self\n    }", [("new", True)]),
        ("java", "    @Override\n    public void run() {\n        go();\n    }", [("run", True)]),
        ("java", "    public void run() {\n        go();", [("run", False)]),
        ("csharp", "    public int Size { get; set; }", [("Size", True)]),
        ("kotlin", "    override fun run() {\n        go()\n    }", [("run", True)]),
        ("swift", "    func run() {\n        go()\n    }", [("run", True)]),
        ("scala", "  def run(): Int = {\n    1\n  }", [("run", True)]),
        ("cpp", "    void run() {\n        go();\n    }", [("run", True)]),
        ("c", "    return 1;\n}\n\nint f(void) {\n    return 2;\n}", [("f", True)]),
        ("php", "    public function run() {\n        return 1;\n    }", [("run", True)]),
        ("ruby", "  def run\n    1\n  end\n\n  def stop", [("run", True), ("stop", False)]),
        ("lua", "function M.run()\n  return 1", [("M.run", False)]),
        ("bash", "run() {\n  echo 1", [("run", False)]),
        ("css", "  color: red;\n}\n\n.a {\n  top: 0;\n}", None),
        ("json", '  "a": {\n    "b": 1\n  },', [("a", True), ("b", True)]),
        ("yaml", "    image: x\n    ports:\n      - 1", [("image", True), ("ports", True)]),
    ],
)
def test_fragments_have_symbols(
    language: str, text: str, expected: list[tuple[str, bool]] | None
) -> None:
    symbols = parse_fragment(text.split("\n"), language)
    check_well_formed(symbols, text.count("\n") + 1)
    if expected is None:
        last = {"typescript": "b", "go": "S.Close", "css": ".a"}[language]
        assert (last, True) in names(symbols)
    else:
        assert names(symbols) == expected


def test_a_fragment_may_go_on_behind_its_marker() -> None:
    lines = ["    def run(self):", "        go()"]
    assert names(parse_fragment(lines, "python", next_indent=8)) == [("run", False)]
    assert names(parse_fragment(lines, "python", next_indent=4)) == [("run", True)]
    assert names(parse_fragment(lines, "python")) == [("run", True)]


def test_lines_of_a_fragment_are_its_own() -> None:
    lines = ["    return 1;", "  }", "", "  // Opens.", "  open() {", "    return 2;", "  }", "}"]
    (symbol,) = parse_fragment(lines, "typescript")
    assert (symbol.name, symbol.start, symbol.header, symbol.end) == ("open", 3, 4, 7)
    assert symbol.parent is None
    assert symbol.is_complete


def test_hostile_fragments_end() -> None:
    for language in ("python", "java", "rust"):
        check_well_formed(parse_fragment(["/*("] * 1500, language), 1500)


def test_the_parser_does_not_keep_the_texts_that_it_has_read() -> None:
    lines = [f"name_{number} = {number}" for number in range(4_000)]
    size = sum(map(len, lines))
    parse(lines, "python")
    tracemalloc.start()
    try:
        for _ in range(5):
            parse(lines, "python")
        assert tracemalloc.get_traced_memory()[0] < 5 * size / 2
    finally:
        tracemalloc.stop()
