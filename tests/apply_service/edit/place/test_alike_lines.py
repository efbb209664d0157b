"""Old lines that the outermost lines of a segment are variants of."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from apply_service.edit.place.alike_lines import MAX_TAKEN, AlikeLines
from apply_service.edit.place.merge import plan_merge, splice
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.text.line_index import LineIndex
from apply_service.edit.text.similarity import Similarity
from apply_service.edit.text.word_weights import WordWeights

GO = [
    "func check(q Queue) error {",
    '\tif q.Topic == "" {',
    '\t\treturn errors.New("topic is required")',
    "\t}",
    "\tif q.Batch < 1 || q.Batch > 1000 {",
    '\t\treturn fmt.Errorf("batch must be between 1 and 1000, got %d", q.Batch)',
    "\t}",
    "\tif err := ping(q); err != nil {",
    "\t\treturn err",
    "\t}",
    "\treturn nil",
    "}",
]
REDUCER = """\
export function reduce(state: State, action: Action): State {
  switch (action.type) {
    case 'player/play': {
      return { ...state, playing: true };
    }

    case 'player/seek':
      return { ...state, position: action.position };

    case 'player/volume':
      return { ...state, volume: clamp(action.volume, 0, 1) };

    default:
      return state;
  }
}
"""


def alike(
    original: Sequence[str], texts: Sequence[str], but: Collection[int] = ()
) -> dict[int, list[int]]:
    """For rows of a segment the lines that they are found to be variants of, likest first."""
    index = LineIndex(original)
    finder = AlikeLines(index, Similarity(index.stripped), WordWeights(index.stripped))
    found: dict[int, list[int]] = {}
    for run in finder.runs(texts, but=but):
        assert run.is_alike
        assert (run.new_end, run.old_end) == (run.new + 1, run.old + 1)
        found.setdefault(run.new, []).append(run.old)
    return found


def test_the_first_and_the_last_line_find_what_they_are_variants_of() -> None:
    texts = [
        "\tif q.Batch < 1 || q.Batch > maxBatch {",
        '\t\treturn fmt.Errorf("batch must be between 1 and %d, got %d", maxBatch, q.Batch)',
    ]
    assert alike(GO, texts) == {0: [4], 1: [5]}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\treturn nil", id="stands there"),
        pytest.param("\t})", id="says little"),
        pytest.param("\tmetrics.Observe(latency.Seconds())", id="is like nothing"),
    ],
)
def test_other_lines_find_nothing(text: str) -> None:
    assert alike(GO, [text]) == {}


def test_rows_that_are_known_otherwise_and_inner_ones_are_left_out() -> None:
    changed = "\tif q.Batch < 1 || q.Batch > maxBatch {"
    assert alike(GO, [changed], but={0}) == {}
    assert alike(GO, ["\t}", changed, "\t}"]) == {}


def test_a_line_that_differs_in_its_indentation_is_no_exact_run() -> None:
    index = LineIndex(GO)
    finder = AlikeLines(index, Similarity(index.stripped), WordWeights(index.stripped))
    (run,) = finder.runs(["if q.Batch < 1 || q.Batch > maxBatch {"])
    assert not run.is_exact


def test_of_many_variants_the_likest_are_taken() -> None:
    original = [f'    register("plugin-{number}", load_plugin, order)' for number in range(40)]
    found = alike(original, ['    register("plugin-7", load_plugin, late, order)'])
    assert len(found[0]) == MAX_TAKEN
    assert found[0][0] == 7


def merged(original: str, update: str, language: str) -> str:
    lines = original.splitlines()
    snippet = read_snippet(update.splitlines(), lines, language=language)
    plan = plan_merge(lines, snippet, language=language)
    assert plan.best is not None
    assert not plan.is_unique
    return "\n".join(splice(lines, plan.best)) + "\n"


def test_a_branch_that_gets_a_block_takes_the_place_of_the_old_one() -> None:
    branch = (
        "    case 'player/seek': {\n"
        "      const track = current(state);\n"
        "      return { ...state, position: clamp(action.position, 0, track.duration) };\n"
        "    }\n"
    )
    result = merged(REDUCER, f"// ...\n{branch}// ...\n", "typescript")
    old = "    case 'player/seek':\n      return { ...state, position: action.position };\n"
    assert result == REDUCER.replace(old, branch)


def test_a_changed_condition_is_no_new_one_though_only_its_bracket_stands_there() -> None:
    original = "package queue\n\nconst maxBatch = 5000\n\n" + "\n".join(GO) + "\n"
    block = (
        "\tif q.Batch < 1 || q.Batch > maxBatch {\n"
        '\t\treturn fmt.Errorf("batch must be between 1 and %d, got %d", maxBatch, q.Batch)\n'
        "\t}\n"
    )
    result = merged(original, f"// ...\n{block}// ...\n", "go")
    assert result == original.replace("\n".join(GO[4:7]) + "\n", block)
