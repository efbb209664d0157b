"""Edits that put a statement into a function: guards, early returns, log lines and so on."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from training.generated.small_edits import code
from training.generated.small_edits.code import Function, Parameter
from training.generated.small_edits.edit import (
    LEAVING,
    MAX_DOCSTRING_ROWS,
    Edit,
    Gap,
    New,
    Piece,
    Rows,
    Source,
    body_indent,
    code_values,
    condition_of,
    filled,
    inserted,
)
from training.generated.small_edits.places import Block, function_of


def _first_index(source: Source, block: Block) -> int | None:
    """Where the statements of a function begin: behind its docstring; None if not at will."""
    first = source.lines[block.items[0].start].strip()
    if source.language == "python":
        return int(bool(re.match(r"[rRbu]?(?:\"\"\"|'''|\"|')", first)))
    if re.match(r"[\"']use |(?:return )?super\b|this\(|parent::|base\(", first):
        return None
    return 0


def _at_head(
    kind: str, source: Source, block: Block, statement: str, rng: random.Random
) -> Edit | None:
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
    if (num_rows > 2 and rng.random() < 0.12) or num_rows > MAX_DOCSTRING_ROWS:
        lead = Gap(docstring.start, docstring.end, "docstring")
    return Edit(
        kind,
        block,
        start,
        start,
        made.new,
        (lead, New(), after),
        docstring.start,
        made.high,
        "rest",
    )


def guard(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A check of a parameter, put first into a function."""
    function = function_of(block, source.lines, source.language)
    optional = [
        one
        for one in function.parameters
        if one.default in ("None", "undefined") and function.language in ("python", *code.SCRIPTS)
    ]
    if optional and rng.random() < 0.4:
        return _at_head(
            "guard", source, block, _default_statement(rng.choice(optional), source, rng), rng
        )
    found = condition_of(function, source, rng)
    if found is None:
        return None
    parameter, condition, message = found
    if not message.startswith(parameter.name) and rng.random() < 0.4:
        message = message[0].upper() + message[1:]
    values = code_values(source, function, parameter, rng)
    if source.language in ("kotlin", "swift") and rng.random() < 0.4:
        statement = _required(function, condition, message, rng)
    else:
        failure = code.failures(function, message, rng)
        if failure is None:
            return None
        failure = (
            failure.format(**{**values, "msg": message})
            if source.language not in ("go", "rust", "c", "swift")
            else failure
        )
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
        opposite = (
            f"let {opposite.split()[0]} = {opposite.split()[0]}" if rng.random() < 0.6 else opposite
        )
    return f"guard {opposite} else {{\n\t{returns[0]}\n}}" if returns else None


def _default_statement(parameter: Parameter, source: Source, rng: random.Random) -> str:
    kind = code.kind_of(Parameter(parameter.name, ""), source.language)
    value = {"num": "0", "str": source.quote * 2, "list": "[]"}.get(kind, "{}")
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
}


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
        found = condition_of(function, source, rng)
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
        if not LEAVING.match(source.lines[above.start].strip()) and above.type not in (
            "rescue",
            "function_definition",
            "ensure",
            "else",
        ):
            places.append(index)
    last = block.items[-1]
    if LEAVING.match(source.lines[last.start].strip()):
        places += [index for index in places if index == len(block.items) - 1]
    return rng.choice(places)


def _in_function(
    kind: str, templates: Sequence[str], source: Source, block: Block, rng: random.Random
) -> Edit | None:
    function = function_of(block, source.lines, source.language)
    if not function.name:
        return None
    usable = [one for one in function.parameters if re.fullmatch(r"[A-Za-z]\w*", one.name)]
    parameter = rng.choice(usable) if usable else None
    fitting = [one for one in templates if parameter or "{p}" not in one]
    index = _statement_index(source, block, rng)
    if not fitting or index is None:
        return None
    template = rng.choice(fitting)
    values = code_values(source, function, parameter, rng, template)
    statement = template.format(**values)
    if index == _first_index(source, block):
        return _at_head(kind, source, block, statement, rng)
    return inserted(
        kind, source, block, index, filled(statement, body_indent(source, block), source.unit), rng
    )


def log(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A line for the log, first or between two statements."""
    return _in_function("log", code.templates("logs", source.language), source, block, rng)


def assertion(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """An assertion about a parameter."""
    function = function_of(block, source.lines, source.language)
    found = condition_of(function, source, rng)
    opposite = code.negated(found[1], source.language) if found else None
    templates = code.templates("assertions", source.language)
    if found is None or opposite is None or not templates:
        return None
    values = {**code_values(source, function, found[0], rng), "msg": found[2], "ok": opposite}
    template = rng.choice(
        [one for one in templates if "requireNonNull" not in one or "null" in opposite]
    )
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
    is_done = (
        LEAVING.match(text)
        or last.type in ("rescue", "ensure", "else")
        or (is_value and not is_open)
    )
    first = _first_index(source, block)
    if is_done or not function.name or (first and len(block.items) == first) or function.has_value:
        return None
    if source.language in ("kotlin", "swift") and function.result:
        return None
    template = rng.choice(
        [
            one
            for one in code.templates("last", source.language)
            if ("self." not in one or "self" in function.text)
            and ("this." not in one or "this." in function.text)
        ]
    )
    statement = template.format(**code_values(source, function, None, rng, template))
    return inserted(
        "last_statement",
        source,
        block,
        len(block.items),
        filled(statement, body_indent(source, block), source.unit),
        rng,
        role="before",
    )
