"""`python -m apply_service.cli.demo`: one real edit over HTTP, with speculation on and off.

Exit codes: 0 the merge is right, 1 it is not or something failed, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from apply_service.cli.demo.edit_client import (
    EditFailedError,
    Result,
    describe_finding,
    post_edit,
    post_streamed_edit,
)
from apply_service.cli.demo.local_server import HOST, LocalServer, LocalServerError
from apply_service.cli.demo.screen import Screen

_FILE_NAME = "settings.py"
_GATE_NAME = "gate.py"
_READY_TIMEOUT_S = 120.0
_EXAMPLE = files("apply_service.cli.demo") / "example"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; the exit code."""
    parser = argparse.ArgumentParser(prog="apply_service.cli.demo", description=__doc__)
    parser.add_argument("--color", action="store_true", help="colour even if this is no terminal")
    parser.add_argument(
        "--off-tokens", type=int, default=128, help="tokens to write without speculation"
    )
    args = parser.parse_args(argv)
    is_terminal = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    screen = Screen(sys.stdout, has_color=args.color or is_terminal)
    try:
        return run_demo(screen, max_off_tokens=args.off_tokens)
    except (LocalServerError, EditFailedError, OSError) as error:
        screen.end_count()
        print(f"demo failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        screen.end_count()
        print("interrupted", file=sys.stderr)
        return 130


def run_demo(screen: Screen, *, max_off_tokens: int) -> int:
    """Start a server, show both runs, stop it. 0 if the merge is the expected one, else 1."""
    with LocalServer() as server:
        screen.say("Starting the server and loading the model ...", end=" ")
        screen.say(f"ready after {server.wait_until_ready(_READY_TIMEOUT_S):.1f} s")
        body = read_example()
        is_right, result = _show_edit(screen, server.port, body)
        _show_unspeculated(screen, server.port, body, result, max_off_tokens)
        _show_ambiguous(screen, server.port)
        _show_impossible(screen, server.port)
    screen.say("\nServer stopped. `make serve` starts one that stays.")
    return 0 if is_right else 1


def read_example() -> dict[str, str]:
    """The body of the request: the file, its lazy update and its name."""
    return {
        "original": (_EXAMPLE / _FILE_NAME).read_text(encoding="utf-8"),
        "update": (_EXAMPLE / "update.txt").read_text(encoding="utf-8"),
        "path": _FILE_NAME,
        # By the model, in free text: with the merge there would be nothing left to speculate on.
        "use_model": "always",
        "constraint": "none",
    }


def read_expected() -> str:
    """The merge that the example should give."""
    return (_EXAMPLE / "expected.py").read_text(encoding="utf-8")


def answer_rate(result: Result) -> float:
    """Tokens written a second, the prompts included: regions are computed side by side."""
    return float(result["usage"]["completion_tokens"] / result["timing"]["total"])


def _show_edit(screen: Screen, port: int, body: Mapping[str, Any]) -> tuple[bool, Result]:
    num_lines = body["original"].count("\n")
    screen.head(f"POST /v1/apply: {_FILE_NAME}, {num_lines} lines, with this update:")
    screen.say("".join(f"  | {line}\n" for line in body["update"].splitlines()))
    started = time.monotonic()
    result = post_edit(HOST, port, body=body)
    seconds = time.monotonic() - started
    expected = read_expected()
    is_right = result["merged"] == expected and result["status"] == "applied"
    screen.diff(result["diff"])
    screen.say()
    screen.verdict(result, is_expected=result["merged"] == expected)
    usage, speculation, timing = result["usage"], result["speculation"], result["timing"]
    screen.row("tokens", f"{usage['prompt_tokens']} read, {usage['completion_tokens']} written")
    screen.row(
        "speculation",
        f"{speculation['tokens_per_target_pass']:.1f} tokens per target pass"
        f" ({speculation['target_passes']} passes),"
        f" {_percentage(speculation['accepted'], speculation['drafted'])} of"
        f" {speculation['drafted']} drafted tokens accepted",
    )
    screen.row(
        "seconds",
        f"{seconds:.2f} in all; of regions side by side {timing['prefill']:.2f} prefill,"
        f" {timing['decode']:.2f} decode",
    )
    if not is_right:
        screen.head("The merge is wrong. It differs from the expected one like this:")
        screen.difference(expected, result["merged"])
    return is_right, result


def _show_unspeculated(
    screen: Screen, port: int, body: Mapping[str, Any], speculated: Result, max_tokens: int
) -> None:
    screen.head(
        f"The same request with speculation off, stopped after {max_tokens} tokens a region:"
    )
    # Without checks a text that was cut off comes back with its figures instead of a rejection.
    options = {"speculation": "off", "checks": "off", "sampling": {"max_tokens": max_tokens}}
    started = time.monotonic()
    # Every piece is one token, but for the few that wait for the next one to be safe to show.
    for num_pieces, item in enumerate(
        post_streamed_edit(HOST, port, body={**body, **options}), start=1
    ):
        if not isinstance(item, str):
            screen.end_count()
            _show_ratio(screen, item, speculated)
            return
        seconds = time.monotonic() - started
        screen.count(f"{num_pieces} of {max_tokens} tokens, {seconds:.1f} s")
    raise EditFailedError("the stream ended without a result")


def _show_ambiguous(screen: Screen, port: int) -> None:
    """An edit that fits in two places: it is done, and the doubt is said."""
    result = post_edit(HOST, port, body=_read_gate_edit("ambiguous.txt"))
    screen.head(f"An edit whose context stands in {_GATE_NAME} twice:")
    screen.row("status", str(result["status"]))
    _show_findings(screen, result["findings"])


def _show_impossible(screen: Screen, port: int) -> None:
    """An edit of another file: nothing is merged, and the answer says why."""
    screen.head(f"An edit of code that {_GATE_NAME} does not have:")
    try:
        result = post_edit(HOST, port, body=_read_gate_edit("impossible.txt"))
    except EditFailedError as error:
        problem = error.problem
        screen.row("status", f"{problem.get('code')} (HTTP {problem.get('status')})")
        _show_findings(screen, problem.get("findings", ()))
        return
    screen.row("status", f"{result['status']}, which should have been a refusal")


def _read_gate_edit(update_name: str) -> dict[str, str]:
    return {
        "original": (_EXAMPLE / _GATE_NAME).read_text(encoding="utf-8"),
        "update": (_EXAMPLE / update_name).read_text(encoding="utf-8"),
        "path": _GATE_NAME,
    }


def _show_findings(screen: Screen, findings: Sequence[Mapping[str, Any]]) -> None:
    for finding in findings:
        screen.row("finding", describe_finding(finding))
        screen.row("hint", finding["hint"])


def _show_ratio(screen: Screen, unspeculated: Result, speculated: Result) -> None:
    rate_off, rate_on = answer_rate(unspeculated), answer_rate(speculated)
    num_tokens, seconds = (
        unspeculated["usage"]["completion_tokens"],
        unspeculated["timing"]["total"],
    )
    screen.row("off", f"{rate_off:.1f} tokens a second ({num_tokens} tokens in {seconds:.1f} s)")
    screen.row("on", f"{rate_on:.1f} tokens a second")
    screen.row("ratio", f"with speculation the edit is {rate_on / rate_off:.1f} times as fast")


def _percentage(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


if __name__ == "__main__":
    sys.exit(main())
