"""`python -m benchmarks picture`: draw an update, its diff and its verdict as docs/picture.svg.

The texts come from a server that the command starts, so the picture shows a real answer.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from apply_service.cli.demo.__main__ import read_example
from apply_service.cli.demo.edit_client import post_edit
from apply_service.cli.demo.local_server import HOST, LocalServer
from benchmarks.picture.page_pictures import take_page_pictures

PICTURE = Path(__file__).parents[2] / "docs" / "picture.svg"

# A card with its own light ground reads the same on light and dark pages.
_GROUND, _PANEL, _BORDER = "#f6f8fa", "#ffffff", "#d0d7de"
_TEXT, _QUIET = "#1f2328", "#59636e"
_ADDED, _REMOVED, _MARKER, _VERDICT = "#dafbe1", "#ffebe9", "#fff8c5", "#1a7f37"
_PANEL_WIDTH, _GAP, _PADDING = 440, 16, 16  # px
_LINE_HEIGHT, _TITLE_HEIGHT = 18, 34  # px
_READY_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Line:
    """One line of a panel, with the colour behind it and the colour of its letters."""

    text: str
    ground: str | None = None
    colour: str = _TEXT
    is_bold: bool = False


def add_picture_command(subparsers: Any) -> None:
    """Register `picture` below `python -m benchmarks`."""
    parser = subparsers.add_parser(
        "picture", help="draw the picture of the README", description=__doc__
    )
    parser.add_argument("--out", type=Path, default=PICTURE, help="the SVG file to write")
    parser.add_argument(
        "--page", action="store_true", help="take pictures of the server's page instead, beside it"
    )


def run_picture(args: argparse.Namespace) -> int:
    """Ask a server of this tree for the demo's edit and write the picture; the exit code."""
    path: Path = args.out
    with LocalServer() as server:
        server.wait_until_ready(_READY_TIMEOUT_S)
        if args.page:
            return take_page_pictures(f"http://{HOST}:{server.port}/", path.parent)
        body = edit_to_show()
        answer = post_edit(HOST, server.port, body=body)
    path.write_text(picture_of(body, answer), encoding="utf-8")
    print(f"{path}: {answer['status']}")
    return 0


def edit_to_show() -> dict[str, str]:
    """The demo's edit with the service's defaults."""
    example = read_example()
    return {name: example[name] for name in ("original", "update", "path")}


def picture_of(body: Mapping[str, str], answer: Mapping[str, Any]) -> str:
    """The SVG of a request and its answer."""
    left = list(_update_lines(body["update"]))
    right = [*_diff_lines(answer["diff"]), Line(""), *_verdict_lines(answer)]
    num_lines = max(len(left), len(right))
    panel_height = _TITLE_HEIGHT + num_lines * _LINE_HEIGHT + _PADDING
    width = 2 * _PANEL_WIDTH + 3 * _GAP
    height = panel_height + 2 * _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" role="img">',
        "<title>A lazy update on the left; the diff and the verdict on the right</title>",
        "<style>text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;"
        "white-space:pre}.b{font-weight:700}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{_GROUND}"/>',
        *_panel(_GAP, panel_height, "The update that an agent sends", left),
        *_panel(
            2 * _GAP + _PANEL_WIDTH, panel_height, "The diff and the verdict that come back", right
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _update_lines(update: str) -> Iterator[Line]:
    for text in update.splitlines():
        yield Line(text, _MARKER if "existing code" in text else None)


def _diff_lines(diff: str) -> Iterator[Line]:
    for text in diff.splitlines():
        if text.startswith(("---", "+++", "@@")):
            yield Line(text, colour=_QUIET)
        else:
            yield Line(text, {"+": _ADDED, "-": _REMOVED}.get(text[:1]))


def _verdict_lines(answer: Mapping[str, Any]) -> Iterator[Line]:
    yield Line(f"status    {answer['status']}", colour=_VERDICT, is_bold=True)
    findings = [f"{finding['code']}: {finding['message']}" for finding in answer["findings"]]
    yield Line(f"findings  {'; '.join(findings) or 'none'}")
    removed = len(answer["removed_lines"])
    yield Line(f"removed   {removed} lines of the original")
    yield Line(f"source    {answer['source']}")


def _panel(x: int, height: int, title: str, lines: Sequence[Line]) -> Iterator[str]:
    yield (
        f'<rect x="{x}" y="{_GAP}" width="{_PANEL_WIDTH}" height="{height}" rx="6"'
        f' fill="{_PANEL}" stroke="{_BORDER}"/>'
    )
    yield f'<text class="b" x="{x + 12}" y="{_GAP + 22}" fill="{_TEXT}">{escape(title)}</text>'
    for index, line in enumerate(lines):
        top = _GAP + _TITLE_HEIGHT + index * _LINE_HEIGHT
        if line.ground is not None:
            yield (
                f'<rect x="{x + 1}" y="{top}" width="{_PANEL_WIDTH - 2}"'
                f' height="{_LINE_HEIGHT}" fill="{line.ground}"/>'
            )
        if line.text.strip():
            name = ' class="b"' if line.is_bold else ""
            yield (
                f'<text{name} x="{x + 12}" y="{top + 13}" fill="{line.colour}"'
                f' xml:space="preserve">{escape(line.text)}</text>'
            )
