"""Branches of conditions: the same name may be defined in each of them."""

from __future__ import annotations

import pytest

from apply_service.edit.place.merge import plan_merge
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.syntax.languages import language_of
from apply_service.edit.syntax.syntax import parse
from apply_service.edit.text.alternatives import are_alternatives, without_directives
from apply_service.edit.verdict.verdict import judge

C_BRANCHES = """\
#if FAST
int run(void) {
    return 1;
}
#elif SMALL
int run(void) {
    return 2;
}
#endif
int stop(void) {
#ifdef LOUD
    puts("stop");
#endif
    return 0;
}
""".splitlines()
PYTHON_BRANCHES = """\
if FAST:
    def run():
        return 1
else:
    def run():
        return 2
""".splitlines()


def codes(path: str, original: str, update: str, result: str | None = None) -> set[str]:
    """The findings about `result`, or about the merge itself."""
    lines, update_lines = original.splitlines(), update.splitlines()
    language = language_of(path, None, lines)
    tree = parse(lines, language)
    snippet = read_snippet(update_lines, lines, path=path, language=language)
    plan = plan_merge(lines, update_lines, snippet, path=path, language=language)
    merged = plan.best if result is None else result.splitlines()
    assert merged is not None
    return {one.code for one in judge(lines, snippet, merged, tree=tree).findings}


@pytest.mark.parametrize(
    ("lines", "language", "first", "second", "are"),
    [
        (C_BRANCHES, "c", 1, 5, True),
        (C_BRANCHES, "c", 1, 9, False),
        (C_BRANCHES, "c", 9, 11, False),
        (C_BRANCHES, "python", 1, 5, False),
        (PYTHON_BRANCHES, "python", 1, 4, True),
        (PYTHON_BRANCHES, "python", 4, 5, False),
        (["if A:", "    x = 1", "if B:", "    x = 1"], "python", 1, 3, False),
        (["try {", "  f();", "} catch (e) {", "  f();", "}"], "javascript", 1, 3, True),
        (["#endif", "#else", "int a;", "int a;"], "c", 2, 3, False),
    ],
)
def test_only_one_of_two_branches_is_in_force(
    lines: list[str], language: str, first: int, second: int, are: bool
) -> None:
    assert are_alternatives(lines, first, second, language) is are


def test_a_definition_in_another_branch_is_no_second_one() -> None:
    original = "#include <x.h>\n\nstatic int total;\n\nint get(void) {\n    return total;\n}\n"
    new = "#ifdef ATOMIC\nstatic _Atomic int total;\n#else\nstatic int total;\n#endif\n"
    update = f"#include <x.h>\n\n{new}\nint get(void) {{\n// ... existing code ...\n"
    assert codes("a.c", original, update) == set()
    beside = update.replace("#else\n", "").replace("#ifdef ATOMIC\n", "").replace("#endif\n", "")
    assert "defined_twice" in codes("a.c", original, beside)


def test_a_function_for_each_version_is_no_second_one() -> None:
    original = "import sys\n\nif sys.version_info > (3, 14):\n    get = library.get\nelse:\n\n"
    original += "    def get(cls):\n        return cls.x\n\n\nlast = 1\n"
    update = "# ...\nif sys.version_info > (3, 14):\n\n    def get(cls):\n"
    update += "        return library.get(cls, 1)\n\nelse:\n\n    def get(cls):\n# ...\n"
    assert codes("a.py", original, update) == set()


def test_conditions_within_a_statement_are_no_syntax_errors() -> None:
    original = "struct T t = {\n    .one = 1,\n    .two = 2,\n};\nint last;\n"
    new = "    .one = 1,\n#ifndef SMALL\n    .two = 2,\n#endif\n};\n"
    update = f"// ...\n{new}int last;\n"
    assert codes("a.cpp", original, update) == set()
    lines = update.splitlines()[1:]
    assert without_directives(lines) == [
        "    .one = 1,",
        "",
        "    .two = 2,",
        "",
        "};",
        "int last;",
    ]


def test_a_bracket_that_is_missing_in_both_branches_is_an_error() -> None:
    original = "int run(int a) {\n    return a;\n}\n"
    result = (
        "int run(int a) {\n#ifdef A\n    if (a) {\n#else\n    if (!a) {\n#endif\n    return a;\n}\n"
    )
    tree = parse(result.splitlines(), "c")
    assert tree is not None
    assert tree.error_lines
    assert parse(original.splitlines(), "c").error_lines == ()
