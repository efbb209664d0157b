"""Features of a whole merge: its steps, and the text that comes out beside the original."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise

from apply_service.edit.place.candidates.way import possible_move
from apply_service.edit.place.features import text_flaws as flaws
from apply_service.edit.place.features.candidate_features import CANDIDATE_FEATURES
from apply_service.edit.place.features.feature import FeatureSet
from apply_service.edit.place.features.merge_view import MergeView
from apply_service.edit.read.instruction_comments import is_comment
from apply_service.edit.read.readings import has_note
from apply_service.edit.read.segment import SnippetFormat
from apply_service.edit.text.brackets import BLOCK_OPENERS
from apply_service.edit.text.words import WORD

RESULT_FEATURES: FeatureSet[MergeView] = FeatureSet()
FORMATS: tuple[SnippetFormat, ...] = (
    "lazy",
    "fragment",
    "whole",
    "diff",
    "search_replace",
    "patch",
)
NO_NEXT_SCORE = 9.0
IMPORT = re.compile(
    r"(?:import|from|use|using|#include|require|export .* from|const .*require\()\b|#include"
)
_add = RESULT_FEATURES.add


@_add
def rank(view: MergeView) -> float:
    """Other merges have likelier steps."""
    return view.rank


@_add
def score(view: MergeView) -> float:
    """How likely its steps are."""
    return view.way.score


@_add
def score_gap(view: MergeView) -> float:
    """The likeliest steps are so much likelier."""
    return max(view.scores) - view.way.score


@_add
def next_gap(view: MergeView) -> float:
    """The next merge is so much less likely."""
    worse = [one for one in view.scores if one < view.way.score]
    return view.way.score - max(worse) if worse else NO_NEXT_SCORE


@_add
def least_step(view: MergeView) -> float:
    """Its most doubtful step."""
    return min(view.way.step_scores, default=0.0)


@_add
def mean_step(view: MergeView) -> float:
    """Long updates have more doubtful steps."""
    return view.way.score / max(len(view.way.step_scores), 1)


@_add
def local_score(view: MergeView) -> float:
    """How likely its candidates are by themselves."""
    return sum(view.way.local_scores)


@_add
def least_local(view: MergeView) -> float:
    """Its most doubtful candidate."""
    return min(view.way.local_scores, default=0.0)


@_add
def num_merges(view: MergeView) -> float:
    """Many merges compete."""
    return len(view.scores)


@_add
def num_parts(view: MergeView) -> float:
    """Parts of the update."""
    return len(view.way.parts)


@_add
def num_markers(view: MergeView) -> float:
    """Markers of the update."""
    return view.reading.num_markers


@_add
def reading_number(view: MergeView) -> float:
    """0 if the update was read as it stands."""
    return view.reading.number


@_add
def num_readings(view: MergeView) -> float:
    """Readings that lead to this text."""
    return view.num_readings


@_add
def update_format(view: MergeView) -> float:
    """How the update was written."""
    return FORMATS.index(view.reading.format)


@_add
def num_reordered(view: MergeView) -> float:
    """Parts that stand in another order than they were sent."""
    numbers = [part.number for part in view.way.parts if part.number >= 0]
    return sum(low > high for low, high in pairwise(numbers))


@_add
def num_moved(view: MergeView) -> float:
    """Gaps that are moved sideways."""
    return sum(map(bool, view.way.moves))


@_add
def num_unmoved(view: MergeView) -> float:
    """Gaps that a deeper or less deep marker would move, left as they are."""
    way = view.way
    moves = way.moves or (0,) * len(way.candidates)
    return sum(
        not moves[number]
        and bool(
            possible_move(
                view.original, way.parts, number, way.candidates[number - 1], way.candidates[number]
            )
        )
        for number in range(1, len(way.candidates))
    )


@_add
def num_shallow(view: MergeView) -> float:
    """Lines behind an opened block that are no deeper, more than before."""
    return flaws.num_shallow(view.result) - flaws.num_shallow(view.original)


@_add
def num_jumps(view: MergeView) -> float:
    """Lines deeper than the line above, which opens no block, more than before."""
    return flaws.num_jumps(view.result) - flaws.num_jumps(view.original)


@_add
def num_reindented(view: MergeView) -> float:
    """Parts whose rows are moved sideways, each by its own columns."""
    return sum(bool(one.row_shifts) for one in view.way.candidates)


@_add
def num_shifted(view: MergeView) -> float:
    """Parts that are moved sideways as a whole."""
    return sum(bool(one.shift) for one in view.way.candidates)


@_add
def errors_added(view: MergeView) -> float:
    """It has more syntax errors than the original."""
    return view.result.num_errors - view.original.num_errors


@_add
def errors_before(view: MergeView) -> float:
    """The original has syntax errors, so that they tell less."""
    return view.original.num_errors


@_add
def has_grammar(view: MergeView) -> float:
    """The syntax is known."""
    return view.original.tree is not None


@_add
def defined_twice(view: MergeView) -> float:
    """Names that are defined more often than once, and than before."""
    before = view.original.names
    return sum(num > max(before[name], 1) for name, num in view.result.names.items())


@_add
def names_lost(view: MergeView) -> float:
    """Names that nothing defines any more."""
    return len(view.lost_names)


@_add
def names_lost_used(view: MergeView) -> float:
    """Lost names that the text still uses."""
    return sum(name in view.result.word_counts for name in view.lost_names)


@_add
def names_lost_sent(view: MergeView) -> float:
    """Lost names that the update speaks of."""
    return sum(name in view.reading.words for name in view.lost_names)


@_add
def names_lost_noted(view: MergeView) -> float:
    """Lost names that a note names."""
    return sum(name in view.reading.noted for name in view.lost_names)


@_add
def definitions_fewer(view: MergeView) -> float:
    """Definitions lost, counted by name."""
    return sum((view.original.names - view.result.names).values())


@_add
def names_new(view: MergeView) -> float:
    """Names that are new."""
    return sum(name not in view.original.names for name in view.result.names)


@_add
def bindings_lost_used(view: MergeView) -> float:
    """Variables that are used though nothing assigns them any more."""
    return sum(name in view.result.word_counts for name in view.lost_bindings)


@_add
def names_exchanged(view: MergeView) -> float:
    """Names lost while as many are new: renamed, or one that replaced another by mistake."""
    return min(len(view.lost_names), names_new(view))


@_add
def kept_share(view: MergeView) -> float:
    """The part of the original that stays."""
    kept = sum((view.result.counts & view.original.counts).values())
    return kept / max(len(view.original), 1)


@_add
def num_gone(view: MergeView) -> float:
    """Lines that are lost."""
    return sum(view.gone.values())


@_add
def num_gone_unsent(view: MergeView) -> float:
    """Telling lines that are lost and not in the update."""
    sent = view.reading.sent
    return sum(num for line, num in view.gone.items() if line not in sent and len(line) > 4)


@_add
def num_lines_more(view: MergeView) -> float:
    """By how much the file grows."""
    return len(view.result) - len(view.original)


@_add
def num_more_than_sent(view: MergeView) -> float:
    """Lines that come without being sent."""
    more = view.come - view.reading.sent
    return sum(num for line, num in more.items() if len(line) > 3)


@_add
def num_twice(view: MergeView) -> float:
    """Lines of the original that stand there once more."""
    known = view.original.counts
    return sum(num for line, num in view.come.items() if line in known and len(line) > 6)


@_add
def num_sent_missing(view: MergeView) -> float:
    """Telling lines that were sent and do not come."""
    missing = view.reading.sent - view.result.counts
    return sum(num for line, num in missing.items() if len(line) > 3)


@_add
def num_repeated(view: MergeView) -> float:
    """Lines that stand twice in a row, more than before."""
    return flaws.num_repeated(view.result.stripped) - flaws.num_repeated(view.original.stripped)


@_add
def balance_change(view: MergeView) -> float:
    """Brackets that are open at the end, more than before."""
    return view.result.depths[-1] - view.original.depths[-1]


@_add
def num_dead(view: MergeView) -> float:
    """Lines that cannot be reached behind a return, more than before."""
    return flaws.num_dead(view.result) - flaws.num_dead(view.original)


@_add
def num_empty_headers(view: MergeView) -> float:
    """Headers without a member, more than before."""
    return flaws.num_empty_headers(view.result) - flaws.num_empty_headers(view.original)


@_add
def words_lost(view: MergeView) -> float:
    """Words that the text has no more and that no sent line has."""
    lost = {word for line in view.gone for word in WORD.findall(line)}
    return sum(
        word not in view.result.word_counts and word not in view.reading.words for word in lost
    )


@_add
def num_headers_gone(view: MergeView) -> float:
    """Lines lost that open a block, and that the update does not show."""
    sent = view.reading.shape.counts
    return sum(
        num for line, num in view.gone.items() if line.endswith(BLOCK_OPENERS) and line not in sent
    )


@_add
def names_lost_unsent(view: MergeView) -> float:
    """Lost names that the update does not speak of."""
    return sum(name not in view.reading.words for name in view.lost_names)


@_add
def imports_lost_used(view: MergeView) -> float:
    """Imported names that the text still uses, though no import has them any more."""
    lost = {name for line in view.gone if IMPORT.match(line) for name in WORD.findall(line)}
    if not lost:
        return 0.0
    uses = view.result
    found = 0
    for name in lost & uses.word_counts.keys():
        lines = [
            line for words, line in zip(uses.words, uses.stripped, strict=True) if name in words
        ]
        found += not any(IMPORT.match(line) for line in lines)
    return found


@_add
def num_comments_gone(view: MergeView) -> float:
    """Comments that are lost and not sent."""
    sent = view.reading.shape.counts
    return sum(num for line, num in view.gone.items() if line not in sent and is_comment(line))


@_add
def num_cosmetic(view: MergeView) -> float:
    """Lines that change in signs alone, such as quotes."""
    gone: Counter[str] = Counter()
    for line, num in view.gone.items():
        gone[_letters(line)] += num
    come: Counter[str] = Counter()
    for line, num in view.come.items():
        come[_letters(line)] += num
    return sum(num for text, num in (gone & come).items() if len(text) > 3)


@_add
def num_respaced(view: MergeView) -> float:
    """Lines that only change their indentation."""
    gone = view.original.full_counts - view.result.full_counts
    come = view.result.full_counts - view.original.full_counts
    left, right = _stripped(gone), _stripped(come)
    return sum((left & right).values())


@_add
def definitions_respaced(view: MergeView) -> float:
    """Definitions that stand on another depth than before."""
    before = view.original.name_indents
    return sum(
        name in before and indent != before[name]
        for name, indent in view.result.name_indents.items()
    )


@_add
def num_notes_come(view: MergeView) -> float:
    """New lines with a remark that looks like a note to the reader."""
    return sum(has_note(line) for line in view.come)


@_add
def num_empty_blocks(view: MergeView) -> float:
    """Blocks opened and closed with nothing inside, more than before."""
    return flaws.num_empty_blocks(view.result) - flaws.num_empty_blocks(view.original)


@_add
def is_unsound(view: MergeView) -> float:
    """The text breaks the strict grammar of its language (Python, JSON, TOML): -1 if unknown."""
    if view.original.is_sound is not True:
        return -1.0
    return view.result.is_sound is False


@_add
def is_original(view: MergeView) -> float:
    """Nothing changes."""
    return not view.gone and not view.come and not num_respaced(view)


@_add
def num_new_twins(view: MergeView) -> float:
    """New neighbours that are nearly alike, as an old line beside its new form."""
    return flaws.num_twins(view.result, view.original)


def _letters(line: str) -> str:
    return "".join(filter(str.isalnum, line))


def _stripped(counts: Counter[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for line, num in counts.items():
        found[line.strip()] += num
    return found


def _of_candidates(name: str, fold: str) -> None:
    folds: dict[str, Callable[[Iterable[float]], float]] = {"least": min, "most": max, "all": sum}

    def compute(view: MergeView) -> float:
        return float(folds[fold](view.of_candidates(name)))

    compute.__name__ = f"{fold}_{name}"
    why = {feature.name: feature.why for feature in CANDIDATE_FEATURES.features}[name]
    compute.__doc__ = f"Of the candidates: {why[0].lower()}{why[1:]}"
    _add(compute)


for _name in (
    "evidence_share",
    "first_likeness",
    "last_likeness",
    "rarest",
    "least_likeness",
    "mean_unequal_likeness",
    "removed_mean_likeness",
    "removed_least_likeness",
    "shift_share",
):
    _of_candidates(_name, "least")
for _name in (
    "num_removed",
    "removed_weight",
    "num_added",
    "num_lost",
    "longest_lost",
    "removed_definitions",
    "num_renamed",
    "num_names_missed",
    "num_names_lost",
    "marker_after_is_empty",
    "num_kept_runs",
    "num_kept_lines",
    "kept_beside_added",
    "is_insertion",
    "lines_ahead",
    "lines_behind",
    "lost_ahead",
    "lost_behind",
    "num_rivals",
    "evidence_gap",
    "num_cut",
    "twin_below",
    "twin_above",
    "same_word_below",
    "same_word_above",
    "rest_of_block",
    "num_unequal",
    "num_dropped",
    "num_restored",
    "num_optional",
    "repeats_above",
    "repeats_below",
    "is_too_deep",
):
    _of_candidates(_name, "most")
    _of_candidates(_name, "all")
