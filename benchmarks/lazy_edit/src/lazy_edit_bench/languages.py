"""Languages by file name, with what the benchmark needs to know of their syntax."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class Syntax:
    """A language: its line comment (`{}` is the text), its kind of blocks, its import lines."""

    name: str
    comment: str
    blocks: str = "braces"  # braces, indent or none
    imports: str = r"(?!)"


_SYNTAXES = {
    "py pyi": Syntax("python", "# {}", "indent", r"(import|from)\s"),
    "js jsx mjs cjs": Syntax("javascript", "// {}", "braces", r"import\b|.*\brequire\("),
    "ts mts": Syntax("typescript", "// {}", "braces", r"import\b"),
    "tsx": Syntax("tsx", "// {}", "braces", r"import\b"),
    "go": Syntax("go", "// {}", "braces", r'import\b|\s+(\w+ )?"[\w./-]+"$'),
    "rs": Syntax("rust", "// {}", "braces", r"(pub )?use\s"),
    "java": Syntax("java", "// {}", "braces", r"import\s"),
    "kt kts": Syntax("kotlin", "// {}", "braces", r"import\s"),
    "cs": Syntax("csharp", "// {}", "braces", r"using\s[\w.]+;"),
    "c h": Syntax("c", "// {}", "braces", r"#include\b"),
    "cpp hpp cc cxx mm m": Syntax("cpp", "// {}", "braces", r"#include\b|#import\b"),
    "swift": Syntax("swift", "// {}", "braces", r"import\s"),
    "scala": Syntax("scala", "// {}", "braces", r"import\s"),
    "php": Syntax("php", "// {}", "braces", r"use\s|(require|include)"),
    "rb podspec": Syntax("ruby", "# {}", "none", r"require"),
    "lua": Syntax("lua", "-- {}", "none", r"local .*\brequire"),
    "sh bash": Syntax("bash", "# {}", "none", r"(source|\.)\s"),
    "sql": Syntax("sql", "-- {}", "none"),
    "css": Syntax("css", "/* {} */", "none", r"@import"),
    "scss less": Syntax("scss", "// {}", "none", r"@(use|import)"),
    "html": Syntax("html", "<!-- {} -->", "none"),
    "vue svelte": Syntax("vue", "<!-- {} -->", "none", r"import\b"),
    "md": Syntax("markdown", "<!-- {} -->", "none"),
    "yml yaml": Syntax("yaml", "# {}", "none"),
    "toml": Syntax("toml", "# {}", "none"),
    "ini": Syntax("ini", "; {}", "none"),
    "json": Syntax("json", "// {}", "none"),
}
_BY_EXTENSION = {end: syntax for ends, syntax in _SYNTAXES.items() for end in ends.split()}
_OTHER = Syntax("other", "# {}", "none")


def syntax_of(path: str) -> Syntax:
    """What is known of a file by its name."""
    return _BY_EXTENSION.get(PurePosixPath(path).suffix.removeprefix(".").lower(), _OTHER)


def is_import(line: str, syntax: Syntax) -> bool:
    """Whether the line brings something in."""
    return re.match(rf"\s*(?:{syntax.imports})", line) is not None
