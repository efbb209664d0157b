"""What a benchmark says of options that make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cache", "fleet", "--gbit", "-1"], "a link needs more than 0 Gbit/s"),
        (["cache", "repeat", "--gbit", "1"], "--gbit slows fleet and gate, not repeat"),
        (["cache", "fleet"], "the scenario fleet needs --cases FILE"),
        (["gpu", "--device", "cpu", "--out", "{folder}/missing/figures.json"], "is no folder"),
    ],
)
def test_an_error_is_one_line(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The value, the limit and the remedy, without a trace."""
    assert main([one.format(folder=tmp_path) for one in arguments]) == 1
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1
