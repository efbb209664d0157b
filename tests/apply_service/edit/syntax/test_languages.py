"""The language of a file."""

from __future__ import annotations

import pytest

from apply_service.edit.syntax.languages import LANGUAGES, language_of


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_canonical_name_is_itself(name: str) -> None:
    assert language_of(None, name, []) == name
    assert language_of(None, name.upper(), []) == name


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("py", "python"),
        ("javascriptreact", "javascript"),
        ("typescriptreact", "tsx"),
        ("C++", "cpp"),
        ("c#", "csharp"),
        ("shell", "bash"),
        ("golang", "go"),
        ("yml", "yaml"),
        (" Markdown ", "markdown"),
        ("language-rust", "rust"),
        ("cobol", None),
    ],
)
def test_callers_use_other_names(asked: str, expected: str | None) -> None:
    assert language_of(None, asked, []) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/app.py", "python"),
        ("src\\View.TSX", "tsx"),
        ("a.d.ts", "typescript"),
        ("lib/x.mjs", "javascript"),
        ("Gemfile", "ruby"),
        ("config/Cargo.lock", "toml"),
        (".eslintrc", "json"),
        (".bashrc", "bash"),
        ("Main.kt", "kotlin"),
        ("schema.sql", "sql"),
        ("README", None),
        ("photo.cob", None),
        ("dir.py/README", None),
        (".py", None),
    ],
)
def test_a_path_tells_the_language(path: str, expected: str | None) -> None:
    assert language_of(path, None, []) == expected


def test_a_name_wins_over_the_path_and_the_path_over_the_content() -> None:
    assert language_of("a.py", "go", []) == "go"
    assert language_of("a.py", "cobol", []) is None
    assert language_of("a.go", None, ["#!/usr/bin/env python3"]) == "go"
    assert language_of("a.xyz", None, ["#!/usr/bin/env python3"]) is None
    assert language_of("a.py", " ", []) == "python"


def test_typescript_in_a_tsx_file_has_jsx() -> None:
    assert language_of("View.tsx", "typescript", []) == "tsx"
    assert language_of("view.ts", "typescript", []) == "typescript"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["#!/usr/bin/env python3"], "python"),
        (["#!/bin/sh"], "bash"),
        (["#!/usr/bin/env node"], "javascript"),
        (["#!/usr/bin/perl"], None),
        (["", "<!DOCTYPE html>"], "html"),
        (["<?php"], "php"),
        (["package main"], "go"),
        (["hello"], None),
        ([], None),
    ],
)
def test_without_a_path_the_content_may_tell(lines: list[str], expected: str | None) -> None:
    assert language_of(None, None, lines) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["#include <stdio.h>", "int f(void);"], "c"),
        (["#include <string>"], "cpp"),
        (["namespace a {", "}"], "cpp"),
        (["int f(std::string s);"], "cpp"),
        (["struct class_info { int x; };"], "c"),
    ],
)
def test_headers_are_c_until_they_show_cpp(lines: list[str], expected: str) -> None:
    assert language_of("a.h", None, lines) == expected
    assert language_of(None, "h", lines) == expected
