"""Writes a segment with the indentation of the file it goes into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from apply_service.edit.line_index import LineIndex, indent_of, indent_unit
from apply_service.edit.runs import Run


def reindented(texts: Sequence[str], runs: Iterable[Run], index: LineIndex) -> list[str]:
    """`texts` shifted as the lines that stand in the original say.

    Nothing changes if any of those lines is indented as in the original, or if they disagree:
    then the segment means what it says. So it does if its steps are as wide as the file's and only
    some lines are deeper than they were, as where old code goes into a new block.
    """
    pairs: dict[str, str] = {}
    for run in runs:
        for new, old in _aligned(run, texts, index):
            if (new and new == old) or pairs.setdefault(new, old) != old:
                return list(texts)
    shifted = _shifted(texts, pairs)
    if shifted is not None:
        return shifted
    units = indent_unit(texts), index.indent_unit
    return list(texts) if units[0] == units[1] else _in_units(texts, pairs, units)


def reindented_by(texts: Sequence[str], pairs: dict[str, str]) -> list[str]:
    """`texts` indented so that the indentations that are keys of `pairs` become their values.

    Where no shift by the same amount does that, steps are made wider or narrower.
    """
    shifted = _shifted(texts, pairs)
    return _in_units(texts, pairs, None) if shifted is None else shifted


def _shifted(texts: Sequence[str], pairs: dict[str, str]) -> list[str] | None:
    """All lines moved by the same amount, None if that is not what the pairs say."""
    if all(new == old for new, old in pairs.items()):
        return list(texts)
    added = _common_addition(pairs)
    if added is not None:
        return [added + text if text.strip() else text for text in texts]
    dropped = _common_addition({old: new for new, old in pairs.items()})
    if dropped is not None and all(text.startswith(dropped) for text in texts if text.strip()):
        return [text[len(dropped) :] if text.strip() else text for text in texts]
    return None


def _aligned(run: Run, texts: Sequence[str], index: LineIndex) -> list[tuple[str, str]]:
    """Indentations of the segment's lines and of the original's, where these are equal."""
    if not run.is_definition:
        return [
            (indent_of(texts[run.new + step]), indent_of(index.lines[run.old + step]))
            for step in range(run.new_end - run.new)
            if texts[run.new + step].strip()
        ]
    old_places: dict[str, list[int]] = {}
    for place in range(run.old, run.old_end):
        old_places.setdefault(index.stripped[place], []).append(place)
    new_texts = Counter(text.strip() for text in texts[run.new : run.new_end])
    return [
        (indent_of(text), indent_of(index.lines[old_places[text.strip()][0]]))
        for text in texts[run.new : run.new_end]
        if text.strip()
        and len(old_places.get(text.strip(), ())) == 1
        and new_texts[text.strip()] == 1
    ]


def _common_addition(pairs: dict[str, str]) -> str | None:
    """What stands before every key in its value, if it is always the same."""
    additions = {
        old[: len(old) - len(new)] if old.endswith(new) else None for new, old in pairs.items()
    }
    return additions.pop() if len(additions) == 1 else None


def _in_units(
    texts: Sequence[str], pairs: dict[str, str], units: tuple[str, str] | None
) -> list[str]:
    """Turn steps of one width into steps of another (four spaces into a tab, or back).

    With the `units` of the texts and of the file, the former are no wider than the texts' own and
    the latter no narrower than the file's.
    """
    rates = {(len(new), old) for new, old in pairs.items() if new}
    best = min(rates, default=None)
    if best is None or not best[1]:
        return list(texts)
    for steps in range(best[0], 0, -1):
        if best[0] % steps or len(best[1]) % steps:
            continue
        width, unit = best[0] // steps, best[1][: len(best[1]) // steps]
        if units and (width > len(units[0]) or len(unit) < len(units[1])):
            continue
        if all(unit * (len(new) // width) == old for new, old in pairs.items()):
            return [_converted(text, width, unit) for text in texts]
    return list(texts)


def _converted(text: str, width: int, unit: str) -> str:
    indent = indent_of(text)
    num_steps, rest = divmod(len(indent), width)
    return unit * num_steps + indent[len(indent) - rest :] + text[len(indent) :]
