"""Which names may be looked up below a root."""

from __future__ import annotations

import pytest
from apply_client.workspace.errors import PathRefusedError
from apply_client.workspace.path_name import is_protected, relative_parts

ROOTS = ("/srv/shop", "/link/shop")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a.py", ("a.py",)),
        ("./src//a.py", ("src", "a.py")),
        ("/srv/shop/src/a.py", ("src", "a.py")),
        ("/link/shop/a.py", ("a.py",)),
        (".github/workflows/ci.yml", (".github", "workflows", "ci.yml")),
        (".gitignore", (".gitignore",)),
        ("docs/100% sure.md", ("docs", "100% sure.md")),
        ("…/weiß – naïve.py", ("…", "weiß – naïve.py")),
        ("src/Foo::Bar.3pm", ("src", "Foo::Bar.3pm")),
        ("a..b/...py", ("a..b", "...py")),
    ],
)
def test_plain_names(name: str, parts: tuple[str, ...]) -> None:
    assert relative_parts(name, ROOTS, on_windows=False) == parts


REFUSED = {
    "no name": "",
    "blank": "  ",
    "parent": "../a.py",
    "parent within": "src/../a.py",
    "parent at the end": "src/..",
    "parent below the root": "/srv/shop/../other/a.py",
    "absolute": "/etc/passwd",
    "absolute, the root's name begins it": "/srv/shop-secrets/a.py",
    "home": "~/.ssh/id_rsa",
    "home of another": "~root/.bashrc",
    "a folder": "src/",
    "the root": ".",
    "percent-encoded parent": "%2e%2e/etc/passwd",
    "percent-encoded slashes": "..%2f..%2fetc%2fpasswd",
    "percent-encoded twice": "%252e%252e%252fetc/passwd",
    "percent-encoded NUL": "a.py%00.txt",
    "NUL": "a.py\0.txt",
    "line break": "a.py\nb.py",
    "escape": "a\x1b[2K.py",
    "lone surrogate": "a\udcff.py",
    "text that turns around": "a\u202eyp.exe",
    "wide dots": "\uff0e\uff0e/etc/passwd",
    "wide slash": "..\uff0fetc",
    "two-dot leader": "\u2025/etc/passwd",
    "backslashes": "..\\..\\etc\\passwd",
    "URL": "file:///etc/passwd",
    "URL below the root": "file:/srv/shop/a.py",
    "drive": "C:/Windows/win.ini",
    "drive, relative": "C:secret.txt",
    "UNC": "\\\\server\\share\\a.py",
    "UNC with slashes": "//server/share/a.py",
    "device path": "\\\\?\\C:\\a.py",
    "git": ".git/config",
    "git, in capitals": ".GIT/hooks/pre-commit",
    "git of a submodule": "sub/.git",
    "git with a dot": ".git./config",
    "git with a space": ".git /config",
    "git, short name": "GIT~1/config",
    "git with a joiner": ".g\u200cit/config",
    "git with a stream": ".git::$INDEX_ALLOCATION/config",
    "git in wide letters": ".ｇｉｔ/config",
    "git, percent-encoded": "%2egit/config",
    "mercurial": ".hg/hgrc",
    "very long": "a/" * 3000 + "b",
}


@pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED.keys())
def test_refused_names(name: str) -> None:
    with pytest.raises(PathRefusedError) as caught:
        relative_parts(name, ROOTS, on_windows=False)
    assert str(caught.value).isprintable(), "it may be shown as it is"
    assert len(str(caught.value)) < 400


def test_windows_paths_below_the_root() -> None:
    roots = ("C:\\work\\shop",)
    for name in ("src\\a.py", "src/a.py", "C:\\work\\shop\\src\\a.py", "c:/Work/Shop/src/a.py"):
        assert relative_parts(name, roots, on_windows=True) == ("src", "a.py")


@pytest.mark.parametrize(
    "name",
    [
        "C:\\Windows\\win.ini",
        "D:\\work\\shop\\a.py",
        "C:a.py",
        "\\\\server\\share\\a.py",
        "\\\\?\\C:\\work\\shop\\a.py",
        "\\Windows\\win.ini",
        "src\\..\\a.py",
        "a.py:stream",
        "NUL",
        "src\\con.txt",
        "COM1.log",
        "a.py.",
        "a.py ",
    ],
)
def test_windows_paths_that_are_refused(name: str) -> None:
    with pytest.raises(PathRefusedError):
        relative_parts(name, ("C:\\work\\shop",), on_windows=True)


def test_what_only_looks_protected_is_not() -> None:
    for part in (".gitignore", ".gitattributes", "git", "agit~1", ".github", ".git-blame"):
        assert not is_protected(part)
