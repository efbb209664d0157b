"""Headers of classes, functions and blocks that may surround a fragment, by language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameWords:
    """Headers with an open bracket at the end of each.

    A context is the headers around a fragment, the outermost first. `member` opens a function
    inside a context, `block` any block inside a function, `argument` a function that is handed to
    a call. `preamble` stands before any fragment.
    """

    contexts: tuple[tuple[str, ...], ...]
    member: str
    block: str = "{"
    argument: str = "{"
    preamble: tuple[str, ...] = ()
    has_comments: bool = True


_ECMASCRIPT = FrameWords(
    contexts=(("class _ {",), ("function _() {",), ("_ = {",), ("_ = [",), ("switch (_) {",)),
    member="_() {",
    argument="function () {",
)
_TYPESCRIPT = FrameWords(
    contexts=(
        ("class _ {",),
        ("function _() {",),
        ("_ = {",),
        ("_ = [",),
        ("interface _ {",),
        ("enum _ {",),
        ("switch (_) {",),
    ),
    member="_() {",
    argument="function () {",
)
_C = (("void _() {",), ("struct _ {",), ("enum _ {",), ("void _() { switch (_) {",))

FRAME_WORDS: Mapping[str, FrameWords] = MappingProxyType(
    {
        "javascript": _ECMASCRIPT,
        "typescript": _TYPESCRIPT,
        "tsx": _TYPESCRIPT,
        "java": FrameWords(
            contexts=(("class _ {",), ("class _ {", "void _() {"), ("enum _ {",)),
            member="void _() {",
            argument="() -> {",
        ),
        "csharp": FrameWords(
            contexts=(("class _ {",), ("class _ {", "void _() {"), ("enum _ {",)),
            member="void _() {",
            argument="() => {",
        ),
        "kotlin": FrameWords(
            contexts=(("class _ {",), ("fun _() {",), ("enum class _ {",)), member="fun _() {"
        ),
        "swift": FrameWords(
            contexts=(("class _ {",), ("func _() {",), ("enum _ {",), ("protocol _ {",)),
            member="func _() {",
            block="do {",
        ),
        "scala": FrameWords(contexts=(("class _ {",), ("def _() = {",)), member="def _() = {"),
        "go": FrameWords(
            contexts=(
                ("func _() {",),
                ("type _ struct {",),
                ("type _ interface {",),
                ("var _ = []_{",),
                ("func _() {", "switch _ {"),
                ("import (",),
            ),
            member="{",
            argument="func() {",
        ),
        "rust": FrameWords(
            contexts=(
                ("impl X {",),
                ("fn _f() {",),
                ("trait X {",),
                ("enum X {",),
                ("struct X {",),
                ("fn _f() {", "match x {"),
            ),
            member="fn _f() {",
            argument="|| {",
        ),
        "c": FrameWords(contexts=_C, member="{"),
        "cpp": FrameWords(contexts=(("class _ {",), *_C), member="void _() {"),
        "php": FrameWords(
            contexts=(("class _ {",), ("function _() {",)),
            member="function _() {",
            argument="function () {",
            preamble=("<?php",),
        ),
        "css": FrameWords(contexts=(("_ {",), ("@media _ {",)), member="_ {"),
        "json": FrameWords(
            contexts=(("{",), ("[",)), member='"_": {', block='"_": {', has_comments=False
        ),
    }
)

# Languages whose blocks end in a word: openings and closings that are tried in pairs.
KEYWORD_FRAMES: Mapping[str, tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]] = (
    MappingProxyType(
        {
            "ruby": (
                ((), ("def _",), ("class X", "def _")),
                ((), ("end",), ("end", "end"), ("end", "end", "end")),
            ),
            "lua": (
                ((), ("function _()",), ("function _()", "if _ then")),
                ((), ("end",), ("end", "end"), ("end)",)),
            ),
            "bash": (
                ((), ("_() {",), ("if _; then",), ("while _; do",)),
                ((), ("}",), ("fi",), ("done",), ("fi", "}"), ("done", "}")),
            ),
        }
    )
)
