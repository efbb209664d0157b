"""Changed lines that are sent without context."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.place.merge import MergePlan, plan_merge, splice
from apply_service.edit.place.variants import (
    MAX_DIFFERENCE,
    MAX_VARIANT_LINES,
    MAX_VARIANTS,
    MIN_COMMON,
    MIN_KEPT,
    MIN_WORDS,
    VariantFinder,
)
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.text.line_index import LineIndex
from apply_service.edit.text.word_weights import WordWeights

PYTHON = """\
SERVICES = {
    "images": ImageService(bucket="images", limit=10),
    "users": UserService(table="users"),
}


def price_of(order, rate):
    total = sum(line.price for line in order.lines)
    if order.is_gift:
        total = total - order.discount
    return round(total * rate, 2)


def weight_of(order):
    return sum(line.weight for line in order.lines)
"""
TYPESCRIPT = """\
export async function loadUsers(api: Api, page: number): Promise<User[]> {
  const response = await api.get(`/users?page=${page}`);
  return response.items.map(toUser);
}

export async function loadPosts(api: Api, page: number): Promise<Post[]> {
  const response = await api.get(`/posts?page=${page}`);
  return response.items.map(toPost);
}
"""
GO = """\
func (s *Server) start(ctx context.Context) error {
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.address, err)
	}
	return s.http.Serve(listener)
}

func (s *Server) stop(ctx context.Context) error {
	return s.http.Shutdown(ctx)
}
"""
RUST = """\
pub fn parse(input: &str) -> Result<Config, Error> {
    let values = input.lines().map(parse_line).collect::<Vec<_>>();
    let config = Config::from_values(values)?;
    Ok(config)
}
"""
RUBY = """\
class Order
  def total
    lines.sum { |line| line.price * line.count }
  end

  def weight
    lines.sum { |line| line.weight }
  end
end
"""
C = """\
static int read_block(struct device *dev, char *buffer, int size)
{
    int count = dev->read(dev, buffer, size);
    if (count < 0)
    {
        return -EIO;
    }
    return count;
}
"""
YAML = """\
services:
  web:
    image: registry.example.com/web:1.2.0
    restart: always
  worker:
    image: registry.example.com/worker:1.2.0
    restart: always
"""


def planned(original: str, lines: str, language: str | None) -> MergePlan:
    """The plan of an update of `lines` between two markers."""
    old = original.splitlines()
    marker = "# ..." if language in ("python", "ruby", "yaml") else "// ..."
    update = [marker, *lines.splitlines(), marker]
    return plan_merge(old, read_snippet(update, old, language=language), language=language)


def merged(plan: MergePlan) -> str:
    assert plan.best is not None
    return "\n".join(splice(plan.original_lines, plan.best)) + "\n"


@pytest.mark.parametrize(
    ("original", "language", "old", "new"),
    [
        (
            PYTHON,
            "python",
            "    total = sum(line.price for line in order.lines)\n",
            "    total = sum(line.price * line.count for line in order.lines)\n",
        ),
        (
            PYTHON,
            "python",
            "    if order.is_gift:\n        total = total - order.discount\n",
            "    if order.is_gift and order.discount:\n"
            "        total = total - min(order.discount, total)\n",
        ),
        (
            PYTHON,
            "python",
            "    return round(total * rate, 2)\n",
            "    return round(\n        total * rate,\n        ndigits=2,\n    )\n",
        ),
        (
            TYPESCRIPT,
            "typescript",
            "  return response.items.map(toPost);\n",
            "  return response.items.filter(isVisible).map(toPost);\n",
        ),
        (
            TYPESCRIPT,
            "typescript",
            "  const response = await api.get(`/posts?page=${page}`);\n",
            "  const response = await api.get(`/posts?page=${page}&limit=20`);\n",
        ),
        (
            GO,
            "go",
            "\treturn s.http.Serve(listener)\n",
            '\treturn s.http.Serve(listener, func() {\n\t\ts.log("serving")\n\t})\n',
        ),
        (
            GO,
            "go",
            "\treturn s.http.Shutdown(ctx)\n",
            "\treturn s.http.Shutdown(withTimeout(ctx))\n",
        ),
        (RUST, "rust", "Config::from_values(values)?", "Config::from_values(values, &defaults)?"),
        (
            RUBY,
            "ruby",
            "    lines.sum { |line| line.weight }\n",
            "    lines.reject(&:gift?).sum { |line| line.weight }\n",
        ),
        (
            C,
            "c",
            "    int count = dev->read(dev, buffer, size);\n",
            "    int count = dev->read(dev, buffer, min(size, MAX_BLOCK));\n",
        ),
        (YAML, "yaml", "/worker:1.2.0", "/worker:1.3.0"),
        (YAML, None, "/web:1.2.0", "/web:1.3.0"),
    ],
    ids=[
        "python",
        "python if",
        "python wrapped",
        "typescript",
        "typescript call",
        "go callback",
        "go",
        "rust",
        "ruby",
        "c",
        "yaml",
        "by its look",
    ],
)
def test_a_changed_line_takes_the_place_of_the_line_that_it_was(
    original: str, language: str | None, old: str, new: str
) -> None:
    assert original.count(old) == 1
    expected = original.replace(old, new)
    known = original.splitlines()
    row = next(row for row, line in enumerate(expected.splitlines()) if line not in known)
    size = max(new.count("\n"), 1)
    plan = planned(original, "\n".join(expected.splitlines()[row : row + size]), language)
    assert merged(plan) == expected
    assert plan.candidates[0][0].reason in ("variant", "similar")
    assert not plan.is_unique, "nothing but the look of the line says where it goes"


def test_several_changed_lines_find_their_places_before_new_ones_are_guessed() -> None:
    first = "  return response.items.filter(isVisible).map(toUser);"
    second = "  return response.items.filter(isVisible).map(toPost);"
    plan = planned(TYPESCRIPT, f"{first}\n// ...\n  log(page);\n// ...\n{second}", "typescript")
    result = merged(plan).splitlines()
    assert result.index(first) == TYPESCRIPT.splitlines().index(
        "  return response.items.map(toUser);"
    )
    assert second in result
    assert len(result) == len(TYPESCRIPT.splitlines()) + 1


def test_a_line_that_is_like_two_equally_is_a_guess() -> None:
    plan = planned(GO.replace("stop", "close"), "\treturn s.http.Handler(ctx, listener)", "go")
    assert plan.candidates[0][0].reason == "order"
    assert [finding.code for finding in plan.findings] == ["place_guessed"]


@pytest.mark.parametrize(
    ("original", "language", "added"),
    [
        (
            PYTHON,
            "python",
            '    "reviews": ReviewService(bucket="reviews", limit=10),\n',
        ),
        (
            PYTHON,
            "python",
            "def height_of(order):\n    return max(line.height for line in order.lines)\n",
        ),
        (PYTHON, "python", '    logger.debug("done")\n'),
        (
            TYPESCRIPT,
            "typescript",
            "export async function loadTags(api: Api, page: number): Promise<Tag[]> {\n"
            "  const response = await api.get(`/tags?page=${page}`);\n"
            "  return response.items.map(toTag);\n"
            "}\n",
        ),
        (RUBY, "ruby", "  def height\n    lines.sum { |line| line.height }\n  end\n"),
        (YAML, "yaml", "  cache:\n    image: registry.example.com/cache:1.2.0\n"),
    ],
    ids=["table", "function", "statement", "typescript", "ruby", "yaml"],
)
def test_what_is_new_replaces_nothing(original: str, language: str, added: str) -> None:
    plan = planned(original, added, language)
    result = merged(plan)
    assert plan.candidates[0][0].reason == "order"
    assert added in result
    kept = [line for line in result.splitlines() if line.strip() and line not in added.splitlines()]
    shown = added.splitlines()
    assert kept == [line for line in original.splitlines() if line.strip() and line not in shown]


def test_a_new_entry_goes_behind_the_others() -> None:
    added = '    "reviews": ReviewService(bucket="reviews", limit=10),\n'
    assert merged(planned(PYTHON, added, "python")) == PYTHON.replace(
        '(table="users"),\n', '(table="users"),\n' + added
    )


def test_a_variant_keeps_the_brackets_in_balance() -> None:
    plan = planned(GO, "\treturn s.http.Serve(listener, func() {", "go")
    assert all(
        placement.reason != "variant" and placement.start == placement.end
        for placement in plan.candidates[0]
    )


def finder(original: Sequence[str]) -> VariantFinder:
    index = LineIndex(original)
    return VariantFinder(index, WordWeights(index.stripped))


def spans(original: str, core: str) -> list[tuple[int, int]]:
    lines = original.splitlines()
    found = finder(lines).find(core.splitlines(), 0, len(lines))
    return [(one.start, one.end) for one in found]


def test_the_line_most_alike_comes_first() -> None:
    row = TYPESCRIPT.splitlines().index("  return response.items.map(toPost);")
    other = TYPESCRIPT.splitlines().index("  return response.items.map(toUser);")
    core = "  return response.items.slice(1).map(toPost);"
    assert spans(TYPESCRIPT, core) == [(row, row + 1), (other, other + 1)]


def test_only_lines_between_the_borders_are_found() -> None:
    lines = TYPESCRIPT.splitlines()
    core = ["  return response.items.slice(1).map(toPost);"]
    row = lines.index("  return response.items.map(toPost);")
    assert finder(lines).find(core, row, row + 1)[0].start == row
    assert all(one.start < row for one in finder(lines).find(core, 0, row))
    assert not finder(lines).find(core, row + 1, len(lines))


def test_a_line_at_another_depth_is_no_variant() -> None:
    assert spans(RUST, "    let config = Config::from_values(values, 1)?;") == [(2, 3)]
    assert spans(RUST, "        let config = Config::from_values(values, 1)?;") == []


def test_a_single_common_word_makes_no_variant() -> None:
    assert spans("alphabetical\nbeta = gamma\n", "alphabetical") == []
    assert spans("alphabetical.order()\nbeta = gamma\n", "alphabetical.order(1)") == [(0, 1)]


def test_common_words_lead_to_no_variant() -> None:
    lines = [f"value_{number} = call(arg)" for number in range(100)]
    assert finder(lines).find(["other = call(arg)"], 0, 100) == []
    assert finder(lines).find(["value_7 = call(arg, 1)"], 0, 100)[0].start == 7


def test_a_whole_line_is_kept_in_full() -> None:
    lines = GO.splitlines()
    best = finder(lines).find(["\treturn s.http.Serve(listener, s.limit)"], 0, len(lines))[0]
    assert (best.start, best.end) == (5, 6)
    assert best.kept == pytest.approx(1.0)
    assert best.score < 1.0


def test_long_segments_are_not_compared() -> None:
    lines = [f"alpha_{number} = beta_{number}" for number in range(20)]
    assert finder(lines).find(lines[:MAX_VARIANT_LINES], 0, 20)
    assert not finder(lines).find(lines[: MAX_VARIANT_LINES + 1], 0, 20)


BLOCKS = st.lists(
    st.sampled_from(["a b c", "a b d", "c d", "  a b", "  e", "", "e f g h"]),
    min_size=1,
    max_size=10,
)


@given(lines=BLOCKS, core=BLOCKS, data=st.data())
def test_variants_are_apart_alike_and_in_order(
    lines: list[str], core: list[str], data: st.DataObject
) -> None:
    filled = [row for row, text in enumerate(core) if text.strip()]
    if not filled:
        return
    core = core[filled[0] : filled[-1] + 1]
    low = data.draw(st.integers(0, len(lines)))
    high = data.draw(st.integers(low, len(lines)))
    weights = WordWeights([line.strip() for line in lines])
    found = finder(lines).find(core, low, high)
    new = weights.of_lines(core)
    for one in found:
        old = weights.of_lines(lines[one.start : one.end])
        kept = weights.kept_share(old, new)
        common = 2 * weights.weight(old & new) / (weights.weight(old) + weights.weight(new))
        assert low <= one.start < one.end <= high
        assert lines[one.start].strip()
        assert lines[one.end - 1].strip()
        assert (one.kept, one.score) == pytest.approx((kept, (kept + common) / 2))
        assert kept >= MIN_KEPT - 1e-9
        assert common >= MIN_COMMON - 1e-9
        assert len(old & new) >= MIN_WORDS
        assert one.end - one.start <= len(core) + MAX_DIFFERENCE
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert len(found) <= MAX_VARIANTS
    covered = [place for one in found for place in range(one.start, one.end)]
    assert len(covered) == len(set(covered))


NUM_LINES = 20_000
NUM_SEGMENTS = 400


@pytest.mark.parametrize(
    "original",
    [
        ["x = 1"] * NUM_LINES,
        [f"value_{number} = call(arg_{number}, other)" for number in range(NUM_LINES)],
        [
            " ".join(f"word_{place * k % 333}_{k}" for k in range(1, 12))
            for place in range(NUM_LINES)
        ],
        ["word " * 5_000 + str(number) for number in range(200)],
    ],
    ids=["equal", "all different", "words of sixty lines each", "long"],
)
def test_many_segments_take_no_time(original: list[str]) -> None:
    variants = finder(original)
    started = time.thread_time()
    for number in range(NUM_SEGMENTS):
        core = [original[number * 37 % len(original)] + " new"]
        variants.find(core, 0, len(original))
    assert time.thread_time() - started < 2.0


def test_after_many_segments_the_rarest_words_still_find_their_line() -> None:
    rare = [" ".join(f"word_{row * k % 333}_{k}" for k in range(1, 12)) for row in range(NUM_LINES)]
    original = [*rare, "    seldom = unique(said)"]
    variants = finder(original)
    for row in range(NUM_SEGMENTS):
        variants.find([f"{rare[row]} new"], 0, len(original))
    assert (
        variants.find(["    seldom = unique(said, twice)"], 0, len(original))[0].start == NUM_LINES
    )
