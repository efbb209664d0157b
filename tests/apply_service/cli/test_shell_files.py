"""What a shell and `man` are given: all commands, in a form that they take."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from apply_service.cli.main import main
from apply_service.config import setting_fields

COMMANDS = ("serve", "up", "apply", "undo", "key create", "model prepare", "bench tune", "man")


def written(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def completed(script: Path, *words: str) -> set[str]:
    """What bash offers for the last word."""
    line = " ".join(shlex.quote(word) for word in words)
    asked = (
        f"source {shlex.quote(str(script))}\n"
        f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}\n"
        "function=$(complete -p apply-service | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n"
        f"$function apply-service {shlex.quote(words[-1])} ''\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", asked], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_bash_completes_commands_flags_and_their_values(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(written(capsys, "completion", "bash"))
    assert completed(script, "apply-service", "a") == {"apply"}
    assert completed(script, "apply-service", "key", "") >= {"create", "list", "revoke"}
    assert "--accept-review" in completed(script, "apply-service", "apply", "--acc")
    assert completed(script, "apply-service", "completion", "z") == {"zsh"}


@pytest.mark.parametrize(("shell", "begins"), [("zsh", "#compdef apply-service"), ("tcsh", "#")])
def test_other_shells_have_a_script_too(
    capsys: pytest.CaptureFixture[str], shell: str, begins: str
) -> None:
    text = written(capsys, "completion", shell)
    assert text.startswith(begins)
    assert "accept-review" in text


def test_the_manual_page_has_all_commands_and_flags(capsys: pytest.CaptureFixture[str]) -> None:
    page = written(capsys, "man")
    assert page.startswith(".TH APPLY\\-SERVICE ")
    plain = page.replace("\\-", "-").replace("\\&", "")
    for command in COMMANDS:
        assert f".SS \\fBapply-service {command}\\fR" in plain, command
    flags = {field.flag for field in setting_fields()} | {"--accept-review", "--expires-days"}
    assert not [flag for flag in flags if flag not in plain]
    # A line that begins with a dot or an apostrophe is a command to `man`: only known ones stand.
    known = {".TH", ".SH", ".SS", ".TP", ".RS", ".RE", ".B", ".PP", ".nf", ".fi", ".br"}
    lines = [line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))]
    assert set(lines) <= known
