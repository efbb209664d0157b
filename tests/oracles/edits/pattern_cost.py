"""Tries every regular expression of a package with long runs of what it looks for.

`python tests/oracle.py edits.pattern_cost` prints how the cost of each grows with the text.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import math
import pkgutil
import re
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from re import _constants as ops  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, get_args

from oracles.edits.step_counter import StepCounter, Text, TooManyStepsError, Use

from apply_service.edit.read.markers import MAX_LISTING_LENGTH, MAX_MARKER_LENGTH
from apply_service.edit.read.readings import MAX_NOTED_CHARS
from apply_service.edit.read.removal_notes import MAX_NOTE_LENGTH
from apply_service.edit.text.definition_names import MAX_LINE_LENGTH

PACKAGES = (
    "apply_service.edit",
    "apply_service.http",
    "apply_service.apply",
    "apply_service.prompts",
    "apply_service.lsp",
    "apply_client",
)
# Patterns in words that are tried only on texts with at most so many characters.
BOUNDS: Mapping[str, int] = {
    "read.inline_markers.STRONG": MAX_MARKER_LENGTH,
    "read.inline_markers.ENCLOSED": MAX_MARKER_LENGTH,
    "read.marker_phrases.LEADING": MAX_MARKER_LENGTH,
    "read.marker_phrases.TRAILING": MAX_MARKER_LENGTH,
    "read.marker_phrases.BARE": MAX_MARKER_LENGTH,
    "read.marker_phrases.LISTING": MAX_LISTING_LENGTH,
    "read.markers._REMOVAL": MAX_MARKER_LENGTH,
    "read.readings._NOTE": MAX_NOTED_CHARS,
    "read.readings._ELLIPSIS": MAX_NOTED_CHARS,
    "read.readings._REST": MAX_NOTED_CHARS,
    "read.removal_notes._NOTE": MAX_NOTE_LENGTH,
    "read.removal_notes._TITLE_NOTE": MAX_NOTE_LENGTH,
    "text.definition_names._BOUND_FUNCTION": MAX_LINE_LENGTH,
    "text.definition_names._CALL_LIKE": MAX_LINE_LENGTH,
}
_ALL_USES = frozenset(get_args(Use))
_USES: Mapping[str, Use] = {"match": "match", "fullmatch": "fullmatch"} | dict.fromkeys(
    ("search", "finditer", "findall", "sub", "subn", "split"), "search"
)
# Short texts tell how long ones grow where finite repeats are cut to this bound.
_MAX_BOUND = 6
_LENGTH = 48
_MAX_STEPS = 100_000
# One of each kind: of those that a pattern treats alike, the first stands for all.
_CHARACTERS = "a0 _\tA.\n-\"'`/\\:=#*@$,;()[]{}<>+!?|&%~^\rBzZ9\x00é…⟫\xa0"
_ENDINGS = ("", "\x00", "a", " ", "\n")


@dataclass(frozen=True)
class UsedPattern:
    """A pattern, where it stands, and the ways in which it is used."""

    name: str
    pattern: re.Pattern[Any]
    uses: frozenset[Use]


@dataclass(frozen=True)
class Probe:
    """A text that is `unit` again and again, between a beginning and an ending."""

    beginning: str
    unit: str
    ending: str

    def text(self, num_units: int) -> str:
        return self.beginning + self.unit * num_units + self.ending


@dataclass(frozen=True)
class Growth:
    """How the steps of a pattern grow over its worst probe; 1 is linear."""

    exponent: float
    use: Use | None = None
    probe: Probe | None = None


def used_patterns(packages: Iterable[str] = PACKAGES) -> list[UsedPattern]:
    """Every compiled pattern in the modules of some packages, once."""
    modules = [module for package in packages for module in _modules(package)]
    found: dict[tuple[Text, int], UsedPattern] = {}
    for module in modules:
        for name, value in vars(module).items():
            for pattern in _patterns_in(value):
                if name.startswith("__"):
                    continue
                uses = _uses(module.__name__, name, modules)
                key = (pattern.pattern, pattern.flags)
                if key in found:
                    uses |= found[key].uses
                    name_ = found[key].name
                else:
                    name_ = f"{module.__name__}.{name}"
                found[key] = UsedPattern(name_, pattern, uses)
    return list(found.values())


def _modules(package: str) -> Iterator[ModuleType]:
    root = importlib.import_module(package)
    yield root
    for info in pkgutil.walk_packages(root.__path__, f"{package}."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def _patterns_in(value: Any, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, Mapping) and depth < 3:
        for one in value.values():
            yield from _patterns_in(one, depth + 1)
    elif isinstance(value, tuple | list | set | frozenset) and depth < 3:
        for one in value:
            yield from _patterns_in(one, depth + 1)


@cache
def _names_used(module: ModuleType) -> Mapping[str, frozenset[Use]]:
    """How each name of a module is used that may be a pattern."""
    tree = ast.parse(inspect.getsource(module))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    uses: dict[str, set[Use]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            parent = parents[node]
            found = uses.setdefault(node.id, set())
            if not isinstance(parent, ast.Attribute):
                found |= _ALL_USES
            elif parent.attr in _USES:
                found.add(_USES[parent.attr])
    return {name: frozenset(found) for name, found in uses.items()}


def _uses(home: str, name: str, modules: list[ModuleType]) -> frozenset[Use]:
    own = vars(sys.modules[home])[name]
    return frozenset(
        use
        for module in modules
        if vars(module).get(name) is own
        for use in _names_used(module).get(name, ())
    )


class PatternProbes:
    """The probes of one pattern, made of what its parts look for."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self._counter = StepCounter(pattern, max_bound=_MAX_BOUND)
        self._flags = pattern.flags
        self._repeats: list[tuple[str, Any]] = []
        self._classes: list[Any] = []
        for variant in (0, 1):
            self._scan(self._counter.tree, "", variant)

    @cached_property
    def kinds(self) -> list[str]:
        """A character of each kind that the pattern tells from others."""
        accepts = [self._counter.try_accepts(node, self._flags) for node in self._classes]
        literals = {chr(node[1]) for node in self._classes if node[0] is ops.LITERAL}
        kinds: dict[tuple[bool, ...], str] = {}
        for character in dict.fromkeys([*_CHARACTERS, *sorted(literals)]):
            key = tuple(bool(one and one(self._code(character))) for one in accepts)
            kinds.setdefault(key, character)
        return [kinds[key] for key in kinds if any(key)]

    def _code(self, character: str) -> Any:
        return ord(character) if self._counter.is_bytes else character

    def __iter__(self) -> Iterator[Probe]:
        yield from dict.fromkeys(self._all())

    def _all(self) -> Iterator[Probe]:
        wholes = [self._sample(self._counter.tree, variant) for variant in range(3)]
        beginnings = {"": self.kinds, **{beginning: [] for beginning, _ in self._repeats}}
        for beginning, body in self._repeats:
            units = [self._sample(body, variant) for variant in range(4)]
            beginnings[beginning] = [*beginnings[beginning], *units]
        for beginning, units in beginnings.items():
            for unit in dict.fromkeys(units):
                yield from (Probe(beginning, unit, ending) for ending in _ENDINGS)
            yield from (Probe("", beginning + between, "") for between in ("", " ", "\n", "a"))
        for whole in wholes:
            yield from (Probe("", whole + between, "\x00") for between in ("", " ", "\n"))
        kinds = self.kinds[:6]
        for one in kinds:
            for other in kinds:
                if one != other:
                    yield from (Probe("", one + other, ending) for ending in ("", "\x00"))

    def _scan(self, nodes: Any, beginning: str, variant: int) -> None:
        """Note the repeats below, each with a text that leads to it."""
        for node in nodes:
            op, value = node
            if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
                if value[1] > 1:
                    self._repeats.append((beginning, value[2]))
                    self._classes += [one for one in value[2] if one[0] is ops.LITERAL]
                self._scan(value[2], beginning, variant)
            elif op is ops.BRANCH:
                for part in value[1]:
                    self._scan(part, beginning, variant)
            elif op is ops.SUBPATTERN:
                self._scan(value[3], beginning, variant)
            elif op is ops.ATOMIC_GROUP:
                self._scan(value, beginning, variant)
            elif op in (ops.ASSERT, ops.ASSERT_NOT):
                self._scan(value[1], beginning, variant)
            elif op in (ops.IN, ops.ANY, ops.NOT_LITERAL):
                self._classes.append(node)
            beginning += self._sample([node], variant)

    def _sample(self, nodes: Any, variant: int) -> str:
        """A text that fits some nodes, another one for each variant."""
        return "".join(self._sample_of(node, variant) for node in nodes)

    def _sample_of(self, node: Any, variant: int) -> str:
        op, value = node
        if op is ops.LITERAL:
            return chr(value)
        if op in (ops.IN, ops.ANY, ops.NOT_LITERAL):
            accepts = self._counter.try_accepts(node, self._flags)
            assert accepts is not None
            literals = (
                [chr(one[1]) for one in value if one[0] is ops.LITERAL] if op is ops.IN else []
            )
            fitting = [one for one in [*_CHARACTERS, *literals] if accepts(self._code(one))]
            return fitting[variant % len(fitting)] if fitting else ""
        if op is ops.BRANCH:
            return self._sample(value[1][variant % len(value[1])], variant)
        if op is ops.SUBPATTERN:
            return self._sample(value[3], variant)
        if op is ops.ATOMIC_GROUP:
            return self._sample(value, variant)
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            least, _, part = value
            times = max(min(least, _MAX_BOUND), 1 if variant % 2 else 0)
            return self._sample(part, variant) * times
        return ""


def growth(used: UsedPattern) -> Growth:
    """The worst growth over all probes and uses of a pattern."""
    worst = Growth(0.0)
    counter = StepCounter(used.pattern, max_bound=_MAX_BOUND)
    for probe in PatternProbes(used.pattern):
        for use in used.uses:
            exponent = _exponent(counter, probe, use)
            if exponent > worst.exponent:
                worst = Growth(exponent, use, probe)
                if exponent > 1.5:
                    return worst
    return worst


def _exponent(counter: StepCounter, probe: Probe, use: Use) -> float:
    if not probe.unit:
        return 0.0
    num_units = max(12, _LENGTH // len(probe.unit))
    costs = []
    for times in (1, 2, 4):
        text: Text = probe.text(num_units * times)
        if counter.is_bytes:
            text = text.encode("latin-1", "replace")
        counter.num_steps, counter.max_steps = 0, _MAX_STEPS
        try:
            counter.spans(text, use)
        except TooManyStepsError:
            return math.inf
        costs.append(counter.num_steps)
    first, second = costs[1] - costs[0], costs[2] - costs[1]
    return math.log2(second / first) if first > num_units // 4 and second > 0 else 0.0


def seconds_at(used: UsedPattern, num_characters: int) -> float:
    """The most processor seconds that the library takes for a probe of about this length."""
    worst = 0.0
    for probe in PatternProbes(used.pattern):
        if not probe.unit:
            continue
        text: Text = probe.text(num_characters // len(probe.unit))
        if isinstance(used.pattern.pattern, bytes):
            text = text.encode("latin-1", "replace")
        began = time.process_time()
        for use in used.uses:
            found = (
                used.pattern.finditer(text)
                if use == "search"
                else [getattr(used.pattern, use)(text)]
            )
            deque(found, maxlen=0)
        worst = max(worst, time.process_time() - began)
    return worst


def main() -> None:
    """Print the growth of each pattern, or its seconds at the longest text that it is tried on."""
    patterns = used_patterns()
    for used in patterns:
        bound = BOUNDS.get(used.name.removeprefix("apply_service.edit."))
        if bound is not None:
            print(f"at most {1e3 * seconds_at(used, bound):.1f} ms at {bound}  {used.name}")
        else:
            found = growth(used)
            print(f"n^{found.exponent:.2f}  {used.name}  {found.use} {found.probe}")
    print(f"{len(patterns)} patterns, {len(BOUNDS)} of them on bounded texts alone")


if __name__ == "__main__":
    main()
