"""Where a segment may begin and end beside the lines of it that stand in the original."""

from __future__ import annotations

import pytest

from apply_service.edit.place.merge import plan_merge, splice
from apply_service.edit.place.segment_borders import (
    MAX_REWRITTEN,
    OPEN_BORDER_COST,
    REWRITTEN_BONUS,
    Border,
    SegmentBorders,
)
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.text.line_index import LineIndex
from apply_service.edit.text.runs import find_runs
from apply_service.edit.text.similarity import Similarity
from apply_service.edit.text.word_weights import WordWeights

PYTHON = """\
def load(path, encoding):
    check(path)
    return decode(path.read(), encoding)


def save(path):
    path.write()
"""
GO = """\
func Run(ctx context.Context) error {
	start(ctx)
	client := newClient(ctx, address)
	return client.Run()
}
"""
RUST = """\
fn load(path: &Path) -> Result<Config> {
    check(path)?;
    Ok(parse(&fs::read_to_string(path)?)?)
}
"""
TYPESCRIPT = """\
export function price(items: Item[], tax: number): number {
  const total = sum(items, tax);
  log(total);
  return total;
}
"""


def rewritten(original: str, update: str, *, is_left: bool = False) -> list[int]:
    """The borders behind (or before) old lines whose words all stand in the new ones."""
    index = LineIndex(original.splitlines())
    texts = update.splitlines()
    runs = find_runs(texts, index)
    borders = SegmentBorders(
        texts,
        index,
        runs=runs,
        similarity=Similarity(index.stripped),
        weights=WordWeights(index.stripped),
    )
    run = max(runs, key=lambda one: one.weight)
    found = borders.lefts(run) if is_left else borders.rights(run)
    weight = REWRITTEN_BONUS - OPEN_BORDER_COST
    return [one.place for one in found if one == Border(one.place, weight, "similar", is_open=True)]


def test_a_line_gives_way_to_more_lines_with_all_its_words() -> None:
    update = (
        "    check(path)\n    raw = path.read()\n    text = decode(raw, encoding)\n    return text"
    )
    assert rewritten(PYTHON, update) == [3]


def test_a_line_above_gives_way_too() -> None:
    update = (
        '\tif address == "" {\n\t\treturn errNoAddress\n\t}\n'
        "\tclient, err := newClient(ctx, address)\n\tif err != nil {\n\t\treturn err\n\t}\n"
        "\treturn client.Run()"
    )
    assert rewritten(GO, update, is_left=True) == [2]


@pytest.mark.parametrize(
    "update",
    [
        "    check(path)\n    raw = path.read()\n    return raw",
        "    check(path)\n    audit(path)\n    log(path)",
        "    check(path)\n    return 1",
    ],
    ids=["words are missing", "few words", "nothing in common"],
)
def test_a_line_of_which_words_go_does_not(update: str) -> None:
    assert rewritten(PYTHON, update) == []


def test_a_line_with_few_words_gives_way_to_none() -> None:
    original = "    check(path)\n    log(path)\n    stop()\n"
    assert rewritten(original, "    check(path)\n    log(path, 1)\n    log(2)") == []


def test_as_many_old_lines_as_there_are_words_for_give_way_but_few() -> None:
    names = [f"    {name} = read_{name}(source)" for name in ("one", "two", "three", "four")]
    original = "\n".join(["    check(path)", *names, "    stop()"])
    new = [
        f"    {name} = read_{name}(source) or {name}" for name in ("one", "two", "three", "four")
    ]
    for size in (1, 2, 3):
        assert rewritten(original, "\n".join(["    check(path)", *new[:size]])) == [1 + size]
    assert rewritten(original, "\n".join(["    check(path)", *new])) == [1 + MAX_REWRITTEN]


def test_the_old_lines_are_not_more_than_the_new_ones() -> None:
    original = "    check(path)\n    one = read(source)\n    two = read(source)\n"
    assert rewritten(original, "    check(path)\n    one = two = read(source)") == [2]


def test_blank_lines_between_are_skipped() -> None:
    original = "    check(path)\n\n    one = read(source)\n    stop()\n"
    assert rewritten(original, "    check(path)\n\n    raw = read(source)\n    one = raw") == [3]


def test_at_the_end_of_the_file_nothing_gives_way() -> None:
    assert rewritten("    check(path)\n", "    check(path)\n    one = read(path)") == []


@pytest.mark.parametrize(
    ("original", "language", "update", "old"),
    [
        (
            PYTHON,
            "python",
            "    check(path)\n    with path.open() as file:\n        raw = file.read()\n"
            "    text = raw.decode(encoding)\n    return path, text\n",
            "    return decode(path.read(), encoding)\n",
        ),
        (
            TYPESCRIPT,
            "typescript",
            "export function price(items: Item[], tax: number): number {\n"
            "  const nets = items.map((item) => item.net);\n  const gross = sum(nets);\n"
            "  const total = gross * (1 + tax);\n",
            "  const total = sum(items, tax);\n",
        ),
        (
            RUST,
            "rust",
            "    check(path)?;\n    let text = fs::read_to_string(path)?;\n"
            "    let config = parse(&text)?;\n    config.check()?;\n    Ok(config)\n",
            "    Ok(parse(&fs::read_to_string(path)?)?)\n",
        ),
    ],
    ids=["python", "typescript", "rust"],
)
def test_one_line_becomes_several(original: str, language: str, update: str, old: str) -> None:
    marker = "# ..." if language == "python" else "// ..."
    lines = original.splitlines()
    snippet = read_snippet([marker, *update.splitlines(), marker], lines, language=language)
    plan = plan_merge(lines, snippet, language=language)
    assert plan.best is not None
    first, added = update.split("\n", 1)
    assert (
        splice(lines, plan.best)
        == original.replace(f"{first}\n{old}", f"{first}\n{added}").splitlines()
    )


CSHARP = """\
    [Fact]
    public void Empty_IsZero()
    {
        Assert.Equal(0, Sum());
    }

    [Fact(Skip = "slow")]
    [Trait("Area", "Grid")]
    public void Large_IsFast()
    {
        Assert.True(Measure(Grid(60)) < 500);
    }
"""


def test_attributes_give_way_to_other_attributes() -> None:
    update = '    [Fact]\n    [Trait("Speed", "Slow")]\n    public void Large_IsFast()'
    assert 6 in rewritten(CSHARP, update, is_left=True)
    assert 5 not in rewritten(CSHARP, update, is_left=True)


@pytest.mark.parametrize(
    "update",
    [
        '    // slow\n    [Trait("Speed", "Slow")]\n    public void Large_IsFast()',
        "    [Fact]\n    {\n        Assert.Equal(0, Sum());",
    ],
    ids=["a comment as well", "no attribute there"],
)
def test_attributes_give_way_to_nothing_else(update: str) -> None:
    assert rewritten(CSHARP, update, is_left=True) == []
