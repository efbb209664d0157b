"""Edits that add a variant, a field, or an entry of a list or table."""

from __future__ import annotations

import random
import re

from training.generated.small_edits import code
from training.generated.small_edits.edit import (
    MAX_CONTEXT_ROWS,
    Edit,
    New,
    Rows,
    Source,
    alike_label,
    body_indent,
    inserted,
    new_name,
    value_of,
)
from training.generated.small_edits.places import Block, is_comment


def variant(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new variant of an enum, at its end or behind another one."""
    lines, items = source.lines, block.items
    kinds = (
        "enum_constant",
        "enum_entry",
        "enum_variant",
        "enumerator",
        "enum_member_declaration",
        "property_identifier",
        "enum_assignment",
        "enum_case",
        "const_spec",
    )
    places = [
        index + 1
        for index, item in enumerate(items)
        if item.type in kinds and item.end - item.start == 1
    ]
    if len(places) < 2:
        return None
    index = places[-1] if rng.random() < 0.7 else rng.choice(places)
    above = lines[items[index - 1].start]
    found = re.fullmatch(
        r"(\s*)(case )?(\w+)(?:(\s*=\s*)(\"[\w \-.]*\"|'[\w \-.]*'|\d+))?([,;]?)", above
    )
    word = code.pick_new(code.NEW_WORDS, "\n".join(lines[block.start : block.stop]), rng)
    if found is None or word is None or found[6] == ";":
        return None
    label = alike_label(
        found[3],
        [
            lines[items[place - 1].start].strip().split()[-1 if found[2] and not found[4] else 0]
            for place in places
        ],
        word,
    )
    value = ""
    if found[5]:
        last = index == len(items)
        if found[5].isdigit() and not last:
            return None
        quote = found[5][0]
        value = found[4] + (
            str(int(found[5]) + 1)
            if found[5].isdigit()
            else quote + code.styled(word, found[5].strip("\"'") or word) + quote
        )
    separator = found[6] or ("," if not found[2] and source.language not in ("go", "swift") else "")
    return _entry_edit(
        "variant",
        source,
        block,
        index,
        found[1] + (found[2] or "") + label + value,
        separator,
        rng,
        role="variants",
    )


def _entry_edit(
    kind: str,
    source: Source,
    block: Block,
    index: int,
    entry: str,
    separator: str,
    rng: random.Random,
    *,
    role: str,
) -> Edit | None:
    """A one-line entry behind the first `index` items; the one above gets its separator."""
    lines, items = source.lines, block.items
    is_last = index == len(items)
    if not index:
        return inserted(kind, source, block, 0, (entry + separator,), rng, role=role)
    row = items[index - 1].end - 1
    above = lines[row]
    if not separator or above.rstrip().endswith(separator):
        return inserted(kind, source, block, index, (entry + separator,), rng, role=role)
    if not is_last or row + 1 != block.end or re.search(r"//|#|--|/\*", above):
        return None
    new = (above.rstrip() + separator, entry)
    first = items[max(index - rng.choice((1, 1, 2)), 0)].start
    if items[index - 1].start != row or row - first > MAX_CONTEXT_ROWS:
        first = row
    return Edit(kind, block, row, row + 1, new, (Rows(first, row), New()), first, row + 1, role)


_FIELD_TYPES = frozenset(
    (
        "expression_statement",
        "property_signature",
        "public_field_definition",
        "field_definition",
        "field_declaration",
        "property_declaration",
    )
)


def struct_field(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new field of a class or struct, behind another one."""
    lines, items, language = source.lines, block.items, source.language
    places = [
        index + 1
        for index, item in enumerate(items)
        if item.type in _FIELD_TYPES and item.end - item.start <= 2
    ]
    found = new_name(source, block, rng)
    if not places or found is None:
        return None
    index = places[-1] if rng.random() < 0.6 else rng.choice(places)
    above = lines[items[index - 1].end - 1].strip()
    name, kind = found
    value = value_of(kind, source, rng)
    type_name = code.type_name(kind, language)
    if language == "python":
        text = _python_field(above, name, type_name, value)
    elif (
        not code.templates("fields", language)
        or not re.search(r"\w", above)
        or (language in ("c", "cpp", "java", "csharp", "php") and not above.endswith(";"))
    ):
        return None
    else:
        text = _typed_field(source, block, above, (name, type_name, value), rng)
    if text is None:
        return None
    return inserted(
        "field", source, block, index, (body_indent(source, block) + text,), rng, role="fields"
    )


def _python_field(above: str, name: str, type_name: str, value: str) -> str | None:
    found = re.fullmatch(r"(\w+)(?:: ([^=]+?))?(?: = (.+))?", above)
    if found is None or not (found[2] or found[3]) or found[1].startswith("__"):
        return None
    named = code.styled(name, found[1]) if found[1].isupper() else name
    return named + (f": {type_name}" if found[2] else "") + (f" = {value}" if found[3] else "")


def _typed_field(
    source: Source, block: Block, above: str, new: tuple[str, str, str], rng: random.Random
) -> str | None:
    language = "typescript" if source.language == "tsx" else source.language
    name, type_name, value = new
    is_signature = ":" in above and block.kind == "struct"
    if language == "typescript" and not is_signature:
        form = rng.choice(
            ("private {n}: {t} = {v};", "private readonly {n}: {t} = {v};", "protected {n}?: {t};")
        )
    elif (language == "rust" and not re.search(r"\w: .+,$", above)) or (
        language == "go" and not re.match(r"\w+\s+\S", above)
    ):
        return None
    else:
        form = rng.choice(code.templates("fields", language))
    own = re.findall(r"(?:^|[\s*&$])(_?[A-Za-z]\w*)\s*(?:=|;|\?|:|\s|$)", above)
    like = re.match(r"\w+", above)
    style = {
        "go": like[0] if like else "",
        "rust": "a_b",
        "php": "aB",
        "java": "aB",
        "kotlin": "aB",
        "swift": "aB",
        "typescript": "aB",
        "csharp": "aB",
        "javascript": "aB",
    }
    named = code.styled(name, style.get(language) or (own[-1] if own else "a_b"))
    if language == "cpp" and re.search(r"\w_(?:\s*=.*|\{.*)?;$", above):
        named = name + "_"
    if language == "csharp" and re.search(r"\b_\w+", above):
        named = "_" + named
    end = above[-1] if above[-1] in ";," else ""
    text = form.format(
        n=named, t=type_name, v=value, e=end, a="pub " if above.startswith("pub ") else ""
    )
    return text.replace("* ", "*") if language == "c" else text


_PAIR = re.compile(
    r"(\s*(?:- )?)([\"':]?)([A-Za-z_][\w.\-]*)(\2?)(\s*(?::|=>|=)\s+|:\s+)(.+?)(,?)$"
)
_TEXT_ITEM = re.compile(r"(\s*(?:- )?)([\"'])([\w.\-/@]+)\2(,?)$")
_WORD_ITEM = re.compile(r"(\s*(?:- )?)([A-Za-z][\w.\-]*)(,?)$")
_VERSION = re.compile(r"[\^~]?\d+\.\d+")
_PACKAGES = ("lodash", "chalk", "rimraf", "cross-env", "prettier", "husky", "typescript", "debug")
_SCRIPTS_OF_PACKAGE = (
    ("lint:fix", "eslint . --fix"),
    ("format", "prettier --write ."),
    ("clean", "rimraf dist"),
    ("typecheck", "tsc --noEmit"),
    ("coverage", "c8 npm test"),
    ("docs", "typedoc src"),
)
_NO_COMMA = frozenset(("yaml", "shell"))


def entry(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new entry of a list, dictionary or table, behind another one or first."""
    lines, items = source.lines, block.items
    places = [
        index + 1
        for index, item in enumerate(items)
        if item.end - item.start == 1 and not is_comment(item)
    ]
    if len(items) < 2 or not places:
        return None
    index = places[-1] if rng.random() < 0.4 else rng.choice(places)
    above = lines[items[index - 1].start]
    made = _entry_like(above, source, block, rng)
    if made is None:
        return None
    is_table = block.node.type == "table"
    separator = "" if source.language in _NO_COMMA or is_table else ","
    if index == 1 and rng.random() < 0.3 and separator in above:
        index = 0
    return _entry_edit("entry", source, block, index, made, separator, rng, role="entries")


def _entry_like(above: str, source: Source, block: Block, rng: random.Random) -> str | None:
    text = "\n".join(source.lines[block.start : block.stop])
    header = source.lines[block.body - 1].strip()
    item = _TEXT_ITEM.match(above)
    if item:
        word = code.pick_new(code.NEW_WORDS, text, rng)
        stem = re.search(r"[A-Za-z][\w\-]*(?=\.\w+$)|[A-Za-z][\w\-]*$", item[3])
        is_code = bool(re.fullmatch(r"[A-Z]+\d+", item[3]))
        if word is None or stem is None or is_code or item[3].count(stem[0]) > 1:
            return None
        return (
            item[1]
            + item[2]
            + item[3][: stem.start()]
            + code.styled(word, stem[0])
            + item[3][stem.end() :]
            + item[2]
        )
    word_item = _WORD_ITEM.match(above)
    if word_item and source.language not in ("json", "toml", "php", "c", "cpp", "csharp", "go"):
        word = code.pick_new(code.NEW_WORDS, text, rng)
        is_name = source.language in ("yaml", "shell") or word_item[2].isidentifier()
        return word_item[1] + code.styled(word, word_item[2]) if word and is_name else None
    pair = _PAIR.match(above)
    if pair is None or (source.language == "yaml" and pair[1].strip()):
        return None
    if '"scripts"' in header:
        free = [one for one in _SCRIPTS_OF_PACKAGE if f'"{one[0]}"' not in text]
        return '{}"{}": "{}"'.format(pair[1], *rng.choice(free)) if free else None
    value = pair[6].strip()
    if "ependencies" in header or _VERSION.match(value.strip("\"'")):
        name = code.pick_new(_PACKAGES, text, rng) if "ependencies" in header else None
        return (
            f'{pair[1]}"{name}": "^{rng.randint(1, 6)}.{rng.randint(0, 9)}.{rng.randint(0, 9)}"'
            if name
            else None
        )
    kind = (
        "num"
        if re.fullmatch(r"-?\d+", value)
        else "bool"
        if re.fullmatch(r"true|false|True|False", value)
        else "str"
        if re.fullmatch(r"([\"'])[^\"']*\1|[a-z][\w\-]*", value)
        else ""
    )
    found = new_name(source, block, rng, (kind,)) if kind else None
    if found is None:
        return None
    new_value = value_of(kind, source, rng).strip("\"'")
    if kind == "str":
        new_value = (
            value[0] + new_value + value[0]
            if value[0] in "\"'"
            else new_value
            if source.language == "yaml"
            else ""
        )
    elif value[0].isupper() != new_value[0].isupper():
        new_value = new_value.capitalize()
    key = pair[2] + code.styled(found[0], pair[3]) + pair[4]
    sign = pair[5].strip()
    num_spaces = len(pair[5]) - len(pair[5].lstrip())
    if num_spaces > 1:
        # The signs of all entries stand below one another.
        width = len(pair[2] + pair[3] + pair[4]) + num_spaces
        sign = " " * max(width - len(key), 1) + sign
    elif num_spaces:
        sign = " " + sign
    behind = pair[5][len(pair[5].rstrip()) :]
    return pair[1] + key + sign + behind + new_value if new_value else None
