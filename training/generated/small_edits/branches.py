"""Edits that add a branch to a chain of conditions, or an arm to a switch."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import pairwise

from training.generated.small_edits import code
from training.generated.small_edits.edit import (
    LEAVING,
    Edit,
    Gap,
    New,
    Piece,
    Rows,
    Source,
    alike_label,
    code_values,
    condition_of,
    filled,
    inserted,
    is_telling,
)
from training.generated.small_edits.places import Block, Item, function_of, indent_of, is_comment

MAX_ARM_ROWS = 6
_NO_FALL_THROUGH = frozenset(("python", "kotlin", "go", "rust", "swift", "ruby", "shell"))

_BRANCH_HEAD = re.compile(r"^(?:\}\s*)?(?:else\b|elif\b|elsif\b|elseif\b)")
_ELSE = re.compile(r"^(?:\}\s*)?else\s*[:{]?$")
_EQUAL = re.compile(
    r"([\w.\[\]$>\-\"]+) (===|==|=|is) ('[^']*'|\"[^\"$]*\"|-?\d+|\w+(?:\.\w+)*)(?= *\)|$| *\])"
)
_LOGIC = re.compile(r"&&|\|\||\band\b|\bor\b|\bif let\b")


def branch(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new branch before the `else` of a chain of conditions."""
    lines, parent = source.lines, block.parent
    indent = indent_of(lines[block.start])
    heads = [block.start] + [
        row
        for row in range(block.start + 1, block.stop)
        if indent_of(lines[row]) == indent and _BRANCH_HEAD.match(lines[row].strip())
    ]
    braced = source.language not in ("python", "ruby", "lua", "shell")
    if (
        parent is None
        or parent.kind != "function"
        or len(heads) < 2
        or not _ELSE.match(lines[heads[-1]].strip())
    ):
        return None
    if braced and (
        not lines[heads[-1]].strip().startswith("}")
        or not all(lines[row].rstrip().endswith("{") for row in heads)
    ):
        return None
    if source.language == "python" and not all(lines[row].rstrip().endswith(":") for row in heads):
        return None
    chain = heads[:-1]
    condition = _branch_condition(source, block, [lines[row].strip() for row in chain], rng)
    if condition is None or heads[-1] - chain[-1] < 2:
        return None
    body = _branch_body(source, block, (chain[-1] + 1, heads[-1]), condition[1], rng)
    form = next(iter(code.templates("branches", source.language)), "}} else if ({c}) {{")
    if source.language == "php" and any("else if" in lines[row] for row in chain):
        form = "}} else if ({c}) {{"
    inner = indent_of(next(line for line in lines[chain[-1] + 1 : heads[-1]] if line.strip()))
    new = (
        *filled(form.format(c=condition[0]), indent, source.unit),
        *filled(body, inner, source.unit),
    )
    return _branch_edit(source, block, heads, new, rng)


def _branch_condition(
    source: Source, block: Block, heads: Sequence[str], rng: random.Random
) -> tuple[str, str] | None:
    """A condition that the chain does not have yet, with its new word."""
    for head in reversed(heads):
        found = _EQUAL.search(head)
        if found is None or _LOGIC.search(head):
            continue
        old = found[3]
        new = _other_value(source, block, old, heads, rng)
        if new is not None:
            text = found[0].replace(old, new)
            return (f"[ {text} ]" if source.language == "shell" else text), new
    function = function_of(block.parent, source.lines, source.language) if block.parent else None
    other = condition_of(function, source, rng) if function else None
    if other is None or any(re.search(rf"\b{re.escape(other[0].name)}\b", head) for head in heads):
        return None
    return other[1], ""


def _other_value(
    source: Source, block: Block, old: str, heads: Sequence[str], rng: random.Random
) -> str | None:
    """A value like the one that a condition compares with."""
    if re.fullmatch(r"-?\d+", old):
        return str(max(int(one) for one in re.findall(r"-?\d+", " ".join(heads)) or [old]) + 1)
    is_text = re.fullmatch(r"[\"'][\w\-]{2,}[\"']", old)
    is_name = re.fullmatch(r"\w+(?:\.\w+)+|[A-Z][A-Z_]{2,}", old)
    if not is_text and not is_name:
        return None
    last = old.strip("\"'").split(".")[-1]
    taken = "\n".join(source.lines[block.start : block.stop])
    word = code.pick_new(code.NEW_WORDS, taken, rng)
    return old.replace(last, code.styled(word, last)) if word else None


_NOTHING = {
    "python": "None", "ruby": "nil", "lua": "nil", "swift": "nil", "c": "0", "cpp": "{}",
}  # fmt: skip
_SEMICOLON = frozenset(("javascript", "typescript", "tsx", "java", "c", "cpp", "csharp", "php"))
_REASONS = ("fallback", "special case", "alternative path", "unusual input")


def _branch_body(
    source: Source, block: Block, rows: tuple[int, int], new_word: str, rng: random.Random
) -> str:
    """What a new branch does: alike to the branch above it, in `rows`, if that has one line."""
    lines = [line.strip() for line in source.lines[rows[0] : rows[1]] if line.strip()]
    word = new_word.strip("\"'")
    if len(lines) == 1:
        assigned = re.fullmatch(r"((?:const |let |var )?[\w.$\->]+) = (.+?);?", lines[0])
        strings = re.findall(r"([\"'])([A-Za-z][\w\-]{2,})\1", lines[0])
        if strings and word.isidentifier():
            return lines[0].replace(strings[0][1], word)
        if assigned and source.language not in ("rust", "shell", "go"):
            end = ";" if source.language in _SEMICOLON and lines[0].endswith(";") else ""
            return f"{assigned[1]} = {_NOTHING.get(source.language, 'null')}{end}"
    if block.parent is None:
        return ""
    function = function_of(block.parent, source.lines, source.language)
    returns = code.early_returns(function)
    if returns and lines and LEAVING.match(lines[-1].rstrip(";")):
        return rng.choice(returns)
    plain = [one for one in code.templates("logs", source.language) if "{p}" not in one]
    values = code_values(source, function, None, rng)
    return rng.choice(plain).format(**{**values, "msg": rng.choice(_REASONS)})


def _branch_edit(
    source: Source, block: Block, heads: list[int], new: tuple[str, ...], rng: random.Random
) -> Edit | None:
    lines, parent = source.lines, block.parent
    if parent is None or not is_telling(lines, heads[0], parent.body, parent.end):
        return None
    pieces: list[Piece] = []
    if len(heads) > 4:
        return None
    for head, following in pairwise(heads):
        pieces.append(Rows(head, head + 1))
        pieces.append(
            Rows(head + 1, following)
            if following - head <= 3
            else Gap(head + 1, following, "branch")
        )
    pieces += [New(), Rows(heads[-1], heads[-1] + 1)]
    braced = source.language != "python"
    last = block.stop - braced
    pieces.append(
        Rows(heads[-1] + 1, last) if last - heads[-1] <= 3 else Gap(heads[-1] + 1, last, "branch")
    )
    if braced:
        pieces.append(Rows(last, block.stop))
    return Edit(
        "branch", parent, heads[-1], heads[-1], new, tuple(pieces), block.start, block.stop, "rest"
    )


_LABEL = re.compile(
    r"(?:case |when )?(?:[\w.:]+(?:\.|::))?:?([\"']?)([A-Za-z][\w\-]+)\1(?:\(.*?\))?"
    r"(?=\s*(?::|=>|->|\)|$|,))"
)
_DEFAULT_ARM = re.compile(r"^(?:default\b|else\b|case _\s*:|_ =>|\*\)|_ ->)")


def arm(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new arm of a switch, before the default one or behind another."""
    arms = [item for item in block.items if not is_comment(item)]
    lines = source.lines
    texts = [lines[item.start].strip() for item in arms]
    default = next((number for number, text in enumerate(texts) if _DEFAULT_ARM.match(text)), None)
    if len(arms) < 3 or any(
        indent_of(lines[item.start]) != indent_of(lines[arms[0].start]) for item in arms
    ):
        return None
    last = default if default is not None else len(arms)
    number = last if rng.random() < 0.6 else rng.randrange(1, last + 1)
    if not number or number > last or default not in (None, len(arms) - 1):
        return None
    above = arms[number - 1]
    new = _new_arm(source, block, above, rng)
    if new is None:
        return None
    index = block.items.index(above) + 1
    return inserted("arm", source, block, index, new, rng, role="cases")


def _new_arm(
    source: Source, block: Block, above: Item, rng: random.Random
) -> tuple[str, ...] | None:
    rows = source.lines[above.start : above.end]
    if not rows[-1].strip():
        return None
    text = "\n".join(source.lines[block.start : block.stop])
    ends_well = (
        source.language in _NO_FALL_THROUGH
        or re.match(r"break|return|throw|continue|\}|goto", rows[-1].strip())
        or "=>" in rows[0]
        or "->" in rows[0]
    )
    if (
        len(rows) > MAX_ARM_ROWS
        or not ends_well
        or sum(bool(re.match(r"\s*(?:case|when)\b", row)) for row in rows) > 1
    ):
        return None
    head = rows[0].strip()
    found = _LABEL.match(head)
    if source.language == "ruby" and re.match(r"when \w", head):
        # Classes and constants are compared with, which cannot be made up.
        return None
    if (
        found is None
        or "," in head.split("=>")[0].split("->")[0].split(":")[0]
        or len(found[2]) < 3
        or "|" in head.split("=>")[0]
    ):
        return None
    old = found[2]
    word = code.pick_new(code.NEW_WORDS, text, rng)
    if word is None or rows[0].count(old) > 3:
        return None
    labels = [_LABEL.match(source.lines[item.start].strip()) for item in block.items]
    label = alike_label(old, [one[2] for one in labels if one], word)
    made = [re.sub(rf"{re.escape(old)}(?![a-z])", lambda _: label, row) for row in rows]
    if made[1:] == rows[1:] and len(rows) > 1:
        return _arm_with_body(source, block, rows, made[0], rng)
    if len(rows) == 1:
        # Its result is another one as well, if that is a word.
        result = re.search(r"(?:=>|->|return) [\"'](\w+)[\"']", made[0])
        made = [made[0].replace(result[1], code.styled(word, result[1]))] if result else made
    return tuple(made)


def _arm_with_body(
    source: Source, block: Block, rows: list[str], head: str, rng: random.Random
) -> tuple[str, ...] | None:
    """An arm with the label `head` that does something of its own."""
    function = next((one for one in reversed(block.chain) if one.kind == "function"), None)
    if function is None or head.rstrip().endswith(("{", "(")) != rows[-1].strip().startswith(
        ("}", ")")
    ):
        return None
    known = function_of(function, source.lines, source.language)
    indent = indent_of(rows[1])
    returns = code.early_returns(known)
    leaves = LEAVING.match(rows[-1].strip().rstrip(";"))
    if leaves and rows[-1].strip().startswith("return"):
        body = [rng.choice(returns)] if returns else []
    else:
        plain = [one for one in code.templates("logs", source.language) if "{p}" not in one]
        values = {
            **code_values(source, known, None, rng),
            "msg": f"{known.name}: {rng.choice(('not supported yet', 'skipped', 'ignored'))}",
        }
        body = [rng.choice(plain).format(**values)]
        body += (
            [rows[-1].strip()] if leaves or rows[-1].strip() in ("break;", ";;", "break") else []
        )
    if not body or source.language == "rust":
        return None
    closer = (rows[-1],) if rows[-1].strip().startswith(("}", ")")) else ()
    return (head, *(indent + line for line in body), *closer)
