"""What small edits add: statements, fields, parameters, imports and so on for each language.

A template has `{p}` for a parameter, `{msg}` for a message and a tab for each level of indentation.
Types are sorted into kinds: `str`, `num`, `list`, `fn`, `ref` (may be null) and `value` (may not).
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function; `type` is empty where it is not written down."""

    name: str
    type: str
    default: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """What new code may know of the function it is put into."""

    language: str
    name: str
    parameters: tuple[Parameter, ...]
    result: str
    has_value: bool
    text: str
    file_text: str


_TABLES = tomllib.loads((Path(__file__).parent / "tables.toml").read_text(encoding="utf-8"))
SCRIPTS = ("javascript", "typescript", "tsx")
_FALLBACKS = {"tsx": "typescript", "typescript": "javascript"}


def table(name: str) -> dict[str, Any]:
    """A table of `tables.toml`."""
    return cast("dict[str, Any]", _TABLES[name])


def templates(name: str, language: str) -> list[str]:
    """What a table has for a language, or for the one that it is most like."""
    known = table(name)
    while language not in known and language in _FALLBACKS:
        language = _FALLBACKS[language]
    return cast("list[str]", known.get(language, []))


def conditions(language: str) -> dict[str, list[tuple[str, str]]]:
    """Conditions under which a parameter of a kind is wrong, and what to say then."""
    known = table("conditions")
    return cast(
        "dict[str, list[tuple[str, str]]]", known["javascript" if language in SCRIPTS else language]
    )


def type_name(kind: str, language: str) -> str:
    """The name of a type by the kind of its values; empty where none is written."""
    known = table("types").get("typescript" if language == "tsx" else language, {})
    return cast("str", known.get(kind, ""))


_NUMBER_NAME = re.compile(
    r"(?:^|_)(?:count|num|n|size|length|len|index|idx|limit|offset|width|height|timeout|depth|level"
    r"|port|amount|seconds|ms|x|y|max_?\w*|min_?\w*)$",
    re.I,
)
_TEXT_NAME = re.compile(
    r"(?:name|path|url|text|key|message|msg|title|label|prefix|suffix|pattern|string|str|line|query"
    r"|host|id|code|content)$",
    re.I,
)
_CALL_NAME = re.compile(r"(?:^cb|callback|^fn|^func|handler|listener|^done|^next|predicate)$", re.I)
_LIST_NAME = re.compile(r"(?:items|args|values|list|[a-z]{3,}(?<!s)(?<!ion)(?<!clas)s)$", re.I)
_TYPES: tuple[tuple[str, str], ...] = (
    ("fn", r"Callable|=>|^func\b|\(.*\)\s*->|Function|^Fn|callback"),
    ("skip", r"^bool|^Boolean|void|^impl |^self|\.\.\.|&&|^out |^ref |^params "),
    (
        "list",
        r"^(?:typing\.)?(?:list|List|Sequence|Iterable|Array|Vec|Collection|MutableList|array)\b"
        r"|\[\]|^&\[|^\[\w+\]$|^(?:const )?std::vector|^&Vec|^\[\]",
    ),
    ("str", r"^(?:str|string|String|&str|&String|CharSequence|NSString)$|std::string(?:_view)?\b"),
    (
        "num",
        r"^(?:int|Int|Integer|long|Long|float|Float|double|Double|number|size_t|usize|u?int\d+"
        r"(?:_t)?|[iuf](?:8|16|32|64)|short|unsigned|unsigned int|uint|CGFloat|TimeInterval)$",
    ),
)


def kind_of(parameter: Parameter, language: str) -> str:
    """The kind of a parameter's type, or a guess from its name; `skip` if nothing fits."""
    kind = parameter.type.strip()
    if kind:
        for name, pattern in _TYPES:
            if re.search(pattern, kind.removeprefix("const ").rstrip("?")):
                return (
                    "optional" if kind.endswith("?") and language in ("kotlin", "swift") else name
                )
        return _kind_of_reference(kind, language)
    if language in ("go", "rust", "c", "cpp", "java", "kotlin", "swift", "csharp"):
        return "skip"
    for name, pattern_of_name in (
        ("fn", _CALL_NAME),
        ("num", _NUMBER_NAME),
        ("str", _TEXT_NAME),
        ("list", _LIST_NAME),
    ):
        if pattern_of_name.search(parameter.name):
            return name
    return "ref"


def _kind_of_reference(kind: str, language: str) -> str:
    if language == "go":
        nil = kind.startswith(("*", "map[", "chan ", "interface{}")) or kind in ("error", "any")
        return "ref" if nil else "skip"
    if language in ("c", "cpp"):
        is_pointer = kind.endswith("*")
        return "ref" if is_pointer else "skip"
    if language == "rust":
        return "optional" if kind.startswith("Option<") else "skip"
    if language in ("kotlin", "swift"):
        return "optional" if kind.endswith("?") else "skip"
    if language in ("java", "csharp") and (
        kind in ("char", "byte", "CancellationToken") or kind[0].islower()
    ):
        return "skip"
    if language == "csharp" and re.match(r"Vector\d|Quaternion|Color|Rect|I?ntPtr", kind):
        return "skip"
    return "ref"


_NEGATIONS = (
    (r"^(.+) is None$", r"\1 is not None"),
    (r"^(.+) == (null|nil|NULL|nullptr)$", r"\1 != \2"),
    (r"^(.+) === (.+)$", r"\1 !== \2"),
    (r"^(.+) !== (.+)$", r"\1 === \2"),
    (r"^(.+) ~= (.+)$", r"\1 == \2"),
    (r"^(\S+) < (\S+)$", r"\1 >= \2"),
    (r"^(\S+) <= (\S+)$", r"\1 > \2"),
    (r"^(\S+) > (\S+)$", r"\1 <= \2"),
    (r"^(\S+) == (0|\"\")$", r"\1 != \2"),
    (r"^not (\S+|\w+\([^()]*\))$", r"\1"),
    (r"^!([\w.$]+(?:\([^()]*\))?)$", r"\1"),
    (r"^(\S+)\.isEmpty\(\)$", r"\1.isNotEmpty()"),
    (r"^([\w.]+\.(?:is_empty|isEmpty|empty|is_none|isBlank)(?:\(\))?)$", r"!\1"),
    (r"^(\S+)\.is_none\(\)$", r"\1.is_some()"),
    (r"^(empty\(\S+\)|string\.\w+\(\S+\))$", r"!\1"),
)


def negated(condition: str, language: str) -> str | None:
    """The opposite of a condition of `CONDITIONS`, or None where that reads badly."""
    if " or " in condition or "||" in condition:
        return None
    for pattern, turned in _NEGATIONS:
        if language == "java" and "isNotEmpty" in turned:
            continue
        result, num_found = re.subn(pattern, turned, condition)
        if num_found:
            return result
    return None


def early_returns(function: Function) -> list[str]:
    """Statements that leave the function with nothing, as its result allows."""
    language, result = function.language, function.result.strip()
    if language == "tsx":
        language = "typescript"
    known = table("results").get(language, {}).get(result)
    if known is not None:
        return [known]
    if language in ("javascript", "typescript") and not result:
        return (
            ["return null;", "return;", "return undefined;"] if function.has_value else ["return;"]
        )
    if language == "python" and not result:
        return ["return None", "return None", "return False"] if function.has_value else ["return"]
    if language in ("ruby", "lua"):
        return {"ruby": ["return", "return nil"], "lua": ["return nil", "return"]}[language]
    if language == "shell":
        return ["return 0", "return 1"]
    if language == "php" and not result:
        return ["return null;"] if function.has_value else ["return;"]
    optional = (
        (result.startswith("Option<"), "return None;"),
        (
            result.endswith("?") and language in ("kotlin", "swift"),
            "return null" if language == "kotlin" else "return nil",
        ),
        (result.endswith("?") and language == "csharp", "return null;"),
        (result.startswith("?") and language == "php", "return null;"),
        ("| null" in result, "return null;"),
        ("| undefined" in result, "return undefined;"),
        (result == "Promise<void>", "return;"),
        (result.startswith("Optional[") or result.endswith("| None"), "return None"),
        (result.endswith("*") and language == "c", "return NULL;"),
        (result.endswith("*") and language == "cpp", "return nullptr;"),
        (result.startswith("[]") or (result.startswith("*") and language == "go"), "return nil"),
        (result.startswith(("List<", "Map<")) and language == "java", "return null;"),
    )
    return [statement for is_so, statement in optional if is_so][:1]


def _go_failures(function: Function, message: str) -> list[str]:
    result = function.result.strip()
    makers = [f'fmt.Errorf("{message}")'] if '"fmt"' in function.file_text else []
    makers += [f'errors.New("{message}")'] if '"errors"' in function.file_text else []
    if result == "error":
        return [f"return {maker}" for maker in makers]
    pair = re.fullmatch(r"\((\S+), error\)", result)
    if not pair:
        return early_returns(function)
    first = pair[1]
    zero = {"string": '""', "bool": "false", "int": "0", "int64": "0"}.get(first)
    if zero is None:
        zero = "nil" if first.startswith(("*", "[]", "map[")) else None
    return [f"return {zero}, {maker}" for maker in makers] if zero else []


def _rust_failures(function: Function, message: str) -> list[str]:
    result = function.result.strip()
    if result.startswith("PyResult"):
        return [
            f'return Err(PyValueError::new_err("{message}"));',
            f'return Err(PyTypeError::new_err("{message}"));',
        ]
    if result.startswith(("Result<", "anyhow::Result")):
        return [f'return Err("{message}".into());', f'return Err(Error::new("{message}"));']
    return early_returns(function)


def failures(function: Function, message: str, rng: random.Random) -> str | None:
    """A statement that says that a parameter is wrong."""
    language = function.language
    if language == "go":
        found = _go_failures(function, message) or [
            one.format(msg=message, f=function.name) for one in templates("failures", "go")
        ]
    elif language == "rust":
        found = _rust_failures(function, message)
    elif language in ("c", "swift"):
        stops = [one.format(msg=message) for one in templates("failures", language)]
        found = [*early_returns(function), *early_returns(function), *stops]
    else:
        is_about_value = " must be " in message
        found = [
            one for one in templates("failures", language) if is_about_value or "got" not in one
        ]
    return rng.choice(found) if found else None


def forms(language: str) -> list[str]:
    """How a statement is put under a condition."""
    return templates("forms", language) or templates("forms", "braces")


def words_of(name: str) -> str:
    """The words of a name, as a message says them."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.:]+", " ", name).strip().lower()


def messages(name: str, template: str, rng: random.Random) -> str:
    """A line for the log about a function, which a template may name besides."""
    if "{f}" in template:
        return rng.choice(("called", "start", "entered", "begin", "running"))
    words = words_of(name)
    forms_of_message = (
        "entering {n}",
        "{n} called",
        "starting {w}",
        "{w} started",
        "running {w}",
        "about to {w}",
        "in {n}",
        "{w}: begin",
    )
    return rng.choice(forms_of_message).format(n=name, w=words)


# Names of new fields, parameters and entries, with the kind of their values.
NEW_NAMES: tuple[tuple[str, str], ...] = (
    ("timeout", "num"),
    ("max_retries", "num"),
    ("verbose", "bool"),
    ("label", "str"),
    ("enabled", "bool"),
    ("description", "str"),
    ("priority", "num"),
    ("cache_size", "num"),
    ("owner", "str"),
    ("strict", "bool"),
    ("retry_delay", "num"),
    ("locale", "str"),
    ("dry_run", "bool"),
    ("batch_size", "num"),
    ("debug", "bool"),
    ("category", "str"),
    ("max_depth", "num"),
    ("region", "str"),
)
NUMBERS = ("3", "5", "10", "30", "100", "256")
TEXTS = ("default", "auto", "main", "none", "standard", "custom")
NEW_WORDS = (
    "pending",
    "unknown",
    "archived",
    "cancelled",
    "deferred",
    "custom",
    "draft",
    "expired",
    "paused",
    "legacy",
    "partial",
    "hidden",
)


def styled(name: str, like: str) -> str:
    """A name of lower-case words in the style of another one: `max_size` like `minSize`."""
    parts = re.split(r"[_\- ]", name)
    letters = re.sub(r"[^A-Za-z]", "", like)
    if letters.isupper() and len(letters) > 1:
        return "_".join(parts).upper()
    if "-" in like:
        return "-".join(parts)
    if letters[:1].isupper():
        return "".join(part.capitalize() for part in parts)
    if "_" in like.strip("_") or not re.search(r"[a-z][A-Z]", like):
        return "_".join(parts)
    return parts[0] + "".join(part.capitalize() for part in parts[1:])


def renamed(line: str, old: str, new: str) -> str:
    """A line with one word changed wherever it is a part of a name, in the style it has there."""
    for before, after in (
        (old, new),
        (old.lower(), new.lower()),
        (old.upper(), new.upper()),
        (old.capitalize(), new.capitalize()),
    ):
        line = line.replace(before, after)
    return line


def pick_new(names: Sequence[str], taken: str, rng: random.Random) -> str | None:
    """One of the names that a text does not have yet."""
    free = [name for name in names if not re.search(rf"\b{re.escape(name)}\b", taken, re.I)]
    return rng.choice(free) if free else None
