"""Consecutive lines of a file that an update shows in a new version."""

from __future__ import annotations

import pytest

from apply_service.edit.read.changed_stretch import MAX_SEARCHED, ChangedStretch, Stretch
from apply_service.edit.text.line_index import LineIndex

SETTINGS = """\
server:
  host: localhost
  port: 8080
  workers: 2
database:
  host: db
  pool: 5
signs = ["<", ">"]
kinds = [
  "small",
  "large",
]
def connect(host, port):
    timeout = 30
    client = Client(host, port, timeout)
    client.open()
    return client
""".splitlines()


def found(update: str) -> Stretch | None:
    """The stretch that an update is a new version of."""
    return ChangedStretch(update.splitlines(), LineIndex(SETTINGS)).find()


@pytest.mark.parametrize(
    ("update", "span"),
    [
        ("  port: 9090", (3, 3)),
        ("  port: 9090\n  workers: 8", (3, 4)),
        ("  port: 9090\n  reuse: true\n  workers: 8", (3, 4)),
        ("port: 9090\nworkers: 2", (3, 4)),
        ("    timeout = 60\n    client = Client(host, port, timeout)", (14, 15)),
        ("    client.open(retries=3)\n    return client", (16, 17)),
        ("signs = []\nkinds = [", (8, 9)),
    ],
)
def test_the_only_stretch_with_these_names_or_lines_is_certain(
    update: str, span: tuple[int, int]
) -> None:
    stretch = found(update)
    assert stretch is not None
    assert (stretch.start + 1, stretch.end) == span
    assert stretch.is_certain


@pytest.mark.parametrize(
    "update",
    [
        "  host: 0.0.0.0",
        "    port: 9090",
        "  region: eu",
        '  "medium",',
        "  port: 9090\n  pool: 6",
        "  workers: 2\n  host: db",
        "signs = [\nkinds = [",
        "def connect(host, port): return Client(host, port)",
        "    client.close()",
    ],
    ids=[
        "two places",
        "another depth",
        "a new name",
        "a new item",
        "lines between would go",
        "context alone",
        "a bracket stays open",
        "a header without its colon",
        "another call",
    ],
)
def test_no_other_stretch_is_certain(update: str) -> None:
    stretch = found(update)
    assert stretch is None or not stretch.is_certain


def test_a_line_may_be_told_by_the_only_one_like_it() -> None:
    lines = ["setFrames((prev) => [...prev, frame]);", "setName(name);", "show(frames, name);"]
    texts = ["setFrames((prev) => [...prev, frame].slice(-MAX_FRAMES));"]
    stretch = ChangedStretch(texts, LineIndex(lines)).find()
    assert stretch is not None
    assert (stretch.start, stretch.end) == (0, 1)
    twice = [*lines, "setFrames((prev) => [...prev, first]);"]
    assert ChangedStretch(texts, LineIndex(twice)).find() is None
    many = [*lines, *("pass" for _ in range(MAX_SEARCHED))]
    assert ChangedStretch(texts, LineIndex(many)).find() is None
