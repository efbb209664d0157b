"""Places that break the syntax are not taken. Real process, real model."""

from __future__ import annotations

import httpx
from case_files import read_records

WAIT_S = 60.0


def test_what_is_applied_keeps_the_syntax(embedded_url: str) -> None:
    answers = []
    for case in read_records("unsound_places"):
        body = {name: case[name] for name in ("path", "original", "update")}
        answer = httpx.post(f"{embedded_url}/v1/apply", json=body, timeout=WAIT_S).json()
        answers.append((answer["status"], answer["merged"] == case["expected"]))
    assert ("applied", False) not in answers
    assert ("applied", True) in answers
