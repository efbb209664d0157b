"""What the fitted scores make of clear edits, and how their stored form is read."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from apply_service.edit.place.features.merge_features import MERGE_FEATURES
from apply_service.edit.place.score.forest import Tree
from apply_service.edit.place.score.ranked_merges import (
    MAX_RANKED,
    RankedMerges,
    rank_merges,
)
from apply_service.edit.place.score.tree_score import (
    SCORES_PATH,
    MergeScores,
    TreeScore,
    load_scores,
    read_scores,
)

FILE = """\
import os


def load(path):
    text = path.read_text()
    return parse(text)


def save(path, items):
    path.write_text(dump(items))
    return len(items)


def close(path):
    path.close()
    return True
"""


def ranked(update: str, file: str = FILE) -> RankedMerges:
    """The merges of an update with the scores that come with the service."""
    return rank_merges(file.splitlines(), update.splitlines(), load_scores(), path="store.py")


def first(update: str, file: str = FILE) -> str:
    """The text that comes first."""
    return "\n".join(ranked(update, file).merges[0].lines) + "\n"


@pytest.mark.parametrize(
    ("update", "old", "new"),
    [
        pytest.param(
            "# ... existing code ...\ndef save(path, items):\n    path.write_text(dump(items))\n"
            "    return None\n# ... existing code ...\n",
            "return len(items)",
            "return None",
            id="one line",
        ),
        pytest.param(
            "# ... existing code ...\ndef load(path):\n    try:\n        # ... existing code ...\n"
            "    except OSError:\n        return None\n\n\ndef save(path, items):\n"
            "# ... existing code ...\n",
            "    text = path.read_text()\n    return parse(text)\n",
            "    try:\n        text = path.read_text()\n        return parse(text)\n"
            "    except OSError:\n        return None\n",
            id="a body is wrapped",
        ),
        pytest.param(
            "# ... existing code ...\n# remove save\n# ... existing code ...\n",
            "def save(path, items):\n    path.write_text(dump(items))\n    return len(items)\n\n\n",
            "",
            id="a definition goes",
        ),
        pytest.param(
            "1: def close(path):\n2:     path.close()\n3:     return False\n",
            "return True",
            "return False",
            id="with line numbers",
        ),
    ],
)
def test_a_clear_edit_comes_first(update: str, old: str, new: str) -> None:
    assert FILE.count(old) == 1
    assert first(update) == FILE.replace(old, new)


def test_merges_are_different_and_ordered() -> None:
    found = ranked("# ... existing code ...\n    return None\n# ... existing code ...\n")
    texts = [tuple(line for line in merge.lines if line.strip()) for merge in found.merges]
    assert len(set(texts)) == len(texts) <= MAX_RANKED
    assert list(found.scores) == sorted(found.scores, reverse=True)
    shares = found.log_shares(load_scores().scale)
    assert sum(map(math.exp, shares)) == pytest.approx(1.0)
    assert list(shares) == sorted(shares, reverse=True)


def test_what_cannot_be_read_has_no_merges() -> None:
    found = ranked("")
    assert not found.merges
    assert found.certainty == 0.0


def stored(path: Path, **changed: TreeScore) -> Path:
    """The scores that come with the service, with some of them changed."""
    scores = msgspec.msgpack.decode(SCORES_PATH.read_bytes(), type=MergeScores)
    path.write_bytes(msgspec.msgpack.encode(msgspec.structs.replace(scores, **changed)))
    return path


def test_scores_of_a_feature_that_is_gone_are_refused(tmp_path: Path) -> None:
    other = TreeScore(features=["something"], trees=[])
    with pytest.raises(ValueError, match=r"the feature something, which is gone; .*fit_merges"):
        read_scores(stored(tmp_path / "scores", merge=other))


def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores"
    path.write_text("# Scores\n")
    with pytest.raises(ValueError, match="scores holds no scores of merges"):
        read_scores(path)


def test_a_score_finds_its_features_by_their_names(tmp_path: Path) -> None:
    names = MERGE_FEATURES.names
    tree = Tree([0], [1.5], [-1], [-2], [10.0, 20.0])
    scores = read_scores(stored(tmp_path / "scores", merge=TreeScore([names[3]], [tree])))
    rows = np.zeros((2, len(names)), np.float32)
    rows[1, 3] = 2.0
    assert scores.merge(rows).tolist() == [10.0, 20.0]


def test_probabilities_rise_with_the_score() -> None:
    scores = load_scores()
    found = [scores.probability(score) for score in np.linspace(-8, 8, 50)]
    assert found == sorted(found)
    assert 0.0 <= found[0] < found[-1] <= 1.0
