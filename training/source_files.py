"""Picks the files of a release that people wrote as source code, with their language."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from apply_service.evaluate.cases.git_cases import is_written_by_people

MAX_FILE_BYTES = 60_000
MIN_FILE_BYTES = 200

LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".jsx": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".tsx": "typescript",
    ".rs": "rust",
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".hpp": "cpp",
    ".css": "css",
    ".html": "html",
    ".sql": "sql",
    ".sh": "shell",
    ".toml": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
}

_NOT_WRITTEN_HERE = frozenset(
    [
        "_vendor",
        "vendor",
        "vendored",
        "third_party",
        "thirdparty",
        "node_modules",
        "extern",
        "external",
        "deps",
        "bundled",
        "dist",
        "build",
        "cjs",
        "_cjs",
        "_esm",
        "_types",
        "umd",
        "amd",
        "bundles",
        "generated",
        "locale",
        "locales",
        "legacy",
        "snapshots",
    ]
)


def learned_language(path: str) -> str | None:
    """The language of a file that is worth learning from, or None."""
    pure = PurePosixPath(path)
    language = LANGUAGES.get(pure.suffix.lower())
    folders = {part.lower() for part in pure.parts[:-1]}
    if language is None or folders & _NOT_WRITTEN_HERE or ".min." in pure.name:
        return None
    is_declaration = pure.name.endswith((".d.ts", ".d.mts"))
    if is_declaration and not folders & {"source", "types"}:
        return None
    return language


def read_sources(archive: Path) -> dict[str, str]:
    """The source files of a release by their path inside it; the packing folder is cut off."""
    sources: dict[str, str] = {}
    for path, content in _members(archive):
        if b"\0" in content or b"\r" in content:
            continue
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            continue
        if is_written_by_people(text):
            sources[path] = text
    return sources


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for info in wheel.infolist():
                if _is_wanted(info.filename, info.file_size):
                    yield info.filename, wheel.read(info)
        return
    with tarfile.open(archive, "r:gz") as packed:
        for member in packed:
            path = member.name.partition("/")[2]
            if not member.isfile() or not _is_wanted(path, member.size):
                continue
            handle = packed.extractfile(member)
            if handle is not None:
                yield path, handle.read()


def _is_wanted(path: str, num_bytes: int) -> bool:
    return MIN_FILE_BYTES <= num_bytes <= MAX_FILE_BYTES and learned_language(path) is not None
