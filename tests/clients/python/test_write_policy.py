"""Which results are written."""

from __future__ import annotations

import pytest
from apply_client.workspace.write_policy import WritePolicy


@pytest.mark.parametrize(
    ("status", "plain", "accepting"),
    [
        ("applied", True, True),
        ("unchanged", False, False),
        ("needs_review", False, True),
        ("rejected", False, False),
    ],
)
def test_what_is_written(status: str, plain: bool, accepting: bool) -> None:
    assert WritePolicy().is_written(status) is plain
    assert WritePolicy(accepts_review=True).is_written(status) is accepting
    for accepts_review in (False, True):
        dry = WritePolicy(accepts_review=accepts_review, is_dry_run=True)
        assert not dry.is_written(status)
        assert "was written" not in dry.fate(status)


def test_what_is_said() -> None:
    assert WritePolicy().fate("applied") == "was written"
    assert "dry run" in WritePolicy(is_dry_run=True).fate("applied")
    assert "review" in WritePolicy().fate("needs_review")
    assert "already" in WritePolicy().fate("unchanged")
