"""The kinds of small edits: each maker finds what a block can get, and shows it in its place.

An edit replaces rows of the old file, and has the pieces of its snippet within the innermost block
that is shown: rows of the file, new lines, and gaps that a marker stands for.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from training.generated import small_edit_code as code
from training.generated.small_edit_code import Function, Parameter
from training.generated.small_edit_places import (
    DATA,
    GRAMMARS,
    Block,
    Item,
    function_of,
    indent_of,
    is_comment,
    parameters_of,
)


@dataclass(frozen=True, slots=True)
class Source:
    """A file with its blocks; `unit` is one level of indentation."""

    path: str
    language: str
    lines: list[str]
    blocks: list[Block]
    imports: list[Item]
    unit: str

    @property
    def quote(self) -> str:
        """The quote that strings of the file have most."""
        text = "\n".join(self.lines)
        return "'" if text.count("'") > text.count('"') else '"'


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows `[start, end)` of the old file that the snippet shows."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows `[start, end)` of the old file that a marker stands for."""

    start: int
    end: int
    role: str


@dataclass(frozen=True, slots=True)
class New:
    """Where the snippet shows the new lines."""


Piece = Rows | Gap | New


@dataclass(frozen=True, slots=True)
class Edit:
    """Rows `[start, end)` of a file become `new`; `pieces` cover `[low, high)` inside `around`.

    `opened` is a block whose header is among the pieces.
    """

    kind: str
    around: Block | None
    start: int
    end: int
    new: tuple[str, ...]
    pieces: tuple[Piece, ...]
    low: int
    high: int
    role: str
    opened: Block | None = None


MAX_CONTEXT_ROWS = 6
MAX_DOCSTRING_ROWS = 14
_LEAVING = re.compile(r"^(?:return|raise|throw|break|continue|exit|goto|panic|yield|die|fail|error\(|os\.exit|redirect|next)\b")
_TRIVIAL = frozenset(("return", "break", "continue", "pass", "return None", "return false", "return true", "return null", "else", "end"))
_NO_FALL_THROUGH = frozenset(("python", "kotlin", "go", "rust", "swift", "ruby", "shell"))

_Maker = Callable[[Source, Block, random.Random], "Edit | None"]


def filled(template: str, indent: str, unit: str) -> tuple[str, ...]:
    """The lines of a template at an indentation."""
    return tuple(indent + line.replace("\t", unit) for line in template.split("\n"))


def body_indent(source: Source, block: Block) -> str:
    """The indentation of a block's items."""
    return indent_of(source.lines[block.items[0].start])


def is_telling(lines: Sequence[str], row: int, start: int, end: int) -> bool:
    """Whether a row says where it is: there is no other one like it in `[start, end)`."""
    text = lines[row].strip()
    is_trivial = len(text) < 5 or text.rstrip(";:{ ") in _TRIVIAL or not re.search(r"\w{2}", text)
    return not is_trivial and [line.strip() for line in lines[start:end]].count(text) == 1


def inserted(
    kind: str,
    source: Source,
    block: Block,
    index: int,
    new: tuple[str, ...],
    rng: random.Random,
    *,
    role: str = "rest",
) -> Edit | None:
    """New lines behind the first `index` items of a block, with some of the items around them."""
    items, lines = block.items, source.lines
    at = items[index - 1].end if index else block.body
    if (index and is_comment(items[index - 1])) or (not index and not lines[block.body].strip()):
        return None
    if index == len(items) and at != block.end:
        return None
    before, after = _context(lines, block, index, at, rng)
    if before is None:
        return None
    pieces = (Rows(before, at), New(), Rows(at, after))
    return Edit(kind, block, at, at, new, pieces, before, after, role)


def _context(
    lines: list[str], block: Block, index: int, at: int, rng: random.Random
) -> tuple[int | None, int]:
    """From which to which row a snippet shows what is around row `at`; (None, 0) if unclear."""
    items = block.items
    if not index:
        num_before, num_after = 0, rng.choice((0, 0, 0, 0, 1))
    elif index == len(items):
        num_before, num_after = rng.choice((0, 0, 1, 1, 2)), 0
    else:
        num_before, num_after = rng.choice(((1, 0), (1, 0), (1, 1), (1, 1), (2, 1), (2, 0), (0, 1)))
        if not num_before and not lines[at].strip():
            num_before = 1
    before = items[max(index - num_before, 0)].start if num_before else at
    after = items[index + num_after - 1].end if num_after else at
    if at - before > MAX_CONTEXT_ROWS or after - at > MAX_CONTEXT_ROWS:
        if 0 < index < len(items):
            return None, 0
        return at, at
    is_inside = 0 < index < len(items)
    if is_inside:
        first_after = next((row for row in range(at, after) if lines[row].strip()), None)
        told = [row for row in (at - 1 if num_before else None, first_after) if row is not None]
        if not any(is_telling(lines, row, block.body, block.end) for row in told):
            return None, 0
    return before, after


# Statements of functions.


def _code_values(source: Source, function: Function, parameter: Parameter | None, rng: random.Random) -> dict[str, str]:
    words = code.words_of(function.name).split()
    loggers = re.findall(r"^(\w*log(?:ger)?)\s*=", function.file_text, re.M | re.I)
    has_logging = "import logging" in function.file_text
    name = parameter.name if parameter else ""
    return {
        "p": f"${name}" if source.language == "php" and not name.startswith("$") else name,
        "f": function.name,
        "n": "_".join(words),
        "v": (words[0] + "".join(word.capitalize() for word in words[1:])) if words else "",
        "q": source.quote,
        "l": loggers[0] if loggers else "logging" if has_logging else "logger",
        "tag": "TAG" if re.search(r"\bTAG\b", function.file_text) else f'"{function.name}"',
        "msg": code.messages(function.name, rng),
    }  # fmt: skip


def _usable(function: Function) -> list[tuple[Parameter, str]]:
    kinds = [(one, code.kind_of(one, function.language)) for one in function.parameters]
    return [(one, kind) for one, kind in kinds if kind in code.CONDITIONS[function.language]]


def _condition(function: Function, source: Source, rng: random.Random) -> tuple[Parameter, str, str] | None:
    """A parameter, a condition under which it is wrong, and what to say then."""
    usable = [(one, kind) for one, kind in _usable(function) if not one.default]
    if not usable:
        return None
    parameter, kind = rng.choice(usable)
    condition, message = rng.choice(code.CONDITIONS[function.language][kind])
    shown = f"${parameter.name}" if source.language == "php" else parameter.name
    return parameter, condition.format(p=shown), message.format(p=parameter.name)


def _first_index(source: Source, block: Block) -> int | None:
    """Where the statements of a function begin: behind its docstring; None if not at will."""
    first = source.lines[block.items[0].start].strip()
    if source.language == "python":
        return int(bool(re.match(r"[rRbu]?(?:\"\"\"|'''|\"|')", first)))
    if re.match(r"[\"']use |(?:return )?super\b|this\(|parent::|base\(", first):
        return None
    return 0


def _at_head(kind: str, source: Source, block: Block, statement: str, rng: random.Random) -> Edit | None:
    index = _first_index(source, block)
    if index is None or (index and index == len(block.items)):
        return None
    new = filled(statement, body_indent(source, block), source.unit)
    has_blank = rng.random() < 0.3 and "\n" in statement
    made = inserted(kind, source, block, index, (*new, "") if has_blank else new, rng)
    if made is None or not index:
        return made
    docstring = block.items[0]
    num_rows = docstring.end - docstring.start
    after = made.pieces[-1]
    lead: Piece = Rows(docstring.start, docstring.end)
    start = made.start
    if not source.lines[start].strip():
        # A blank line behind the docstring stays above the code.
        return None
    if num_rows > 2 and rng.random() < 0.12 or num_rows > MAX_DOCSTRING_ROWS:
        lead = Gap(docstring.start, docstring.end, "docstring")
    return Edit(kind, block, start, start, made.new, (lead, New(), after), docstring.start, made.high, "rest")


def guard(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A check of a parameter, put first into a function."""
    function = function_of(block, source.lines, source.language)
    optional = [one for one in function.parameters if one.default in ("None", "undefined") and function.language in ("python", *code.SCRIPTS)]
    if optional and rng.random() < 0.4:
        return _at_head("guard", source, block, _default_statement(rng.choice(optional), source, rng), rng)
    found = _condition(function, source, rng)
    if found is None:
        return None
    parameter, condition, message = found
    message = rng.choice((message, message, message[0].upper() + message[1:]))
    values = _code_values(source, function, parameter, rng)
    if source.language in ("kotlin", "swift") and rng.random() < 0.4:
        statement = _required(function, condition, message, rng)
    else:
        failure = code.failures(function, message, rng)
        if failure is None:
            return None
        failure = failure.format(**{**values, "msg": message}) if source.language not in ("go", "rust", "c", "swift") else failure
        statement = rng.choice(code.forms(source.language)).format(c=condition, s=failure)
    return _at_head("guard", source, block, statement, rng) if statement else None


def _required(function: Function, condition: str, message: str, rng: random.Random) -> str | None:
    opposite = code.negated(condition, function.language)
    if opposite is None:
        return None
    if function.language == "kotlin":
        return f'require({opposite}) {{ "{message}" }}'
    returns = code.early_returns(function)
    if "!= nil" in opposite:
        opposite = f"let {opposite.split()[0]} = {opposite.split()[0]}" if rng.random() < 0.6 else opposite
    return f"guard {opposite} else {{\n\t{returns[0]}\n}}" if returns else None


def _default_statement(parameter: Parameter, source: Source, rng: random.Random) -> str:
    kind = code.kind_of(Parameter(parameter.name, ""), source.language)
    value = {"num": "0", "str": source.quote * 2, "list": "[]"}.get(kind, "{}" if source.language == "python" else "{}")
    if source.language == "python":
        return f"if {parameter.name} is None:\n\t{parameter.name} = {value}"
    test = rng.choice((f"{parameter.name} === undefined", f"{parameter.name} == null"))
    return f"if ({test}) {{\n\t{parameter.name} = {value};\n}}"


_OWN = {
    "python": (r"\bself\.(\w+)\b(?!\()", "self.{a}", ("not {x}", "{x} is None")),
    "javascript": (r"\bthis\.(\w+)\b(?!\()", "this.{a}", ("!{x}", "{x} == null")),
    "typescript": (r"\bthis\.(\w+)\b(?!\()", "this.{a}", ("!{x}", "{x} == null")),
    "php": (r"\$this->(\w+)\b(?!\()", "$this->{a}", ("!{x}", "{x} === null")),
    "ruby": (r"(?<!@)@(\w+)", "@{a}", ("{x}.nil?", "!{x}")),
    "lua": (r"\bself\.(\w+)\b(?!\()", "self.{a}", ("not {x}", "{x} == nil")),
}  # fmt: skip


def early_return(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A way out of the function for a special case, put first."""
    function = function_of(block, source.lines, source.language)
    returns = code.early_returns(function)
    if source.language == "python" and re.search(r"\byield\b", function.text):
        returns = ["return"]
    if not returns or function.name in ("__init__", "constructor", "initialize"):
        return None
    own = _OWN.get(source.language)
    names = sorted(set(re.findall(own[0], "\n".join(function.text.split("\n")[1:])))) if own else []
    if own and names and rng.random() < 0.5:
        condition = rng.choice(own[2]).format(x=own[1].format(a=rng.choice(names)))
    else:
        found = _condition(function, source, rng)
        if found is None:
            return None
        condition = found[1]
    statement = rng.choice(code.forms(source.language)).format(c=condition, s=rng.choice(returns))
    return _at_head("early_return", source, block, statement, rng)


def _statement_index(source: Source, block: Block, rng: random.Random) -> int | None:
    """A place among the statements of a function that is reached."""
    first = _first_index(source, block)
    if first is None:
        return None
    places = [first, first]
    for index in range(first + 1, len(block.items)):
        above = block.items[index - 1]
        if not _LEAVING.match(source.lines[above.start].strip()) and above.type not in ("rescue", "ensure", "else"):
            places.append(index)
    last = block.items[-1]
    if _LEAVING.match(source.lines[last.start].strip()):
        places += [index for index in places if index == len(block.items) - 1]
    return rng.choice(places)


def _in_function(kind: str, templates: Sequence[str], source: Source, block: Block, rng: random.Random) -> Edit | None:
    function = function_of(block, source.lines, source.language)
    if not function.name:
        return None
    usable = [one for one in function.parameters if re.fullmatch(r"\w+", one.name)]
    parameter = rng.choice(usable) if usable else None
    fitting = [one for one in templates if parameter or "{p}" not in one and "{{{p}" not in one]
    index = _statement_index(source, block, rng)
    if not fitting or index is None:
        return None
    statement = rng.choice(fitting).format(**_code_values(source, function, parameter, rng))
    if index == _first_index(source, block):
        return _at_head(kind, source, block, statement, rng)
    return inserted(kind, source, block, index, filled(statement, body_indent(source, block), source.unit), rng)


def log(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A line for the log, first or between two statements."""
    return _in_function("log", code.LOGS[source.language], source, block, rng)


def assertion(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """An assertion about a parameter."""
    function = function_of(block, source.lines, source.language)
    found = _condition(function, source, rng)
    opposite = code.negated(found[1], source.language) if found else None
    templates = code.ASSERTIONS[source.language]
    if found is None or opposite is None or not templates:
        return None
    values = {**_code_values(source, function, found[0], rng), "msg": found[2], "ok": opposite}
    template = rng.choice([one for one in templates if "requireNonNull" not in one or "null" in opposite])
    return _at_head("assertion", source, block, template.format(**values), rng)


def last_statement(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new last statement of a function that ends without leaving."""
    function = function_of(block, source.lines, source.language)
    last = block.items[-1]
    text = source.lines[last.start].strip()
    is_value = source.language in ("rust", "ruby", "swift", "kotlin") and (
        not source.lines[last.end - 1].rstrip().endswith((";", "}")) or bool(function.result)
    )
    is_open = source.language in ("ruby",) and bool(re.match(r"@\w+ [|+]?=|self\.\w+ =|end$", text))
    is_done = _LEAVING.match(text) or last.type in ("rescue", "ensure", "else") or (is_value and not is_open)
    first = _first_index(source, block)
    if is_done or not function.name or (first and len(block.items) == first) or function.has_value:
        return None
    if source.language in ("kotlin", "swift") and function.result:
        return None
    template = rng.choice([one for one in code.LAST[source.language] if ("self." not in one or "self" in function.text) and ("this." not in one or "this." in function.text)])
    statement = template.format(**_code_values(source, function, None, rng))
    return inserted("last_statement", source, block, len(block.items), filled(statement, body_indent(source, block), source.unit), rng, role="before")


# Branches and arms.

_BRANCHES = {"python": "elif {c}:", "ruby": "elsif {c}", "lua": "elseif {c} then", "shell": "elif {c}; then", "go": "}} else if {c} {{",
             "rust": "}} else if {c} {{", "swift": "}} else if {c} {{", "php": "}} elseif ({c}) {{"}  # fmt: skip
_BRANCH_HEAD = re.compile(r"^(?:\}\s*)?(?:else\b|elif\b|elsif\b|elseif\b)")
_ELSE = re.compile(r"^(?:\}\s*)?else\s*[:{]?$")
_EQUAL = re.compile(r"([\w.\[\]$>\-\"]+) (===|==|=|is) ('[^']*'|\"[^\"$]*\"|-?\d+|\w+(?:\.\w+)*)(?= *\)|$| *\])")


def branch(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new branch before the `else` of a chain of conditions."""
    lines, parent = source.lines, block.parent
    indent = indent_of(lines[block.start])
    heads = [block.start] + [
        row for row in range(block.start + 1, block.stop) if indent_of(lines[row]) == indent and _BRANCH_HEAD.match(lines[row].strip())
    ]
    braced = source.language not in ("python", "ruby", "lua", "shell")
    if parent is None or parent.kind != "function" or len(heads) < 2 or not _ELSE.match(lines[heads[-1]].strip()):
        return None
    if braced and (not lines[heads[-1]].strip().startswith("}") or not all(lines[row].rstrip().endswith("{") for row in heads)):
        return None
    if source.language == "python" and not all(lines[row].rstrip().endswith(":") for row in heads):
        return None
    chain = heads[:-1]
    condition = _branch_condition(source, block, [lines[row].strip() for row in chain], rng)
    if condition is None or heads[-1] - chain[-1] < 2:
        return None
    body = _branch_body(source, block, chain[-1] + 1, heads[-1], condition[1], rng)
    form = _BRANCHES.get(source.language, "}} else if ({c}) {{")
    if source.language == "php" and any("else if" in lines[row] for row in chain):
        form = "}} else if ({c}) {{"
    inner = indent_of(next(line for line in lines[chain[-1] + 1 : heads[-1]] if line.strip()))
    new = (*filled(form.format(c=condition[0]), indent, source.unit), *filled(body, inner, source.unit))
    return _branch_edit(source, block, heads, new, rng)


def _branch_condition(source: Source, block: Block, heads: Sequence[str], rng: random.Random) -> tuple[str, str] | None:
    """A condition that the chain does not have yet, with its new word."""
    for head in reversed(heads):
        found = _EQUAL.search(head)
        whole = re.fullmatch(r"(?:\}\s*)?(?:else if|elif|elsif|elseif|if)\s*\(?(.+?)\)?\s*(?:then|:|\{)?", head)
        if found is None or whole is None or re.search(r"&&|\|\||\band\b|\bor\b|\bif let\b", head):
            continue
        old = found[3]
        if re.fullmatch(r"-?\d+", old):
            new = str(max(int(one) for one in re.findall(r"-?\d+", " ".join(heads)) or [old]) + 1)
        elif old in ("None", "nil", "null", "NULL", "nullptr", "true", "false", "True", "False", "undefined"):
            continue
        elif re.fullmatch(r"[\"'][\w\-]{2,}[\"']", old) or re.fullmatch(r"\w+(?:\.\w+)+|[A-Z][A-Z_]{2,}", old):
            last = re.split(r"\.", old.strip("\"'"))[-1]
            word = code.pick_new(code.NEW_WORDS, "\n".join(source.lines[block.start : block.stop]), rng)
            if word is None:
                continue
            new = old.replace(last, code.styled(word, last)) if old[0] in "\"'" or "." in old else code.styled(word, last)
        else:
            continue
        text = found[0].replace(old, new)
        return (text + " ]" if source.language == "shell" and "[ " in head else text) if source.language != "shell" else f"[ {text} ]", new
    function = function_of(block.parent, source.lines, source.language) if block.parent else None
    other = _condition(function, source, rng) if function else None
    if other is None or any(re.search(rf"\b{re.escape(other[0].name)}\b", head) for head in heads):
        return None
    return other[1], ""


def _branch_body(source: Source, block: Block, start: int, end: int, new_word: str, rng: random.Random) -> str:
    """What a new branch does: alike to the branch above it if that has one line."""
    lines = [line.strip() for line in source.lines[start:end] if line.strip()]
    ends = ";" if source.language in ("javascript", "typescript", "tsx", "java", "c", "cpp", "csharp", "php", "rust") else ""
    if len(lines) == 1:
        text = lines[0]
        found = re.fullmatch(r"((?:const |let |var )?[\w.$\->]+) = (.+?);?", text)
        nothing = {"python": "None", "ruby": "nil", "lua": "nil", "go": "nil", "swift": "nil", "shell": '""', "c": "0", "cpp": "{}"}.get(source.language, "null")
        strings = re.findall(r"([\"'])([A-Za-z][\w\-]{2,})\1", text)
        if strings and new_word.strip("\"'").isidentifier():
            return text.replace(strings[0][1], new_word.strip("\"'"))
        if found and source.language not in ("rust", "shell", "go"):
            return f"{found[1]} = {nothing}{ends}"
    function = function_of(block.parent, source.lines, source.language) if block.parent else None
    leaves = bool(lines) and bool(_LEAVING.match(lines[-1].rstrip(";")))
    if function and leaves:
        returns = code.early_returns(function)
        if returns:
            return rng.choice(returns)
    name = function.name if function else "branch"
    values = _code_values(source, function, None, rng) if function else {}
    plain = [one for one in code.LOGS[source.language] if "{p}" not in one]
    return rng.choice(plain).format(**{**values, "msg": f"{name}: {rng.choice(('fallback', 'special case', 'alternative path', 'unusual input'))}"})


def _branch_edit(source: Source, block: Block, heads: list[int], new: tuple[str, ...], rng: random.Random) -> Edit | None:
    lines, parent = source.lines, block.parent
    if parent is None or not is_telling(lines, heads[0], parent.body, parent.end):
        return None
    pieces: list[Piece] = []
    if len(heads) > 4:
        return None
    for head, following in zip(heads[:-1], heads[1:], strict=True):
        pieces.append(Rows(head, head + 1))
        pieces.append(Rows(head + 1, following) if following - head <= 3 else Gap(head + 1, following, "branch"))
    pieces += [New(), Rows(heads[-1], heads[-1] + 1)]
    braced = source.language != "python"
    last = block.stop - braced
    pieces.append(Rows(heads[-1] + 1, last) if last - heads[-1] <= 3 else Gap(heads[-1] + 1, last, "branch"))
    if braced:
        pieces.append(Rows(last, block.stop))
    return Edit("branch", parent, heads[-1], heads[-1], new, tuple(pieces), block.start, block.stop, "rest")


_DEFAULT_ARM = re.compile(r"^(?:default\b|else\b|case _\s*:|_ =>|\*\)|_ ->)")


def arm(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new arm of a switch, before the default one or behind another."""
    arms = [item for item in block.items if not is_comment(item)]
    lines = source.lines
    texts = [lines[item.start].strip() for item in arms]
    default = next((number for number, text in enumerate(texts) if _DEFAULT_ARM.match(text)), None)
    if len(arms) < 3 or any(indent_of(lines[item.start]) != indent_of(lines[arms[0].start]) for item in arms):
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


def _new_arm(source: Source, block: Block, above: Item, rng: random.Random) -> tuple[str, ...] | None:
    rows = source.lines[above.start : above.end]
    while rows and not rows[-1].strip():
        return None
    text = "\n".join(source.lines[block.start : block.stop])
    ends_well = source.language in _NO_FALL_THROUGH or re.match(r"break|return|throw|continue|\}|goto", rows[-1].strip()) or "=>" in rows[0] or "->" in rows[0]
    if not 1 <= len(rows) <= 5 or not ends_well or sum(bool(re.match(r"\s*(?:case|when)\b", row)) for row in rows) > 1:
        return None
    head = rows[0].strip()
    found = re.match(r"(?:case |when )?(?:[\w.:]+(?:\.|::))?([\"']?)([A-Za-z][\w\-]+)\1(?:\(.*?\))?(?=\s*(?::|=>|->|\)|$|,))", head)
    if found is None or "," in head.split("=>")[0].split("->")[0].split(":")[0] or len(found[2]) < 3 or "|" in head.split("=>")[0]:
        return None
    old = found[2]
    word = code.pick_new(code.NEW_WORDS, text, rng)
    if word is None or rows[0].count(old) > 3:
        return None
    prefix = re.match(r"(?:[A-Z][A-Z0-9]*_)+(?=[A-Z])", old) if old.isupper() else None
    label = (prefix[0] if prefix else "") + code.styled(word, old)
    made = [re.sub(rf"(?<![A-Za-z]){re.escape(old)}(?![a-z])|{re.escape(old)}", lambda _: label, row) for row in rows]
    if made[1:] == rows[1:] and len(rows) > 1:
        return _arm_with_body(source, block, rows, made[0], rng)
    return tuple(made)


def _arm_with_body(source: Source, block: Block, rows: list[str], head: str, rng: random.Random) -> tuple[str, ...] | None:
    """An arm with the label `head` that does something of its own."""
    function = next((one for one in reversed(block.chain) if one.kind == "function"), None)
    if function is None or head.rstrip().endswith(("{", "(")) != rows[-1].strip().startswith(("}", ")")):
        return None
    known = function_of(function, source.lines, source.language)
    indent = indent_of(rows[1])
    returns = code.early_returns(known)
    leaves = _LEAVING.match(rows[-1].strip().rstrip(";"))
    if leaves and rows[-1].strip().startswith("return"):
        body = [rng.choice(returns)] if returns else []
    else:
        plain = [one for one in code.LOGS[source.language] if "{p}" not in one]
        values = {**_code_values(source, known, None, rng), "msg": f"{known.name}: {rng.choice(('not supported yet', 'skipped', 'ignored'))}"}
        body = [rng.choice(plain).format(**values)]
        body += [rows[-1].strip()] if leaves or rows[-1].strip() in ("break;", ";;", "break") else []
    if not body or source.language == "rust":
        return None
    closer = (rows[-1],) if rows[-1].strip().startswith(("}", ")")) else ()
    return (head, *(indent + line for line in body), *closer)


# Members and entries.


def variant(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new variant of an enum, at its end or behind another one."""
    lines, items = source.lines, block.items
    kinds = ("enum_constant", "enum_entry", "enum_variant", "enumerator", "enum_member_declaration", "property_identifier", "enum_assignment", "enum_case", "const_spec")
    places = [index + 1 for index, item in enumerate(items) if item.type in kinds and item.end - item.start == 1]
    if len(places) < 2:
        return None
    index = places[-1] if rng.random() < 0.7 else rng.choice(places)
    above = lines[items[index - 1].start]
    found = re.fullmatch(r"(\s*)(case )?(\w+)(?:(\s*=\s*)(\"[\w \-.]*\"|'[\w \-.]*'|\d+))?([,;]?)", above)
    words = [word for word in code.NEW_WORDS]
    word = code.pick_new(words, "\n".join(lines[block.start : block.stop]), rng)
    if found is None or word is None or found[6] == ";":
        return None
    label = _alike_label(found[3], [lines[items[place - 1].start].strip().split()[-1 if found[2] and not found[4] else 0] for place in places], word)
    value = ""
    if found[5]:
        last = index == len(items)
        if found[5].isdigit() and not last:
            return None
        quote = found[5][0]
        value = found[4] + (str(int(found[5]) + 1) if found[5].isdigit() else quote + code.styled(word, found[5].strip("\"'") or word) + quote)
    separator = found[6] or ("," if not found[2] and source.language not in ("go", "swift") else "")
    return _entry_edit("variant", source, block, index, found[1] + (found[2] or "") + label + value, separator, rng, role="variants")


def _alike_label(above: str, labels: Sequence[str], word: str) -> str:
    """A new label with the beginning that all others have, such as `COLOR_`."""
    names = [re.sub(r"\W.*", "", label) for label in labels]
    common = ""
    for letters in zip(*names, strict=False):
        if len(set(letters)) > 1:
            break
        common += letters[0]
    match = re.match(r"(?:[A-Za-z0-9]+_)+|(?:[A-Za-z]+(?=[A-Z]))", common) if len(names) > 1 else None
    prefix = match[0] if match and len(match[0]) < len(above) else ""
    return prefix + code.styled(word, above[len(prefix) :] or above)


def _entry_edit(kind: str, source: Source, block: Block, index: int, entry: str, separator: str, rng: random.Random, *, role: str) -> Edit | None:
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


_FIELD_TYPES = frozenset(("expression_statement", "property_signature", "public_field_definition", "field_definition", "field_declaration", "property_declaration"))
_FIELDS: dict[str, tuple[str, ...]] = {
    "typescript": ("{n}?: {t}{e}", "{n}: {t}{e}", "readonly {n}?: {t}{e}"),
    "java": ("private {t} {n};", "private {t} {n} = {v};", "private final {t} {n} = {v};", "protected {t} {n};", "private volatile {t} {n};", "public {t} {n};"),
    "kotlin": ("private var {n}: {t} = {v}", "private val {n} = {v}", "var {n}: {t}? = null", "private var {n} = {v}", "internal var {n} = {v}", "val {n}: {t} = {v}"),
    "go": ("{n} {t}", "{n} *{t}", "{n} []{t}"),
    "rust": ("{a}{n}: {t},", "{a}{n}: Option<{t}>,", "{a}{n}: Vec<{t}>,"),
    "c": ("{t} {n};",),
    "cpp": ("{t} {n};", "{t} {n} = {v};", "std::vector<{t}> {n};"),
    "csharp": ("private {t} {n};", "private {t} {n} = {v};", "public {t} {n};", "protected {t} {n};", "[SerializeField] private {t} {n};", "private readonly {t} {n} = {v};"),
    "php": ("private ${n} = {v};", "protected ${n};", "private {t} ${n} = {v};", "public ${n} = {v};", "protected ?{t} ${n} = null;", "private ${n};"),
    "swift": ("private var {n}: {t} = {v}", "var {n}: {t}?", "let {n}: {t} = {v}", "private var {n} = {v}", "private let {n}: {t} = {v}", "var {n} = {v}"),
    "javascript": ("{n} = {v};", "#{n} = {v};", "static {n} = {v};"),
}  # fmt: skip


def value_of(kind: str, source: Source, rng: random.Random) -> str:
    """A literal of the kind of a new name."""
    if kind == "num":
        return rng.choice(code.NUMBERS)
    if kind == "bool":
        is_true = rng.random() < 0.5
        return (("True" if is_true else "False") if source.language == "python" else ("true" if is_true else "false"))
    quote = source.quote if source.language in ("python", "php", "ruby", "lua", *code.SCRIPTS) else '"'
    return quote + rng.choice(code.TEXTS) + quote


def _new_name(source: Source, block: Block, rng: random.Random, kinds: Sequence[str] = ("num", "bool", "str")) -> tuple[str, str] | None:
    text = re.sub(r"[_\-]", "", "\n".join(source.lines[block.start : block.stop])).lower()
    free = [(name, kind) for name, kind in code.NEW_NAMES if kind in kinds and name.replace("_", "") not in text]
    return rng.choice(free) if free else None


def struct_field(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new field of a class or struct, behind another one."""
    lines, items, language = source.lines, block.items, source.language
    places = [index + 1 for index, item in enumerate(items) if item.type in _FIELD_TYPES and item.end - item.start <= 2]
    found = _new_name(source, block, rng)
    if not places or found is None:
        return None
    index = places[-1] if rng.random() < 0.6 else rng.choice(places)
    above = lines[items[index - 1].end - 1].strip()
    name, kind = found
    value = value_of(kind, source, rng)
    table = "typescript" if language == "tsx" else language
    type_name = code.TYPE_NAMES.get(table, {}).get(kind, "")
    if language == "python":
        text = _python_field(above, name, type_name, value)
    elif table not in _FIELDS or not re.search(r"\w", above) or (language in ("c", "cpp", "java", "csharp", "php") and not above.endswith(";")):
        return None
    else:
        text = _typed_field(source, block, above, (name, type_name, value), rng)
    if text is None:
        return None
    return inserted("field", source, block, index, (body_indent(source, block) + text,), rng, role="fields")


def _python_field(above: str, name: str, type_name: str, value: str) -> str | None:
    found = re.fullmatch(r"(\w+)(?:: ([^=]+?))?(?: = (.+))?", above)
    if found is None or not (found[2] or found[3]) or found[1].startswith("__"):
        return None
    named = code.styled(name, found[1]) if found[1].isupper() else name
    return named + (f": {type_name}" if found[2] else "") + (f" = {value}" if found[3] else "")


def _typed_field(source: Source, block: Block, above: str, new: tuple[str, str, str], rng: random.Random) -> str | None:
    language = "typescript" if source.language == "tsx" else source.language
    name, type_name, value = new
    is_signature = ":" in above and block.kind == "struct"
    if language == "typescript" and not is_signature:
        form = rng.choice(("private {n}: {t} = {v};", "private readonly {n}: {t} = {v};", "protected {n}?: {t};"))
    elif language == "rust" and not re.search(r"\w: .+,$", above):
        return None
    elif language == "go" and not re.match(r"\w+\s+\S", above):
        return None
    else:
        form = rng.choice(_FIELDS[language])
    own = re.findall(r"(?:^|[\s*&$])(_?[A-Za-z]\w*)\s*(?:=|;|\?|:|\s|$)", above)
    like = re.match(r"\w+", above)
    style = {"go": like[0] if like else "", "rust": "a_b", "php": "aB", "java": "aB", "kotlin": "aB", "swift": "aB", "typescript": "aB", "csharp": "aB", "javascript": "aB"}
    named = code.styled(name, style.get(language) or (own[-1] if own else "a_b"))
    if language == "cpp" and re.search(r"\w_(?:\s*=.*|\{.*)?;$", above):
        named = name + "_"
    if language == "csharp" and re.search(r"\b_\w+", above):
        named = "_" + named
    end = above[-1] if above[-1] in ";," else ""
    text = form.format(n=named, t=type_name, v=value, e=end, a="pub " if above.startswith("pub ") else "")
    return text.replace("* ", "*") if language == "c" else text


_PAIR = re.compile(r"(\s*(?:- )?)([\"':]?)([A-Za-z_][\w.\-]*)(\2?)(\s*(?::|=>|=)\s+|:\s+)(.+?)(,?)$")
_TEXT_ITEM = re.compile(r"(\s*(?:- )?)([\"'])([\w.\-/@]+)\2(,?)$")
_WORD_ITEM = re.compile(r"(\s*(?:- )?)([A-Za-z][\w.\-]*)(,?)$")
_VERSION = re.compile(r"[\^~]?\d+\.\d+")
_PACKAGES = ("lodash", "chalk", "rimraf", "cross-env", "prettier", "husky", "typescript", "debug")
_SCRIPTS_OF_PACKAGE = (("lint:fix", "eslint . --fix"), ("format", "prettier --write ."), ("clean", "rimraf dist"), ("typecheck", "tsc --noEmit"), ("coverage", "c8 npm test"), ("docs", "typedoc src"))  # fmt: skip
_NO_COMMA = frozenset(("yaml", "shell"))


def entry(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new entry of a list, dictionary or table, behind another one or first."""
    lines, items = source.lines, block.items
    places = [index + 1 for index, item in enumerate(items) if item.end - item.start == 1 and not is_comment(item)]
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
        if word is None or stem is None or item[3].count(stem[0]) > 1:
            return None
        return item[1] + item[2] + item[3][: stem.start()] + code.styled(word, stem[0]) + item[3][stem.end() :] + item[2]
    word_item = _WORD_ITEM.match(above)
    if word_item and source.language not in ("json", "toml", "php"):
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
    if _VERSION.match(value.strip("\"'")):
        name = code.pick_new(_PACKAGES, text, rng) if "ependencies" in header else None
        return f'{pair[1]}"{name}": "^{rng.randint(1, 6)}.{rng.randint(0, 9)}.{rng.randint(0, 9)}"' if name else None
    kind = "num" if re.fullmatch(r"-?\d+", value) else "bool" if re.fullmatch(r"true|false|True|False", value) else "str" if re.fullmatch(r"([\"'])[^\"']*\1|[a-z][\w\-]*", value) else ""  # fmt: skip
    found = _new_name(source, block, rng, (kind,)) if kind else None
    if found is None:
        return None
    new_value = value_of(kind, source, rng).strip("\"'")
    if kind == "str":
        new_value = value[0] + new_value + value[0] if value[0] in "\"'" else new_value if source.language == "yaml" else ""
    elif value[0].isupper() != new_value[0].isupper():
        new_value = new_value.capitalize()
    return pair[1] + pair[2] + code.styled(found[0], pair[3]) + pair[4] + pair[5] + new_value if new_value else None


# Headers and imports.


def _opened(kind: str, source: Source, block: Block, start: int, end: int, new: tuple[str, ...], first: int, rng: random.Random) -> Edit:
    """An edit of the header of a block, whose body a marker stands for."""
    pieces: list[Piece] = [Rows(first, start), New(), Rows(end, block.body), Gap(block.body, block.end, "rest")]
    pieces.append(Rows(block.end, block.stop))
    return Edit(kind, block.parent, start, end, new, tuple(pieces), first, block.stop, "members", opened=block)


def parameter(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new last parameter of a function; its body stays."""
    language = source.language
    found = _new_name(source, block, rng)
    around = parameters_of(block.node)
    if found is None or language in ("shell",) or (around is None and language != "swift"):
        return None
    function = function_of(block, source.lines, language)
    row = around.end_point.row if around is not None else block.name_row
    if not function.name or (around is not None and around.start_point.row != row) or block.body <= row:
        return None
    line = source.lines[row]
    if around is not None:
        raw = line.encode()
        start, end = (raw[: point.column].decode() for point in (around.start_point, around.end_point))
        inside = line[len(start) : len(end)]
    else:
        match = re.search(r"\([^()]*\)", line)
        if match is None:
            return None
        start, end, inside = line[: match.start()], line[: match.end()], match[0]
    if not inside.startswith("(") or not inside.endswith(")") or re.search(r"\*\*|\.\.\.|\*args|&\w+\)|, /|\bthis\b", inside) or inside.rstrip(") ").endswith(","):
        return None
    text = _parameter_text(source, inside, found, rng)
    if text is None or len(line) > 90:
        return None
    old = inside[1:-1].strip()
    if old == "void" and language in ("c", "cpp"):
        old = ""
    new_line = f"{start}({old}{', ' if old else ''}{text}){line[len(end):]}"
    first = _after_annotations(source, block, rng)
    return _opened("parameter", source, block, row, row + 1, (new_line,), first, rng)


def _after_annotations(source: Source, block: Block, rng: random.Random) -> int:
    """Where a snippet begins to show a header: with its annotations or behind them."""
    if rng.random() < 0.5:
        return block.start
    row = block.start
    while row < block.name_row and re.match(r"\s*(?:@[\w.]+(?:\(.*\))?|\[.*\]|#\[.*\])$", source.lines[row]):
        row += 1
    return row


def _parameter_text(source: Source, inside: str, found: tuple[str, str], rng: random.Random) -> str | None:
    language = "typescript" if source.language == "tsx" else source.language
    name, kind = found
    value, typed = value_of(kind, source, rng), code.TYPE_NAMES.get(language, {}).get(kind, "")
    camel = code.styled(name, "aB" if language not in ("c", "cpp") or re.search(r"[a-z][A-Z]", inside) else "a_b")
    forms = {
        "python": (f"{name}: {typed} = {value}",) if re.search(r"\w: ", inside) else (f"{name}=None", f"{name}={value}", f"{name}=None"),
        "javascript": (camel, f"{camel} = {value}", f"{camel} = null"),
        "typescript": (f"{camel}?: {typed}", f"{camel}: {typed} = {value}", f"{camel}: {typed}" if "?" not in inside and "=" not in inside else f"{camel}?: {typed}"),
        "java": (f"{typed} {camel}", f"final {typed} {camel}" if "final " in inside else f"{typed} {camel}"),
        "kotlin": (f"{camel}: {typed} = {value}", f"{camel}: {typed}? = null", f"{camel}: {typed}"),
        "go": (f"{camel} {typed}",), "rust": (f"{name}: {'&str' if kind == 'str' else typed}", f"{name}: Option<{'&str' if kind == 'str' else typed}>"),
        "c": (f"{typed} {camel}".replace("* ", "*"),), "cpp": (f"{'const std::string&' if kind == 'str' else typed} {camel}",),
        "csharp": (f"{typed} {camel} = {value}", f"{typed} {camel}" if "=" not in inside else f"{typed} {camel} = {value}"),
        "ruby": (f"{name} = nil", f"{name}: nil", f"{name}: {value}"), "lua": (name,),
        "php": (f"${camel} = {value}", f"${camel} = null", f"?{typed} ${camel} = null", f"{typed} ${camel} = {value}"),
        "swift": (f"{camel}: {typed} = {value}", f"{camel}: {typed}? = nil", f"{camel}: {typed}"),
    }  # fmt: skip
    if language == "ruby" and (":" in inside or "&" in inside or "=" in inside):
        return f"{name}: nil" if "&" not in inside and "**" not in inside else None
    if language in ("javascript",) and "=" in inside:
        return f"{camel} = {value}"
    if language == "php" and "=" not in inside and "?" not in inside and rng.random() < 0.5:
        return f"{typed} ${camel}"
    return rng.choice(forms[language]) if language in forms else None


def decorator(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new decorator or annotation of a function."""
    known = code.DECORATORS.get("typescript" if source.language == "tsx" else source.language, ())
    text = "\n".join(source.lines[block.start : block.body])
    fitting = [one for one in known if one.split("(")[0] not in text and not ("@property" in text or "@overload" in text)]
    is_method = block.parent is not None and block.parent.kind == "class"
    if source.language in ("typescript", "tsx") and not (is_method and block.node.type == "method_definition"):
        return None
    if not fitting or block.kind != "function":
        return None
    line = indent_of(source.lines[block.start]) + rng.choice(fitting)
    return _opened("decorator", source, block, block.start, block.start, (line,), block.start, rng)


def imported(source: Source, rng: random.Random) -> Edit | None:
    """A new import beside the others."""
    items = source.imports
    if not items:
        return None
    number = rng.choice((len(items) - 1, len(items) - 1, rng.randrange(len(items))))
    above = items[number]
    rows = source.lines[above.start : above.end]
    line = _import_like(rows[0], source, rng)
    if line is None or len(rows) > MAX_CONTEXT_ROWS or source.lines.count(rows[-1]) > 1:
        return None
    if number == 0 and rng.random() < 0.3:
        pieces: tuple[Piece, ...] = (New(), Rows(above.start, above.end))
        return Edit("import", None, above.start, above.start, (line,), pieces, above.start, above.end, "imports")
    first = items[number - 1].start if number and rng.random() < 0.4 and items[number - 1].end == above.start else above.start
    has_next = number + 1 < len(items) and items[number + 1].start == above.end and rng.random() < 0.5
    high = items[number + 1].end if has_next else above.end
    if above.start - first > MAX_CONTEXT_ROWS or high - above.end > MAX_CONTEXT_ROWS:
        first, high = above.start, above.end
    pieces = (Rows(first, above.end), New(), Rows(above.end, high))
    return Edit("import", None, above.end, above.end, (line,), pieces, first, high, "imports")


def _import_like(above: str, source: Source, rng: random.Random) -> str | None:
    """A new import in the form of another one."""
    language, text = source.language, "\n".join(source.lines)
    known = code.IMPORTS.get("javascript" if language in code.SCRIPTS else language, ())
    quote = "'" if "'" in above else '"'
    end = ";" if above.rstrip().endswith(";") else ""
    if language == "python":
        free = [one for one in known if one not in text]
        return rng.choice(free) if free and not above.startswith("from __future__") else None
    name = code.pick_new(known, text, rng) if language not in code.SCRIPTS and language != "lua" else rng.choice(known)
    if name is None:
        return None
    if language in (*code.SCRIPTS, "lua"):
        binding, _, module = name.partition(":")
        if module in text or re.search(rf"\b{re.escape(binding.strip('{} '))}\b", text):
            return None
        if "require" in above:
            start = re.match(r"(?:const|var|let|local)", above)
            if start is None:
                return None
            call = f"require({quote}{module}{quote})" if "require(" in above else f"require {quote}{module}{quote}"
            return f"{start[0]} {binding} = {call}{end}"
        return f"import {binding} from {quote}{module}{quote}{end}" if above.startswith("import") else None
    forms = {
        "java": f"import {name};", "kotlin": f"import {name}", "rust": f"use {name};", "c": f"#include {name}", "cpp": f"#include {name}",
        "csharp": f"using {name};", "ruby": f"require {quote}{name}{quote}", "php": f"use {name};", "swift": f"import {name}",
    }  # fmt: skip
    return indent_of(above) + forms[language]


def go_import(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new line in a block of imports."""
    name = code.pick_new(code.IMPORTS["go"], "\n".join(source.lines), rng)
    places = [index + 1 for index, item in enumerate(block.items) if '"' in source.lines[item.start]]
    if name is None or not places:
        return None
    new = (f'{body_indent(source, block)}"{name}"',)
    return inserted("import", source, block, rng.choice(places), new, rng, role="imports")


_STATEMENTS = (guard, guard, early_return, log, assertion, last_statement)
MAKERS: dict[str, tuple[_Maker, ...]] = {
    "function": (*_STATEMENTS, parameter, decorator),
    "class": (struct_field,),
    "struct": (struct_field,),
    "enum": (variant,),
    "constants": (variant,),
    "switch": (arm,),
    "entries": (entry,),
    "chain": (branch,),
    "imports": (go_import,),
}


def edits_of(source: Source, rng: random.Random) -> Iterator[Edit]:
    """Edits of a file in no order, several a block; most are not wanted."""
    makers = [(maker, block) for block in source.blocks for maker in MAKERS[block.kind]]
    for maker, block in rng.sample(makers, len(makers)):
        made = maker(source, block, rng)
        if made is not None:
            yield made
    if source.language not in DATA and source.language in GRAMMARS:
        made = imported(source, rng)
        if made is not None:
            yield made
