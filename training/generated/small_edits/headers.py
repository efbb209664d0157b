"""Edits of what stands above code: parameters, decorators and imports."""

from __future__ import annotations

import random
import re

from training.generated.small_edits import code
from training.generated.small_edits.edit import (
    MAX_CONTEXT_ROWS,
    Edit,
    Gap,
    New,
    Piece,
    Rows,
    Source,
    body_indent,
    inserted,
    new_name,
    value_of,
)
from training.generated.small_edits.places import Block, function_of, indent_of, parameters_of


def _opened(
    kind: str,
    source: Source,
    block: Block,
    start: int,
    end: int,
    new: tuple[str, ...],
    first: int,
    rng: random.Random,
) -> Edit:
    """An edit of the header of a block, whose body a marker stands for."""
    pieces: list[Piece] = [
        Rows(first, start),
        New(),
        Rows(end, block.body),
        Gap(block.body, block.end, "rest"),
    ]
    pieces.append(Rows(block.end, block.stop))
    return Edit(
        kind,
        block.parent,
        start,
        end,
        new,
        tuple(pieces),
        first,
        block.stop,
        "members",
        opened=block,
    )


def parameter(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new last parameter of a function; its body stays."""
    language = source.language
    found = new_name(source, block, rng)
    around = parameters_of(block.node)
    if found is None or language in ("shell",) or (around is None and language != "swift"):
        return None
    function = function_of(block, source.lines, language)
    row = around.end_point.row if around is not None else block.name_row
    if (
        not function.name
        or (around is not None and around.start_point.row != row)
        or block.body <= row
    ):
        return None
    line = source.lines[row]
    if around is not None:
        raw = line.encode()
        start, end = (
            raw[: point.column].decode() for point in (around.start_point, around.end_point)
        )
        inside = line[len(start) : len(end)]
    else:
        match = re.search(r"\([^()]*\)", line)
        if match is None:
            return None
        start, end, inside = line[: match.start()], line[: match.end()], match[0]
    if (
        not inside.startswith("(")
        or not inside.endswith(")")
        or re.search(r"\*\*|\.\.\.|\*args|&\w+\)|, /|\bthis\b|\{", inside)
        or inside.rstrip(") ").endswith(",")
    ):
        return None
    text = _parameter_text(source, inside, found, rng)
    if text is None or len(line) > 90:
        return None
    old = inside[1:-1].strip()
    if old == "void" and language in ("c", "cpp"):
        old = ""
    new_line = f"{start}({old}{', ' if old else ''}{text}){line[len(end) :]}"
    first = after_annotations(source, block, rng)
    return _opened("parameter", source, block, row, row + 1, (new_line,), first, rng)


def after_annotations(source: Source, block: Block, rng: random.Random) -> int:
    """Where a snippet begins to show a header: with its annotations or behind them."""
    if rng.random() < 0.5:
        return block.start
    row = block.start
    while row < block.name_row and re.match(
        r"\s*(?:@[\w.]+(?:\(.*\))?|\[.*\]|#\[.*\])$", source.lines[row]
    ):
        row += 1
    return row


def _parameter_text(
    source: Source, inside: str, found: tuple[str, str], rng: random.Random
) -> str | None:
    language = "typescript" if source.language == "tsx" else source.language
    name, kind = found
    value, typed = value_of(kind, source, rng), code.type_name(kind, language)
    camel = code.styled(
        name, "aB" if language not in ("c", "cpp") or re.search(r"[a-z][A-Z]", inside) else "a_b"
    )
    forms = {
        "python": (f"{name}: {typed} = {value}",)
        if re.search(r"\w: ", inside)
        else (f"{name}=None", f"{name}={value}", f"{name}=None"),
        "javascript": (camel, f"{camel} = {value}", f"{camel} = null"),
        "typescript": (
            f"{camel}?: {typed}",
            f"{camel}: {typed} = {value}",
            f"{camel}: {typed}"
            if "?" not in inside and "=" not in inside
            else f"{camel}?: {typed}",
        ),
        "java": (
            f"{typed} {camel}",
            f"final {typed} {camel}" if "final " in inside else f"{typed} {camel}",
        ),
        "kotlin": (f"{camel}: {typed} = {value}", f"{camel}: {typed}? = null", f"{camel}: {typed}"),
        "go": (f"{camel} {typed}",),
        "rust": (
            f"{name}: {'&str' if kind == 'str' else typed}",
            f"{name}: Option<{'&str' if kind == 'str' else typed}>",
        ),
        "c": (f"{typed} {camel}".replace("* ", "*"),),
        "cpp": (f"{'const std::string&' if kind == 'str' else typed} {camel}",),
        "csharp": (
            f"{typed} {camel} = {value}",
            f"{typed} {camel}" if "=" not in inside else f"{typed} {camel} = {value}",
        ),
        "ruby": (f"{name} = nil", f"{name}: nil", f"{name}: {value}"),
        "lua": (name,),
        "php": (
            f"${camel} = {value}",
            f"${camel} = null",
            f"?{typed} ${camel} = null",
            f"{typed} ${camel} = {value}",
        ),
        "swift": (f"{camel}: {typed} = {value}", f"{camel}: {typed}? = nil", f"{camel}: {typed}"),
    }
    if language == "ruby" and (":" in inside or "&" in inside or "=" in inside):
        return f"{name}: nil" if "&" not in inside and "**" not in inside else None
    if language in ("javascript",) and "=" in inside:
        return f"{camel} = {value}"
    if language == "php" and "=" not in inside and "?" not in inside and rng.random() < 0.5:
        return f"{typed} ${camel}"
    return rng.choice(forms[language]) if language in forms else None


def decorator(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new decorator or annotation of a function."""
    known = code.templates("decorators", source.language)
    text = "\n".join(source.lines[block.start : block.body])
    fitting = [
        one
        for one in known
        if one.split("(")[0] not in text and not ("@property" in text or "@overload" in text)
    ]
    is_method = block.parent is not None and block.parent.kind == "class"
    if source.language in ("typescript", "tsx") and not (
        is_method and block.node.type == "method_definition"
    ):
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
        return Edit(
            "import",
            None,
            above.start,
            above.start,
            (line,),
            pieces,
            above.start,
            above.end,
            "imports",
        )
    first = (
        items[number - 1].start
        if number and rng.random() < 0.4 and items[number - 1].end == above.start
        else above.start
    )
    has_next = (
        number + 1 < len(items) and items[number + 1].start == above.end and rng.random() < 0.5
    )
    high = items[number + 1].end if has_next else above.end
    if above.start - first > MAX_CONTEXT_ROWS or high - above.end > MAX_CONTEXT_ROWS:
        first, high = above.start, above.end
    pieces = (Rows(first, above.end), New(), Rows(above.end, high))
    return Edit("import", None, above.end, above.end, (line,), pieces, first, high, "imports")


def _import_like(above: str, source: Source, rng: random.Random) -> str | None:
    """A new import in the form of another one."""
    language, text = source.language, "\n".join(source.lines)
    known = code.templates("imports", language)
    quote = "'" if "'" in above else '"'
    end = ";" if above.rstrip().endswith(";") else ""
    if language == "python":
        free = [one for one in known if one not in text]
        return rng.choice(free) if free and not above.startswith("from __future__") else None
    name = (
        code.pick_new(known, text, rng)
        if language not in code.SCRIPTS and language != "lua"
        else rng.choice(known)
    )
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
            call = (
                f"require({quote}{module}{quote})"
                if "require(" in above
                else f"require {quote}{module}{quote}"
            )
            return f"{start[0]} {binding} = {call}{end}"
        return (
            f"import {binding} from {quote}{module}{quote}{end}"
            if above.startswith("import")
            else None
        )
    forms = {
        "java": f"import {name};",
        "kotlin": f"import {name}",
        "rust": f"use {name};",
        "c": f"#include {name}",
        "cpp": f"#include {name}",
        "csharp": f"using {name};",
        "ruby": f"require {quote}{name}{quote}",
        "php": f"use {name};",
        "swift": f"import {name}",
    }
    return indent_of(above) + forms[language]


def go_import(source: Source, block: Block, rng: random.Random) -> Edit | None:
    """A new line in a block of imports."""
    name = code.pick_new(code.templates("imports", "go"), "\n".join(source.lines), rng)
    places = [
        index + 1 for index, item in enumerate(block.items) if '"' in source.lines[item.start]
    ]
    if name is None or not places:
        return None
    new = (f'{body_indent(source, block)}"{name}"',)
    return inserted("import", source, block, rng.choice(places), new, rng, role="imports")
