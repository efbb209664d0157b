"""Features are numbers with a name and a reason; what some of them tell."""

from __future__ import annotations

import numpy as np
import pytest

from apply_service.edit.place.candidates.original_facts import OriginalFacts
from apply_service.edit.place.features.candidate_features import CANDIDATE_FEATURES
from apply_service.edit.place.features.certainty_features import CERTAINTY_FEATURES
from apply_service.edit.place.features.feature import FeatureSet
from apply_service.edit.place.features.merge_features import MERGE_FEATURES
from apply_service.edit.place.features.merge_view import MergeView
from apply_service.edit.place.features.step_features import STEP_FEATURES
from apply_service.edit.place.features.text_flaws import TextFlaws
from apply_service.edit.place.lattice.merges import MergeSource

SETS: list[FeatureSet[object]] = [
    CANDIDATE_FEATURES,  # type: ignore[list-item]
    STEP_FEATURES,  # type: ignore[list-item]
    MERGE_FEATURES,  # type: ignore[list-item]
    CERTAINTY_FEATURES,  # type: ignore[list-item]
]
FILE = """\
def load(path):
    text = path.read_text()
    return parse(text)


def save(path, items):
    path.write_text(dump(items))
    return len(items)
"""


@pytest.mark.parametrize("feature_set", SETS)
def test_each_has_a_name_of_its_own_and_a_reason(feature_set: FeatureSet[object]) -> None:
    assert len(set(feature_set.names)) == len(feature_set.names)
    assert all(feature.why.endswith(".") for feature in feature_set.features)


def features_of_merge(new: str) -> dict[str, float]:
    """The features of the merge that turns the file into `new`; the update is all of it."""
    source = MergeSource(
        FILE.splitlines(),
        ["# ... existing code ...", *new.splitlines(), "# ... existing code ..."],
        path="store.py",
        language=None,
        local=None,
        step=None,
    )
    merges = source.merges()
    texts = ["\n".join(merge.lines) + "\n" for merge in merges]
    rows = source.features(merges)
    assert rows.dtype == np.float32
    assert rows.shape == (len(merges), len(MERGE_FEATURES.names))
    return dict(zip(MERGE_FEATURES.names, rows[texts.index(new)].tolist(), strict=True))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param("", "", {"errors_added": 0, "num_gone": 0, "num_dead": 0}, id="as it was"),
        pytest.param("parse(text)", "parse(text", {"balance_change": 1}, id="broken"),
        pytest.param(
            "    return len(items)\n",
            "    return len(items)\n    path.close()\n",
            {"num_dead": 1, "num_lines_more": 1},
            id="dead code",
        ),
        pytest.param(
            "def save(path, items):\n",
            "def load(path, items):\n",
            {"defined_twice": 1, "names_lost": 1, "num_gone": 1},
            id="a name twice, and one lost",
        ),
        pytest.param(
            "    text = path.read_text()\n", "", {"bindings_lost_used": 1}, id="a variable lost"
        ),
        pytest.param(
            "    text = path.read_text()\n",
            "    text = path.read_text()\n    text = path.read_text()\n",
            {"num_twice": 1},
            id="a line twice",
        ),
        pytest.param(
            "    return parse(text)\n",
            "   return parse(text)\n",
            {"is_unsound": 1, "num_respaced": 1},
            id="a line that is too deep",
        ),
        pytest.param(
            "dump(items)", "dump( items )", {"num_cosmetic": 1}, id="space that changes nothing"
        ),
        pytest.param(
            "def load(path):\n    text = path.read_text()\n    return parse(text)\n",
            "def fetch(url):\n    return get(url)\n",
            {"names_lost": 1, "least_kin": 0.0},
            id="another definition instead",
        ),
        pytest.param("def load(", "def read(", {"names_lost": 1, "least_kin": 1.0}, id="renamed"),
        pytest.param(
            "    return parse(text)\n",
            "    return parse(text)  # <- as before\n",
            {"num_notes_come": 1},
            id="a note",
        ),
    ],
)
def test_what_is_wrong_with_a_whole_result_is_seen(
    old: str, new: str, told: dict[str, float]
) -> None:
    found = features_of_merge(FILE.replace(old, new) if old else FILE)
    assert {name: found[name] for name in told} == told


def test_lines_that_are_too_shallow_or_too_deep_are_seen() -> None:
    text = OriginalFacts(["try:", "load()", "finally:", "    done()"], "python")
    assert TextFlaws(text).num_shallow == 1
    assert TextFlaws(OriginalFacts(["load()", "    done()"], "python")).num_jumps == 1


def features_of_text(update: str, file: str, new: str) -> dict[str, float]:
    """The features of the text `new` as the result of an update."""
    source = MergeSource(
        file.splitlines(), update.splitlines(), path="a.py", language=None, local=None, step=None
    )
    reading, beam = source.beams[0]
    way = beam.search(1)[0]
    view = MergeView(
        source.original,
        reading,
        way,
        new.splitlines(),
        rank=0,
        scores=[0.0],
        num_readings=1,
        rows=[],
        flaws_before=TextFlaws(source.original),
    )
    return {feature.name: float(feature.compute(view)) for feature in MERGE_FEATURES.features}


TWO_CLASSES = """\
import os


class Store:
    def load(self):
        return os.name


class Cache:
    def load(self):
        return None
"""
METHOD = """\
    # Writes all.
    def save(self):
        self.file.write(self.text)
        return True
"""
ADDED = f"class Store:\n    # ... existing code ...\n{METHOD}"


def test_lines_that_left_their_block_are_seen() -> None:
    right = TWO_CLASSES.replace("os.name\n", "os.name\n\n" + METHOD)
    wrong = TWO_CLASSES + "\n" + METHOD
    assert features_of_text(ADDED, TWO_CLASSES, right)["num_strayed"] == 0
    assert features_of_text(ADDED, TWO_CLASSES, wrong)["num_strayed"] > 0


def test_lines_that_were_parted_and_comments_that_are_missing_are_seen() -> None:
    right = TWO_CLASSES.replace("os.name\n", "os.name\n\n" + METHOD)
    parted = right.replace("(self.text)\n", "(self.text)\n        self.close()\n")
    bare = right.replace("    # Writes all.\n", "")
    assert features_of_text(ADDED, TWO_CLASSES, right)["num_parted"] == 0
    assert features_of_text(ADDED, TWO_CLASSES, parted)["num_parted"] == 1
    assert features_of_text(ADDED, TWO_CLASSES, parted)["num_left_in_complete"] == 1
    assert features_of_text(ADDED, TWO_CLASSES, right)["num_left_in_complete"] == 0
    assert features_of_text(ADDED, TWO_CLASSES, right)["num_uncommented"] == 0
    assert features_of_text(ADDED, TWO_CLASSES, bare)["num_uncommented"] == 1


def test_an_import_that_is_lost_while_it_is_used_is_seen() -> None:
    lost = TWO_CLASSES.replace("import os\n", "")
    unused = lost.replace("os.name", "None")
    assert features_of_text(ADDED, TWO_CLASSES, TWO_CLASSES)["imports_lost_used"] == 0
    assert features_of_text(ADDED, TWO_CLASSES, lost)["imports_lost_used"] == 1
    assert features_of_text(ADDED, TWO_CLASSES, unused)["imports_lost_used"] == 0


def test_keys_that_stand_once_more_in_one_block_are_seen() -> None:
    lines = [
        "const a = {",
        "  id: 1,",
        "  'x:y': 2,",
        "  'x:z': 3,",
        "};",
        "b = {",
        "  id: 1,",
        "};",
    ]
    assert TextFlaws(OriginalFacts(lines, "javascript")).num_labels_twice == 0
    lines.insert(2, "  id: 2,")
    assert TextFlaws(OriginalFacts(lines, "javascript")).num_labels_twice == 1


SHOP = """\
def pay(order):
    send_receipt(order)
    order.total = price(order)
    log("paid", order.number)


def ship(order):
    log("shipped", order.number)
"""


@pytest.mark.parametrize(
    ("instruction", "unsaid", "lost", "alike"),
    [
        (None, -1, -1, -1),
        ("Log the total when it was paid", 2, 1, 1),
        ("Log the total, send no receipt, and say 'sent' instead of shipped", 0, 0, 0),
    ],
)
def test_what_the_instruction_does_not_speak_of_is_seen(
    instruction: str | None, unsaid: float, lost: float, alike: float
) -> None:
    """It logs the total; a line is lost, and another one has changed."""
    new = SHOP.replace('"paid", order.number', '"paid", order.total')
    new = new.replace("    send_receipt(order)\n", "").replace("shipped", "skipped")
    source = MergeSource(
        SHOP.splitlines(),
        ["# ...", *new.splitlines(), "# ..."],
        path="shop.py",
        language=None,
        local=None,
        step=None,
        instruction=instruction,
    )
    merges = source.merges()
    place = [list(merge.lines) for merge in merges].index(new.splitlines())
    row = dict(zip(MERGE_FEATURES.names, source.features(merges)[place].tolist(), strict=True))
    assert (row["num_unsaid"], row["num_unsaid_lost"], row["num_unsaid_alike"]) == (
        unsaid,
        lost,
        alike,
    )


def test_a_definition_that_seems_to_be_new_tells_what_goes_for_it() -> None:
    file = ["@fixture", "def app():", "    return create()", "", ""]
    file += ["@fixture", "def store(app):", "    return app.store"]
    update = ["# ...", "@fixture", "def clock(app):", "    return Clock(app)", "# ..."]
    source = MergeSource(file, update, path="a.py", language=None, local=None, step=None)
    (_, beam), *_ = source.beams
    column = CANDIDATE_FEATURES.names.index("names_for_new")
    part = beam.parts[0]
    assert part.new_rows == {0, 1, 2}
    assert beam.rows[0][:, column].max() > 0
    for candidate, row in zip(part.candidates, beam.rows[0], strict=True):
        kept = {line for run in candidate.kept for line in range(run.start, run.end)}
        gone = set(range(candidate.start, candidate.end)) - kept
        assert row[column] == sum(source.original.lines[line].startswith("def ") for line in gone)


def test_a_merge_that_takes_the_lines_guessed_by_the_reader_is_seen() -> None:
    file = "def app():\n    return create()\n\n\ndef clock():\n    return Clock()\n"
    update = "def clock():\n    return Clock(zone)\n"
    source = MergeSource(
        file.splitlines(), update.splitlines(), path="a.py", language=None, local=None, step=None
    )
    merges = source.merges()
    column = MERGE_FEATURES.names.index("takes_guess")
    found = dict(
        zip(
            ["\n".join(merge.lines) for merge in merges],
            source.features(merges)[:, column],
            strict=True,
        )
    )
    assert found[file.replace("Clock()", "Clock(zone)").rstrip("\n")] == 1
    assert 0 in found.values()
    assert features_of_text(f"# ...\n{update}# ...", file, file)["takes_guess"] == -1
