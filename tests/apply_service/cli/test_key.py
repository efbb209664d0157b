"""`apply-service key`, as it is typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from apply_service.cli.main import main
from apply_service.http.guard.keys.key_file import KeyFile, has_key_form

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("APPLY_SERVICE_KEYS_FILE", str(tmp_path / "keys.json"))
    return tmp_path / "keys.json"


def test_create_list_and_revoke(path: Path, capsys: Capture) -> None:
    assert main(["key", "list"]) == 0
    assert "key create" in capsys.readouterr().out
    assert main(["key", "create", "--name", "ci"]) == 0
    shown = capsys.readouterr()
    assert has_key_form(shown.out.strip())
    (record,) = KeyFile(path).read()
    assert record.scopes == ("apply", "batch")
    assert record.id in shown.err
    assert str(path) in shown.err
    assert (
        main(["key", "create", "--name", "ops", "--scopes", "admin", "--expires-days", "30"]) == 0
    )
    main(["key", "revoke", "ci"])
    capsys.readouterr()
    assert main(["key", "list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed[1].split()[:3] == [record.id, "ci", "apply,batch"]
    assert "revoked" in listed[1]
    assert "until" in listed[2]


def test_the_flag_comes_before_the_environment(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    assert main(["key", "create", "--name", "ci", "--keys-file", str(other)]) == 0
    assert other.exists()
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "--name", "x", "--scopes", "all"], "no such scope: 'all'; choose among apply"),
        (["create", "--name", "x", "--scopes", ","], "no such scope"),
        (["create", "--name", "", "--scopes", "apply"], "1 to 100"),
        (["create", "--name", "a\nb"], "printable"),
        (["create", "--name", "x", "--expires-days", "0"], "more than 0"),
        (["create", "--name", "x", "--expires-days", "nan"], "more than 0"),
        (["revoke", "nobody"], "nobody"),
    ],
)
def test_wrong_words_change_nothing(
    path: Path, capsys: Capture, arguments: list[str], message: str
) -> None:
    assert main(["key", *arguments]) == 1
    assert message in capsys.readouterr().err
    assert KeyFile(path).read() == ()


def test_a_place_that_cannot_be_written_is_named(
    path: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / "keys.json"
    assert main(["key", "create", "--name", "x", "--keys-file", str(target)]) == 1
    assert "keys_file" in capsys.readouterr().err
