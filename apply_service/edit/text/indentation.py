"""Writes a segment with the indentation of the file it goes into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise

from apply_service.edit.text.line_index import LineIndex, indent_of, indent_unit
from apply_service.edit.text.work_budget import add_characters


def reindented(texts: Sequence[str], old: Sequence[str], index: LineIndex) -> list[str]:
    """Shift `texts`, a new version of the definition `old`, to the indentation of that one.

    Nothing changes if a line that both have is indented as in the original, or if such lines
    disagree: then the segment's own indentation is meant. The same holds if its steps are as wide
    as the file's and only some lines are deeper than they were, as where old code goes into a new
    block. But spaces in a file of tabs become tabs, and the other way round.
    """
    seen = set(_aligned(texts, old))
    if any(new and new == kept for new, kept in seen):
        return list(texts)
    pairs = dict(seen)
    agree = len(pairs) == len(seen)
    shifted = _shifted(texts, pairs) if agree else None
    if shifted is not None:
        return shifted
    units = indent_unit(texts), index.indent_unit
    if units[0] == units[1]:
        return list(texts)
    in_units = _try_in_units(texts, pairs, units) if agree else None
    return _with_other_characters(texts, seen, units) if in_units is None else in_units


def reindented_by(texts: Sequence[str], pairs: dict[str, str]) -> list[str]:
    """Indent `texts` so that each indentation in the keys of `pairs` becomes its value.

    Where no shift by a constant amount does so, steps are made wider or narrower, and where that
    does not either, what is deeper than a key is as much deeper than its value.
    """
    shifted = _shifted(texts, pairs)
    if shifted is None:
        shifted = _try_in_units(texts, pairs, None)
    return _beyond_keys(texts, pairs) if shifted is None else shifted


def _beyond_keys(texts: Sequence[str], pairs: dict[str, str]) -> list[str]:
    """Each line with the value of the longest key that its indentation begins with."""
    keys = sorted(pairs, key=len)
    width, unit = 0, ""
    for low, high in pairwise(keys):
        if high.startswith(low) and pairs[high].startswith(pairs[low]):
            width, unit = len(high) - len(low), pairs[high][len(pairs[low]) :]
    shifted = []
    for text in texts:
        indent = indent_of(text)
        key = next((key for key in reversed(keys) if indent.startswith(key)), None)
        if key is None or not text.strip():
            shifted.append(text)
            continue
        rest = indent[len(key) :]
        num_steps = len(rest) // width if width else 0
        add_characters(len(unit) * num_steps + len(pairs[key]))
        deeper = unit * num_steps + rest[num_steps * width :]
        shifted.append(pairs[key] + deeper + text[len(indent) :])
    return shifted


def lacks_first_indent(texts: Sequence[str], old: Sequence[str]) -> bool:
    """True if only the first line of `texts`, a new version of `old`, lost its indentation."""
    is_less = len(indent_of(texts[0])) < len(indent_of(old[0]))
    return is_less and _margin(texts[1:]) == _margin(old[1:])


def _margin(texts: Sequence[str]) -> int:
    """The least indentation of the lines with text."""
    return min((len(indent_of(text)) for text in texts if text.strip()), default=0)


def _shifted(texts: Sequence[str], pairs: dict[str, str]) -> list[str] | None:
    """Shift all lines by the same amount; None if `pairs` do not agree on one."""
    if all(new == old for new, old in pairs.items()):
        return list(texts)
    added = _common_addition(pairs)
    if added is not None:
        add_characters(len(added) * len(texts))
        return [added + text if text.strip() else text for text in texts]
    dropped = _common_addition({old: new for new, old in pairs.items()})
    if dropped is not None and all(text.startswith(dropped) for text in texts if text.strip()):
        return [text[len(dropped) :] if text.strip() else text for text in texts]
    return None


def _aligned(texts: Sequence[str], old: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of indentations of the first lines, and of lines that stand once in either text."""
    counts = Counter(text.strip() for text in texts), Counter(text.strip() for text in old)
    old_indents = {text.strip(): indent_of(text) for text in old}
    return [
        (indent_of(texts[0]), indent_of(old[0])),
        *(
            (indent_of(text), old_indents[text.strip()])
            for text in texts
            if text.strip() and all(count[text.strip()] == 1 for count in counts)
        ),
    ]


def _common_addition(pairs: dict[str, str]) -> str | None:
    """The prefix that turns every key into its value, if it is always the same."""
    additions = {
        old[: len(old) - len(new)] if old.endswith(new) else None for new, old in pairs.items()
    }
    return additions.pop() if len(additions) == 1 else None


def _try_in_units(
    texts: Sequence[str], pairs: dict[str, str], units: tuple[str, str] | None
) -> list[str] | None:
    """Turn steps of one width into steps of another (four spaces into a tab, or back).

    None if the pairs do not agree about these widths.
    With the `units` of the texts and of the file, the former are no wider than the texts' own and
    the latter no narrower than the file's.
    """
    rates = {(len(new), old) for new, old in pairs.items() if new}
    best = min(rates, default=None)
    if best is None or not best[1]:
        return None
    for steps in range(best[0], 0, -1):
        if best[0] % steps or len(best[1]) % steps:
            continue
        width, unit = best[0] // steps, best[1][: len(best[1]) // steps]
        if units and (width > len(units[0]) or len(unit) < len(units[1])):
            continue
        if all(_converted(new, width, unit) == old for new, old in pairs.items()):
            return [_converted(text, width, unit) for text in texts]
    return None


def _with_other_characters(
    texts: Sequence[str], seen: Collection[tuple[str, str]], units: tuple[str, str]
) -> list[str]:
    """Change spaces to tabs, or tabs to spaces, if lines of the original say so.

    The width of a step is the one most of these lines agree on; some may be deeper than they were.
    """
    new_unit, old_unit = units
    told = [(new, old) for new, old in seen if new and old and not set(new) & set(old)]
    if not told:
        return list(texts)
    widths = Counter(
        len(new) // num_steps
        for new, num_steps in ((new, len(old) // len(old_unit)) for new, old in told)
        if num_steps and len(new) % num_steps == 0 and len(new) // num_steps <= len(new_unit)
    )
    width = min(widths, key=lambda one: (-widths[one], one), default=len(new_unit))
    return [_converted(text, width, old_unit) for text in texts]


def _converted(text: str, width: int, unit: str) -> str:
    indent = indent_of(text)
    num_steps, rest = divmod(len(indent), width)
    add_characters(len(unit) * num_steps)
    return unit * num_steps + indent[len(indent) - rest :] + text[len(indent) :]
