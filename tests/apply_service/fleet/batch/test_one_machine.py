"""A batch without a server and without Ray: results, interruptions, changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apply_service.cli.main import main

WORKER = "apply_service.fleet.batch.one_machine.BatchWorker"


def write_edits(path: Path, count: int) -> None:
    rows = [
        {
            "id": f"edit-{number}",
            "path": f"file_{number}.py",
            "original": f"def f_{number}():\n    return {number}\n\n\ndef g():\n    return 0\n",
            "update": f"def f_{number}():\n    return {number + 1}\n\n\ndef g():\n    return 0\n",
        }
        for number in range(count)
    ]
    rows.append({"id": "wrong", "original": "a\n", "update": ""})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def run(source: Path, out: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    flags = ["--slice", "4", "--text-workers", "1", "--log-level", "warning"]
    code = main(["batch", str(source), "--out", str(out), *flags])
    lines = (out / "results.jsonl").read_text().splitlines()
    results = {result["id"]: result for result in map(json.loads, lines)}
    assert len(results) == len(lines)
    return code, results


def test_a_batch_goes_on_where_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from apply_service.fleet.batch.worker import BatchWorker

    source, out = tmp_path / "edits.jsonl", tmp_path / "out"
    write_edits(source, 10)
    code, whole = run(source, tmp_path / "whole")
    assert code == 4
    assert [result["status"] for result in whole.values()] == ["applied"] * 10 + ["failed"]
    assert whole["edit-3"]["merged"] == json.loads(source.read_text().splitlines()[3])["update"]
    assert whole["wrong"]["problem"]["code"] == "empty-update"
    assert "applied        10\nfailed         1\n" in capsys.readouterr().out

    ran: list[list[str]] = []

    class Interrupted(BatchWorker):
        def run(self, edits: Any) -> Any:
            if len(ran) == 1:
                ran.append([])
                raise KeyboardInterrupt
            ran.append([edit.id for edit in edits])
            return super().run(edits)

    monkeypatch.setattr(WORKER, Interrupted)
    assert main(["batch", str(source), "--out", str(out), "--slice", "4"]) == 130
    assert not (out / "results.jsonl").exists()
    assert run(source, out) == (code, whole)
    assert ran[0] == [f"edit-{number}" for number in range(4)]
    assert ran[2:] == [[f"edit-{n}" for n in range(4, 8)], ["edit-8", "edit-9", "wrong"]]

    # Nothing is left to do; a new edit brings its own slice only.
    del ran[2:]
    assert run(source, out) == (code, whole)
    assert ran[2:] == []
    write_edits(source, 12)
    code, more = run(source, out)
    assert {name: more[name] for name in whole} == whole
    assert set(more) == {*whole, "edit-10", "edit-11"}
    assert ran[2:] == [["edit-8", "edit-9", "edit-10", "edit-11"], ["wrong"]]


def test_without_ray_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    write_edits(tmp_path / "edits.jsonl", 1)
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "apply_service.fleet.batch.ray_data", raising=False)
    command = ["batch", str(tmp_path / "edits.jsonl"), "--out", str(tmp_path / "out")]
    assert main([*command, "--on", "ray"]) == 2
    assert "install `apply-service[ray]`" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["--slice", "0"], ["--on", "ray", "--pool", "2:1"]])
def test_wrong_flags_are_told(flags: list[str], tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    write_edits(tmp_path / "edits.jsonl", 1)
    command = ["batch", str(tmp_path / "edits.jsonl"), "--out", str(tmp_path / "out")]
    assert main([*command, *flags]) == 2
