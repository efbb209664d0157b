"""What a shell and `man` are given by `apply-client`."""

from __future__ import annotations

import subprocess

import pytest
from apply_client.__main__ import main
from apply_client.cli import shell_files

COMMANDS = ("apply", "undo", "batch", "status", "mcp", "completion", "man")


def test_bash_completes_commands_and_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    asked = 'COMP_WORDS=({}); COMP_CWORD={}; _shtab_apply_client; echo "${{COMPREPLY[@]}}"'
    for words, offered in (("apply-client un", "undo"), ("apply-client apply --acc", "--accept-")):
        words_of = words.split()
        done = subprocess.run(
            ["bash", "--norc", "-c", script + asked.format(words, len(words_of) - 1)],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert offered in done.stdout, done.stderr


def test_the_manual_page_has_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["man"]) == 0
    plain = capsys.readouterr().out.replace("\\-", "-").replace("\\&", "")
    assert plain.startswith(".TH APPLY-CLIENT ")
    for command in COMMANDS:
        assert f".SS \\fBapply-client {command}\\fR" in plain, command
    assert "--accept-review" in plain


def test_what_is_to_be_installed_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shell_files, "find_spec", lambda _name: None)
    assert main(["man"]) == 2
    assert "install 'apply-client[shell]'" in capsys.readouterr().err
