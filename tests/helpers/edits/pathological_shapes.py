"""Edits that are cheap to send and costly to plan: long lines, equal lines, nesting, many parts.

`SHAPES` builds each of them by name at a size between 0 and 1, where 1 is about what the default
limits on files and updates let through. `LEAN_SIZES` are for a suite that has to be quick.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from apply_service.apply.edit_request import EditRequest
from apply_service.edit.text.text_file import TextFile

GAP = "# ... existing code ...\n"
SLASH_GAP = "// ... existing code ...\n"

Build = Callable[[float], "Shape"]

SHAPES: dict[str, Build] = {}
LEAN_SIZES: dict[str, float] = {}


@dataclass(frozen=True, slots=True)
class Shape:
    """An original and an update; the language follows from the path."""

    original: str
    update: str
    path: str | None = None

    @property
    def edit(self) -> EditRequest:
        """The edit for the pipeline, without a model."""
        return EditRequest(
            original=TextFile.from_text(self.original),
            update=self.update,
            path=self.path,
            use_model="never",
        )


def _shape(*, lean: float = 0.03) -> Callable[[Build], Build]:
    def note(build: Build) -> Build:
        SHAPES[build.__name__] = build
        LEAN_SIZES[build.__name__] = lean
        return build

    return note


def _count(size: float, most: int) -> int:
    return max(4, round(size * most))


def _words(seed: int) -> Iterator[str]:
    generator = random.Random(seed)
    while True:
        yield "".join(generator.choices(string.ascii_lowercase, k=generator.randint(2, 9)))


def _text(seed: int, num_characters: int) -> str:
    generator = random.Random(seed)
    return "".join(generator.choices(string.ascii_letters + string.digits, k=num_characters))


def _replaced(text: str, *places: int) -> str:
    """The text with another character at each place."""
    characters = list(text)
    for place in places:
        characters[place] = "#" if characters[place] != "#" else "%"
    return "".join(characters)


# One line


@_shape(lean=1.0)
def one_letter_and_one_more(size: float) -> Shape:
    line = "x" * _count(size, 20_000)
    return Shape(line, line + "y")


@_shape(lean=1.0)
def one_letter_of_a_megabyte(size: float) -> Shape:
    line = "x" * _count(size, 900_000)
    return Shape(line, line + "y")


@_shape(lean=1.0)
def two_letters_in_turn(size: float) -> Shape:
    line = "ab" * _count(size, 20_000)
    return Shape(line, "b" + line + "a")


@_shape(lean=1.0)
def random_letters_three_changed(size: float) -> Shape:
    num = _count(size, 90_000)
    line = _text(1, num)
    return Shape(line, _replaced(line, num // 5, num // 2, num - 2))


@_shape(lean=1.0)
def one_line_of_json(size: float) -> Shape:
    items = [
        f'{{"id":{number},"name":"item {number}","price":{number * 7 % 100}}}'
        for number in range(_count(size, 1_700))
    ]
    line = f"[{','.join(items)}]"
    changed = line
    for number in (3, len(items) // 2, len(items) - 1):
        changed = changed.replace(f'"id":{number},', f'"id":{number + 100_000},')
    return Shape(line, changed, "data.json")


@_shape(lean=1.0)
def one_line_of_json_of_a_megabyte(size: float) -> Shape:
    line = "[" + ",".join(str(number * 37 % 1_000) for number in range(_count(size, 230_000))) + "]"
    return Shape(line, line.replace(",37,", ",38,"), "data.json")


@_shape(lean=1.0)
def minified_javascript(size: float) -> Shape:
    parts = [
        f"function a{number}(b,c){{return b*{number}+c[{number % 7}]}}"
        for number in range(_count(size, 2_200))
    ]
    code = "".join(parts)
    return Shape(code, code.replace("b*3+", "b*4+").replace("b*90+", "c*90+"), "app.min.js")


@_shape(lean=1.0)
def minified_css(size: float) -> Shape:
    code = "".join(f".a{number}{{margin:{number % 9}px}}" for number in range(_count(size, 4_000)))
    return Shape(code, code.replace("margin:3px", "margin:4px", 2), "app.min.css")


@_shape(lean=1.0)
def minified_code_between_markers(size: float) -> Shape:
    code = "".join(f"var v{number}={number};" for number in range(_count(size, 6_000)))
    original = f"/* head */\n{code}\n/* foot */\n"
    return Shape(original, f"{SLASH_GAP}{code}var last=1;\n{SLASH_GAP}", "bundle.js")


@_shape(lean=1.0)
def long_lines_of_letters(size: float) -> Shape:
    lines = [_text(number, 10_000) for number in range(_count(size, 90))]
    changed = [_replaced(line, 5_000) for line in lines[10:30]]
    return Shape("\n".join(lines) + "\n", "\n".join([*lines[8:10], *changed]) + "\n")


@_shape(lean=1.0)
def changed_stretch_of_long_rows(size: float) -> Shape:
    rows = [f"value_{number} = {'z' * 1_200}{number}" for number in range(_count(size, 400))]
    changed = [row + "1" for row in rows[100:170]]
    return Shape("\n".join(rows) + "\n", "\n".join(changed) + "\n", "values.py")


@_shape(lean=1.0)
def long_words(size: float) -> Shape:
    words = ["w" * _count(size, 100_000) + suffix for suffix in ("a", "b", "c")]
    original = "\n".join(f"{word} = {word}" for word in words) + "\n"
    return Shape(original, f"{GAP}{words[1]} = {words[1]}x\n{GAP}", "long.py")


@_shape(lean=1.0)
def combining_characters(size: float) -> Shape:
    line = "e" + "\u0301\u0323" * _count(size, 40_000)
    return Shape(f"{line}\nend\n", f"{line}\u0302\nend\n")


@_shape(lean=1.0)
def astral_characters(size: float) -> Shape:
    line = "\U0001f600\U0001f3ff" * _count(size, 40_000)
    return Shape(line, "\U0001f601" + line)


@_shape(lean=1.0)
def line_of_spaces(size: float) -> Shape:
    line = " " * _count(size, 400_000)
    return Shape(f"a = 1\n{line}b = 2\n", f"a = 1\n{line}b = 3\n", "wide.py")


# Many lines that say the same


@_shape()
def equal_lines(size: float) -> Shape:
    return Shape("a = 1\n" * _count(size, 100_000), f"{GAP}a = 1\nb = 2\na = 1\n{GAP}", "same.py")


@_shape()
def equal_lines_without_marker(size: float) -> Shape:
    num = _count(size, 6_000)
    return Shape("a = 1\n" * num, "a = 1\n" * (num // 2) + "b = 2\n" + "a = 1\n" * 40, "same.py")


@_shape()
def equal_lines_in_turn(size: float) -> Shape:
    num = _count(size, 40_000)
    update = f"{GAP}{'{' * 1}\nfoo();\n}}\nbar();\n{{\n{GAP}"
    return Shape("{\nfoo();\n}\n" * num, update, "same.js")


@_shape()
def equal_segments(size: float) -> Shape:
    update = GAP + f"a = 1\nb = 2\n{GAP}" * _count(size, 390)
    return Shape("a = 1\nb = 2\nc = 3\n" * _count(size, 4_000), update, "same.py")


@_shape()
def blank_lines_alone(size: float) -> Shape:
    return Shape("\n" * _count(size, 500_000), f"{GAP}\n\n\na = 1\n\n\n{GAP}")


@_shape()
def blank_lines_between(size: float) -> Shape:
    num = _count(size, 30_000)
    original = "".join(f"a{number % 50} = 1\n{chr(10) * (number % 7)}" for number in range(num))
    update = "".join(f"a{number % 50} = 1\n" for number in range(num // 10, num // 5))
    return Shape(original, f"{GAP}{update}{GAP}", "airy.py")


@_shape()
def lines_one_digit_apart(size: float) -> Shape:
    num = _count(size, 20_000)
    original = "".join(f"value = table[{number}]\n" for number in range(num))
    update = "".join(f"value = table[{number}] + 1\n" for number in range(300))
    return Shape(original, f"{GAP}{update}{GAP}", "digits.py")


@_shape()
def every_line_changed(size: float) -> Shape:
    num = _count(size, 20_000)
    original = "".join(f"item_{number} = {number}\n" for number in range(num))
    return Shape(original, original.replace(" = ", " = 1 + "), "items.py")


@_shape()
def file_upside_down(size: float) -> Shape:
    lines = [f"item_{number} = {number}\n" for number in range(_count(size, 20_000))]
    return Shape("".join(lines), "".join(reversed(lines)), "items.py")


@_shape()
def file_shuffled(size: float) -> Shape:
    lines = [f"call({number % 400})\n" for number in range(_count(size, 8_000))]
    shuffled = list(lines)
    random.Random(4).shuffle(shuffled)
    return Shape("".join(lines), "".join(shuffled), "calls.py")


@_shape()
def segments_out_of_order(size: float) -> Shape:
    num = _count(size, 390)
    lines = [f"step_{number} = run({number})\n" for number in range(20 * num)]
    picked = list(range(0, 20 * num, 20))
    random.Random(5).shuffle(picked)
    parts = [f"{lines[number]}more_{number} = 1\n{lines[number + 1]}" for number in picked]
    return Shape("".join(lines), GAP + GAP.join(parts) + GAP, "steps.py")


@_shape()
def definitions_of_one_name(size: float) -> Shape:
    original = "def f(a):\n    return a\n\n\n" * _count(size, 20_000)
    return Shape(original, f"{GAP}def f(a):\n    return a + 1\n{GAP}", "same.py")


@_shape()
def classes_of_equal_methods(size: float) -> Shape:
    original = "".join(
        f"class C{number}:\n    def get(self):\n        return self.value\n\n"
        for number in range(_count(size, 6_000))
    )
    update = f"{GAP}    def get(self):\n        return self.value + 1\n\n{GAP}" * 20
    return Shape(original, update, "classes.py")


@_shape()
def many_renamed_definitions(size: float) -> Shape:
    num = _count(size, 4_000)
    original = "".join(
        f"def old_{number}(a):\n    return a + {number}\n\n" for number in range(num)
    )
    return Shape(original, original.replace("old_", "new_"), "names.py")


# Nesting


@_shape()
def nested_brackets(size: float) -> Shape:
    depth = _count(size, 100_000)
    return Shape("[" * depth + "]" * depth, "[" * depth + "1" + "]" * depth, "deep.json")


@_shape()
def nested_lines_of_brackets(size: float) -> Shape:
    depth = _count(size, 20_000)
    original = "[\n" * depth + "1\n" + "]\n" * depth
    return Shape(original, f"{SLASH_GAP}[\n[\n2\n]\n]\n{SLASH_GAP}", "deep.json")


@_shape()
def nested_blocks(size: float) -> Shape:
    depth = _count(size, 1_200)
    original = "".join(f"{' ' * level}if a{level}:\n" for level in range(depth))
    original += " " * depth + "pass\n"
    update = f"{' ' * (depth - 1)}if b:\n{' ' * depth}go()\n"
    return Shape(original, f"{GAP}{update}{GAP}", "deep.py")


@_shape()
def nested_functions(size: float) -> Shape:
    depth = _count(size, 15_000)
    original = "function f() {\n" * depth + "}\n" * depth
    return Shape(original, f"{SLASH_GAP}function f() {{\n  g();\n}}\n{SLASH_GAP}", "deep.js")


@_shape()
def nested_tags(size: float) -> Shape:
    depth = _count(size, 20_000)
    original = "<div>\n" * depth + "</div>\n" * depth
    return Shape(original, "<!-- ... -->\n<div>\n<p>new</p>\n</div>\n<!-- ... -->\n", "deep.html")


@_shape()
def nested_type_arguments(size: float) -> Shape:
    code = "type T = " + "A<" * _count(size, 20_000) + "B"
    return Shape(f"{code}\nlet a = 1\n", f"{SLASH_GAP}let a = 2\n", "deep.ts")


@_shape()
def nested_templates(size: float) -> Shape:
    code = "let s = " + "`${" * _count(size, 20_000)
    return Shape(f"{code}\nlet a = 1\n", f"{SLASH_GAP}let a = 2\n", "deep.js")


@_shape()
def nested_conditions_of_c(size: float) -> Shape:
    num = _count(size, 8_000)
    original = (
        "".join(f"#if A{number}\nint a{number};\n" for number in range(num)) + "#endif\n" * num
    )
    return Shape(original, f"{SLASH_GAP}int a3 = 4;\n{SLASH_GAP}", "deep.c")


@_shape()
def nested_lists_of_yaml(size: float) -> Shape:
    original = "".join(
        f"{' ' * (number % 90)}- a{number}:\n" for number in range(_count(size, 9_000))
    )
    return Shape(original, f"{GAP}- a3: 4\n{GAP}", "deep.yaml")


@_shape()
def nested_quotes_of_markdown(size: float) -> Shape:
    original = "> " * _count(size, 10_000) + "text\n" + "*_" * _count(size, 40_000) + "\n"
    return Shape(f"# A\n{original}# B\n", "<!-- ... -->\n# B\nmore\n", "deep.md")


@_shape()
def brackets_never_closed(size: float) -> Shape:
    original = "".join(f"call_{number}((\n" for number in range(_count(size, 40_000)))
    return Shape(original, f"{GAP}call_7((\n1))\n{GAP}", "open.py")


@_shape()
def code_of_another_language(size: float) -> Shape:
    words = _words(6)
    lines = [" ".join(next(words) for _ in range(8)) for _ in range(_count(size, 9_000))]
    update = f"{lines[40]}\n{lines[41]} new words\n{lines[42]}\n"
    return Shape("\n".join(lines), f"{SLASH_GAP}{update}{SLASH_GAP}", "words.cpp")


# Formats of updates


@_shape()
def markers_as_many_as_may_be(size: float) -> Shape:
    num = _count(size, 399)
    lines = [f"step_{number} = run({number})\n" for number in range(25 * num)]
    parts = [f"{lines[25 * number]}more_{number} = 1\n" for number in range(num)]
    return Shape("".join(lines), GAP + GAP.join(parts) + GAP, "steps.py")


@_shape()
def markers_and_nothing_else(size: float) -> Shape:
    return Shape("a = 1\n" * 100, GAP * _count(size, 40_000) + "b = 1\n", "a.py")


@_shape()
def named_markers(size: float) -> Shape:
    num = _count(size, 390)
    original = "".join(f"def f{number}():\n    return {number}\n\n" for number in range(num))
    update = "".join(
        f"# ... existing f{number} and f{number + 1} ...\ndef g{number}():\n    pass\n"
        for number in range(num)
    )
    return Shape(original, update, "named.py")


@_shape()
def markers_inside_one_line(size: float) -> Shape:
    original = f"call({', '.join(f'a{number}' for number in range(_count(size, 20_000)))})\n"
    update = f"call({', '.join(['a1', '/* ... */'] * _count(size, 9_000))})\n"
    return Shape(original, update, "call.js")


@_shape()
def lines_almost_markers(size: float) -> Shape:
    num = _count(size, 8_000)
    lines = [
        "// " + "." * num,
        "# " + "... existing " * num,
        "\u2026 ." * num,
        "/*" * num,
        "<!--" * num + "...",
        "{/* " + " ... " * num,
        '"""' * num,
        "// ..." + " " * num + "x",
        "-- rest of " + "the " * num,
        "# (" * num + "unchanged" + ")" * num,
    ]
    return Shape("\n".join(lines) + "\nend\n", "\n".join(reversed(lines)) + "\nnew\n", "odd.js")


@_shape()
def lines_almost_assignments(size: float) -> Shape:
    num = _count(size, 4_000)
    lines = [
        "a " * num,
        "a." * num + "=",
        '"' * num + ":",
        "'a" * num + "=>",
        "a \t" * num + ":=",
        "def " * num,
        "class A(" * num,
        "public static " * num + "f(",
        "const [" + "a, " * num,
        "#" * num + " x",
    ]
    changed = [line + " 1" for line in lines]
    return Shape("\n".join(lines) + "\n", "\n".join(changed[1:9]) + "\n", "odd.py")


@_shape()
def removals_of_many_names(size: float) -> Shape:
    num = _count(size, 5_000)
    original = "".join(f"def f{number}():\n    pass\n\n" for number in range(num))
    names = ", ".join(f"f{number}" for number in range(0, num, 2))
    update = f"{GAP}# remove {names}\n{GAP}# {names.replace(', ', ' and ')} removed\n{GAP}"
    return Shape(original, update, "names.py")


@_shape()
def removals_line_by_line(size: float) -> Shape:
    num = _count(size, 3_000)
    original = "".join(f"def f{number}():\n    pass\n\n" for number in range(num))
    update = "".join(f"{GAP}# remove f{number}\n" for number in range(0, num, 3))
    return Shape(original, update + GAP, "names.py")


@_shape()
def fence_of_everything(size: float) -> Shape:
    lines = "".join(f"item_{number} = {number}\n" for number in range(_count(size, 30_000)))
    return Shape(lines, f"Here it is:\n```python\n{lines}last = 1\n```\nDone.\n", "items.py")


@_shape()
def fences_and_nothing_else(size: float) -> Shape:
    num = _count(size, 40_000)
    return Shape("a = 1\nb = 2\n", "```\n" * num + "a = 2\n" + "~~~\n" * num, "a.md")


@_shape()
def fences_of_rising_length(size: float) -> Shape:
    fences = "".join("`" * (number % 1_000 + 3) + "\n" for number in range(_count(size, 2_000)))
    return Shape("# A\ntext\n", f"{fences}# A\nother\n", "a.md")


@_shape()
def diff_of_many_hunks(size: float) -> Shape:
    num = _count(size, 10_000)
    original = "".join(f"item_{number} = {number}\n" for number in range(2 * num))
    hunks = "".join(
        f"@@ -{2 * n + 1},2 +{2 * n + 1},2 @@\n item_{2 * n} = {2 * n}\n"
        f"-item_{2 * n + 1} = {2 * n + 1}\n+item_{2 * n + 1} = 0\n"
        for n in range(num)
    )
    return Shape(original, f"--- a/items.py\n+++ b/items.py\n{hunks}", "items.py")


@_shape()
def diff_of_equal_hunks(size: float) -> Shape:
    hunks = "@@ @@\n a = 1\n-b = 2\n+b = 3\n" * _count(size, 390)
    return Shape("a = 1\nb = 2\n" * _count(size, 20_000), f"--- a\n+++ b\n{hunks}", "same.py")


@_shape()
def diff_of_one_hunk_almost_right(size: float) -> Shape:
    num = _count(size, 10_000)
    lines = [f"item_{number % 300} = {number % 77}\n" for number in range(num)]
    old = "".join(f"-{line.replace('= 7', '=  8')}" for line in lines[: num // 2])
    new = "".join(f"+{line}" for line in lines[: num // 2])
    return Shape("".join(lines), f"@@ -1,9 +1,9 @@\n{old}{new}", "items.py")


@_shape()
def diff_of_many_files(size: float) -> Shape:
    files = "".join(
        f"--- a/file_{number}.py\n+++ b/file_{number}.py\n@@ -1 +1 @@\n-a = {number}\n+a = 0\n"
        for number in range(_count(size, 1_000))
    )
    return Shape("a = 1\nb = 2\n", files, "file_7.py")


@_shape()
def patch_of_many_files(size: float) -> Shape:
    files = "".join(
        f"*** Update File: file_{number}.py\n@@\n-a = {number}\n+a = 0\n"
        for number in range(_count(size, 1_000))
    )
    return Shape("a = 1\nb = 2\n", f"*** Begin Patch\n{files}*** End Patch\n", "file_7.py")


@_shape()
def patch_of_many_hunks(size: float) -> Shape:
    hunks = "".join(
        f"@@ def f{number}\n a = {number % 5}\n-b = 2\n+b = 3\n"
        for number in range(_count(size, 390))
    )
    update = f"*** Begin Patch\n*** Update File: a.py\n{hunks}*** End Patch\n"
    return Shape("a = 1\nb = 2\n" * _count(size, 9_000), update, "a.py")


@_shape()
def search_and_replace_of_many_blocks(size: float) -> Shape:
    num = _count(size, 2_000)
    original = "".join(f"item_{number} = {number}\n" for number in range(num))
    blocks = "".join(
        f"<<<<<<< SEARCH\nitem_{n} = {n}\n=======\nitem_{n} = 0\n>>>>>>> REPLACE\n"
        for n in range(num)
    )
    return Shape(original, blocks, "items.py")


@_shape()
def search_and_replace_of_equal_blocks(size: float) -> Shape:
    block = "<<<<<<< SEARCH\na = 1\n\nb = 2\n=======\na = 2\n>>>>>>> REPLACE\n"
    return Shape("a = 1\n\nb = 2\n" * _count(size, 9_000), block * _count(size, 390), "same.py")


@_shape()
def search_of_almost_the_file(size: float) -> Shape:
    num = _count(size, 8_000)
    lines = [f"call({number % 90}, {number % 7})\n" for number in range(num)]
    wanted = "".join(line.replace("89", "98") for line in lines)
    block = f"<<<<<<< SEARCH\n{wanted}=======\nnothing()\n>>>>>>> REPLACE\n"
    return Shape("".join(lines), block, "calls.py")


@_shape()
def signs_of_search_and_replace_alone(size: float) -> Shape:
    num = _count(size, 30_000)
    update = "<<<<<<< SEARCH\n" * num + "=======\n" * num + ">>>>>>> REPLACE\n"
    return Shape("a = 1\n", update, "a.py")


# Bytes


@_shape()
def line_ends_of_all_kinds(size: float) -> Shape:
    ends = ("\n", "\r\n", "\r", "\r\r\n", "\n\r")
    num = _count(size, 60_000)
    original = "".join(f"a{number % 99} = 1{ends[number % 5]}" for number in range(num))
    return Shape(original, f"{GAP}a5 = 1\r\na6 = 2\r{GAP}", "ends.py")


@_shape()
def separators_that_end_no_line(size: float) -> Shape:
    text = "a\u2028b\u0085c\x0bd\x0ce\x1cf\u00a0g " * _count(size, 30_000)
    return Shape(text, text + "\u2029h")


@_shape()
def invisible_characters(size: float) -> Shape:
    line = "\u200b\u202e\ufeff\u2066a" * _count(size, 20_000)
    return Shape(f"{line}\nb\n", f"{line}\u200b\nb\n")


# Sizes that do not match


@_shape()
def large_update_of_a_small_file(size: float) -> Shape:
    update = "".join(f"new_{number} = {number}\n" for number in range(_count(size, 40_000)))
    return Shape("a = 1\nb = 2\nc = 3\n", f"a = 1\n{GAP}{update}c = 3\n", "small.py")


@_shape()
def small_update_of_a_large_file(size: float) -> Shape:
    words = _words(7)
    original = "".join(
        f"{next(words)}({next(words)}, {next(words)})\n" for _ in range(_count(size, 40_000))
    )
    return Shape(original, "call_me(first, second)\n", "large.py")


@_shape()
def large_update_of_a_large_file(size: float) -> Shape:
    words = _words(8)
    lines = [
        f"{next(words)} = {next(words)}({number % 12})\n" for number in range(_count(size, 40_000))
    ]
    update = "".join(line.replace("(3)", "(33)") for line in lines[: len(lines) // 2])
    return Shape("".join(lines), f"{update}{GAP}", "large.py")
