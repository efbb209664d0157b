"""Definitions of which an update shows the beginning or the end, and markers for the rest."""

from __future__ import annotations

import pytest

from apply_service.edit.place.merge import MergePlan, plan_merge, splice
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.syntax.definitions import find_definitions

STORE = """\
class Store:
    def __init__(self, path):
        self.path = path
        self.items = {}

    def load(self):
        data = json.loads(self.path.read_text())
        for key, value in data.items():
            self.items[key] = value
        return self.items

    def save(self):
        self.path.write_text(json.dumps(self.items))

    def get(self, key):
        return self.items[key]


class Other:
    def close(self):
        pass
"""
API = """\
export class Api {
  async get(path) {
    const response = await fetch(this.url + path);
    if (!response.ok) {
      throw new Error(response.status);
    }
    return response.json();
  }

  async post(path, body) {
    const response = await fetch(this.url + path, { method: 'POST', body });
    return response.json();
  }
}
"""


def planned(original: str, update: str, language: str = "python") -> MergePlan:
    lines = original.splitlines()
    snippet = read_snippet(update.splitlines(), lines, language=language)
    return plan_merge(lines, snippet, language=language)


def merged(plan: MergePlan) -> str:
    assert plan.best is not None
    return "\n".join(splice(plan.original_lines, plan.best)) + "\n"


@pytest.mark.parametrize(
    "added",
    [
        "        if not self.path.exists():\n            return self.items\n",
        "        self.check()\n",
        '        """Read all items."""\n',
    ],
    ids=["returns early", "line", "docstring"],
)
@pytest.mark.parametrize("ends", ["", "# ... existing code ...\n"], ids=["end", "marker"])
def test_a_marker_deeper_than_a_header_stands_for_the_rest_of_the_body(
    added: str, ends: str
) -> None:
    header = "    def load(self):\n"
    update = f"{header}{added}        # ... existing code ...\n\n{ends}"
    assert merged(planned(STORE, update)) == STORE.replace(header, header + added)


def test_a_marker_beside_a_header_stands_for_what_follows_the_definition() -> None:
    update = (
        "    def save(self):\n        dump(self.items, self.path)\n    # ... existing code ...\n"
    )
    old = "self.path.write_text(json.dumps(self.items))"
    assert merged(planned(STORE, update)) == STORE.replace(old, "dump(self.items, self.path)")


def test_a_short_definition_is_whole_though_its_end_is_like_its_header() -> None:
    update = (
        "# ... existing code ...\n"
        "    def get(self, key, default=None):\n"
        "        return self.items.get(key, default)\n"
        "# ... existing code ...\n"
    )
    new = "\n".join(update.splitlines()[1:3])
    old = "    def get(self, key):\n        return self.items[key]"
    assert merged(planned(STORE, update)) == STORE.replace(old, new)


def test_a_changed_header_is_known_by_its_name_and_a_changed_line_by_its_likeness() -> None:
    update = (
        "class Store:\n"
        "    # ... existing code ...\n"
        "    def get(self, key, default=None):\n"
        "        # ... existing code ...\n"
        "        return self.items.get(key, default)\n"
        "# ... existing code ...\n"
    )
    plan = planned(STORE, update)
    assert merged(plan) == STORE.replace(
        "def get(self, key):", "def get(self, key, default=None):"
    ).replace("return self.items[key]", "return self.items.get(key, default)")
    assert not plan.is_unique, "the line may be a new one"


def test_the_header_of_a_method_with_a_body_of_markers() -> None:
    update = (
        "export class Api {\n"
        "  async get(path, options = {}) {\n"
        "    // ... existing code ...\n"
        "  }\n"
        "  // ... existing code ...\n"
        "}\n"
    )
    found = merged(planned(API, update, "javascript"))
    assert found == API.replace("async get(path) {", "async get(path, options = {}) {")


def test_a_marker_between_two_parts_stands_for_something() -> None:
    original = 'int main(void) {\n    printf("%d\\n", add(1));\n    return 0;\n}\n'
    added = '    printf("%d\\n", count);\n'
    update = f"int main(void) {{\n    // ... existing code ...\n{added}    return 0;\n}}\n"
    assert merged(planned(original, update, "c")) == original.replace(
        "    return", f"{added}    return"
    )


def test_the_end_of_a_file_stays_if_it_defines_what_the_update_does_not_show() -> None:
    original = STORE + "\n    class Meta:\n        size = 1\n\n    def last(self):\n        pass\n"
    update = "class Other:\n    # ...\n    class Meta:\n        size = 1\n        name = 2\n"
    assert merged(planned(original, update)) == original.replace(
        "size = 1\n", "size = 1\n        name = 2\n"
    )


def test_the_only_line_of_its_name_gives_way() -> None:
    original = (
        "namespace A\n{\n    public class C\n    {\n        public int Size => 1;\n    }\n}\n"
    )
    update = "// ...\n        public int Size => 2;\n// ...\n"
    assert merged(planned(original, update, "csharp")) == original.replace("1;", "2;")


FIND = """\
def find(items, key):
    \"\"\"The item with the key.\"\"\"
    for item in items:
        if item.key == key:
            return item
    raise KeyError(key)


def other(items):
    return sorted(items)
"""
HEAD, _, OLD_BODY = FIND.split("\n\n\n")[0].partition('key."""\n')


@pytest.mark.parametrize(
    "body",
    [
        "    item = items.get(key)\n    return item or None",
        "    item = items.get(key)\n    check(item)\n    raise KeyError(item)",
    ],
    ids=["returns", "raises"],
)
def test_a_definition_that_is_left_for_good_is_whole(body: str) -> None:
    """Its last line is like one in the middle of the old definition, yet nothing follows it."""
    update = f'# ...\n{HEAD}key."""\n{body}\n# ...\n'
    assert merged(planned(FIND, update)) == FIND.replace(OLD_BODY, body)


def test_a_definition_that_is_left_in_an_inner_block_goes_on() -> None:
    update = (
        f'# ...\n{HEAD}key."""\n    for item in items:\n'
        "        if item.key == key and item.is_open:\n            return item\n# ...\n"
    )
    plan = planned(FIND, update)
    assert merged(plan) == FIND.replace("== key:", "== key and item.is_open:")
    assert plan.is_unique
    end = FIND.splitlines().index("    raise KeyError(key)")
    assert all(one.end <= end for one in plan.candidates[0])


def test_a_header_without_its_expression_is_what_follows() -> None:
    original = (
        "class Ledger {\n  def balance(account: String): Int =\n    all(account).sum\n\n"
        "  def accounts: Set[String] =\n    all.map(_.account).toSet\n}\n"
    )
    new = "  def balance(account: String, on: Date): Int =\n    all(account).filter(_.at(on)).sum\n"
    old = "  def balance(account: String): Int =\n    all(account).sum\n"
    update = f"{new}\n  def accounts: Set[String] =\n"
    for marker in ("", "  // ...\n"):
        found = planned(original, update + marker, "scala")
        assert merged(found) == original.replace(old, new)


def test_without_a_grammar_a_changed_header_over_a_marker_keeps_its_body_too() -> None:
    original = (
        ".notice {\n  padding: 2px;\n\n"
        '  @each $kind in ("info", "error") {\n    &--#{$kind} {\n'
        "      color: tone($kind);\n    }\n  }\n}\n\n.nav {\n  margin: 0;\n}\n"
    )
    header = '  @each $kind in ("info", "success", "error") {\n'
    plan = planned(original, f"// ...\n{header}// ...\n", "scss")
    assert merged(plan) == original.replace('  @each $kind in ("info", "error") {\n', header)


@pytest.mark.parametrize(
    ("lines", "is_complete"),
    [
        (["sub load {"], False),
        (["sub load {", "  1;"], False),
        (["sub load {", "  1;", "}"], True),
        (["sub load {", "sub save {", "}"], True),
        (["def load:"], False),
        (["def load:", "  1"], True),
        (["function load", "  1"], True),
    ],
)
def test_by_its_lines_a_definition_is_whole_if_what_it_opens_is_closed_or_follows(
    lines: list[str], is_complete: bool
) -> None:
    assert find_definitions(lines)[0].is_complete == is_complete
