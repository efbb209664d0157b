"""Places that break the syntax are no choice of the model's. Real process, real model."""

from __future__ import annotations

import httpx
from case_files import read_records

WAIT_S = 60.0


def test_an_edit_is_applied_where_one_place_keeps_the_syntax(embedded_url: str) -> None:
    answers = {}
    cases = read_records("unsound_places")
    for case in cases:
        body = {name: case[name] for name in ("path", "original", "update")}
        answer = httpx.post(f"{embedded_url}/v1/apply", json=body, timeout=WAIT_S).json()
        answers[case["id"]] = (answer["status"], answer["merged"] == case["expected"])
    assert answers == {case["id"]: ("applied", True) for case in cases}
