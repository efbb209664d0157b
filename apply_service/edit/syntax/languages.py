"""Tells the language of a file from the caller's name for it, the path, or the first lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

LANGUAGES: tuple[str, ...] = (
    *("python", "javascript", "typescript", "tsx", "go", "rust", "java", "c", "cpp", "csharp"),
    *("ruby", "php", "kotlin", "swift", "scala", "lua", "html", "css", "json", "yaml", "toml"),
    *("markdown", "sql", "bash"),
)
# Here functions of one name are told apart by what they take.
OVERLOADING = frozenset({"java", "csharp", "cpp", "kotlin", "swift", "scala", "typescript", "tsx"})

# Other names that callers use, editors' language ids among them.
_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("py", "python3", "pyi", "starlark", "bazel"), "python"),
        **dict.fromkeys(("js", "jsx", "mjs", "cjs", "javascriptreact", "node"), "javascript"),
        **dict.fromkeys(("ts", "mts", "cts"), "typescript"),
        "typescriptreact": "tsx",
        "golang": "go",
        "rs": "rust",
        **dict.fromkeys(("c++", "cc", "cxx", "hpp", "hxx", "objective-c++", "cuda"), "cpp"),
        **dict.fromkeys(("c#", "cs", "c_sharp", "c-sharp"), "csharp"),
        "rb": "ruby",
        "kt": "kotlin",
        **dict.fromkeys(("htm", "xhtml"), "html"),
        **dict.fromkeys(("jsonc", "json5"), "json"),
        "yml": "yaml",
        **dict.fromkeys(("md", "mdx"), "markdown"),
        **dict.fromkeys(("postgresql", "postgres", "mysql", "sqlite", "plpgsql"), "sql"),
        **dict.fromkeys(("sh", "shell", "shellscript", "zsh", "ksh"), "bash"),
    }
)
_EXTENSIONS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("py", "pyi", "pyw", "bzl", "star"), "python"),
        **dict.fromkeys(("js", "jsx", "mjs", "cjs", "es6"), "javascript"),
        **dict.fromkeys(("ts", "mts", "cts"), "typescript"),
        "tsx": "tsx",
        "go": "go",
        "rs": "rust",
        "java": "java",
        "c": "c",
        **dict.fromkeys(("cc", "cpp", "cxx", "c++", "hpp", "hh", "hxx", "h++", "ipp"), "cpp"),
        **dict.fromkeys(("tpp", "cu", "cuh", "ino"), "cpp"),
        **dict.fromkeys(("cs", "csx"), "csharp"),
        **dict.fromkeys(("rb", "rake", "gemspec", "podspec", "ru"), "ruby"),
        **dict.fromkeys(("php", "phtml", "php5", "inc"), "php"),
        **dict.fromkeys(("kt", "kts"), "kotlin"),
        "swift": "swift",
        **dict.fromkeys(("scala", "sc", "sbt"), "scala"),
        **dict.fromkeys(("lua", "rockspec"), "lua"),
        **dict.fromkeys(("html", "htm", "xhtml"), "html"),
        "css": "css",
        **dict.fromkeys(("json", "jsonc", "json5", "webmanifest", "ipynb", "geojson"), "json"),
        **dict.fromkeys(("code-workspace", "avsc"), "json"),
        **dict.fromkeys(("yml", "yaml"), "yaml"),
        "toml": "toml",
        **dict.fromkeys(("md", "mdx", "markdown", "mdown"), "markdown"),
        **dict.fromkeys(("sql", "ddl", "psql", "pgsql"), "sql"),
        **dict.fromkeys(("sh", "bash", "zsh", "ksh", "bats"), "bash"),
    }
)
_FILE_NAMES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("sconstruct", "sconscript", "wscript", "build", "workspace"), "python"),
        **dict.fromkeys(("gemfile", "rakefile", "podfile", "vagrantfile", "guardfile"), "ruby"),
        **dict.fromkeys(("brewfile", "fastfile", "capfile", "berksfile"), "ruby"),
        **dict.fromkeys((".babelrc", ".eslintrc", ".prettierrc", "composer.lock"), "json"),
        **dict.fromkeys((".clang-format", ".clang-tidy"), "yaml"),
        **dict.fromkeys(("cargo.lock", "poetry.lock", "uv.lock", "pipfile"), "toml"),
        **dict.fromkeys((".bashrc", ".bash_profile", ".profile", ".zshrc", "pkgbuild"), "bash"),
    }
)
_INTERPRETERS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), language)
    for pattern, language in (
        (r"\b(?:python[\d.]*|pypy\d?)\b", "python"),
        (r"\b(?:node|nodejs|bun)\b", "javascript"),
        (r"\b(?:deno|ts-node|tsx)\b", "typescript"),
        (r"\bruby\b", "ruby"),
        (r"\bphp\b", "php"),
        (r"\blua(?:jit)?[\d.]*\b", "lua"),
        (r"\b(?:ba|z|k|da)?sh\b", "bash"),
    )
)
_CPP_SIGN = re.compile(
    r"\s*(?:(?:template\s*<|namespace\b|class\s+\w+|using\s+\w|public:|private:|protected:)"
    r"|#\s*include\s*<(?:string|vector|memory|map|iostream|functional|utility|optional)>)"
    r"|.*(?:\bstd::|\bconstexpr\b|\bnoexcept\b|\boverride\b|\bvirtual\b)"
)
_OPENINGS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), language)
    for pattern, language in (
        (r"<\?php\b", "php"),
        (r"<!doctype\s+html|<html\b", "html"),
        (r"package\s+\w+\s*$", "go"),
    )
)
NUM_PROBED_LINES = 400


def language_of(path: str | None, language: str | None, lines: Sequence[str]) -> str | None:
    """The canonical name (one of `LANGUAGES`), or None where only text rules apply.

    A known `language` wins over the path, the path over the content. A language that has
    no rules here ("cobol") is None whatever the path says.
    """
    if language is not None and language.strip():
        asked = language.strip().lower().removeprefix("language-")
        found = asked if asked in LANGUAGES else _ALIASES.get(asked)
        if found == "c" and _extension(path) == "h":
            return _c_or_cpp(lines)
        if found == "typescript" and _extension(path) == "tsx":
            return "tsx"
        return _c_or_cpp(lines) if asked == "h" else found
    if path is not None:
        found = _by_path(path, lines)
        if found is not None or _extension(path):
            return found
    return _by_content(lines)


def _by_path(path: str, lines: Sequence[str]) -> str | None:
    name = re.split(r"[/\\]", path)[-1].lower()
    if name in _FILE_NAMES:
        return _FILE_NAMES[name]
    extension = _extension(path)
    return _c_or_cpp(lines) if extension == "h" else _EXTENSIONS.get(extension)


def _extension(path: str | None) -> str:
    """The text behind the last dot of the file's name, in lower case; "" without a dot."""
    name = re.split(r"[/\\]", path or "")[-1].lower()
    stem, dot, extension = name.rpartition(".")
    return extension if dot and stem else ""


def _c_or_cpp(lines: Sequence[str]) -> str:
    """Tell C headers from C++ headers, which both end in .h: any sign of C++ decides."""
    probed = (line[:400] for line in lines[:NUM_PROBED_LINES])
    return "cpp" if any(_CPP_SIGN.match(line) for line in probed) else "c"


def _by_content(lines: Sequence[str]) -> str | None:
    """The language of a shebang line, or of an opening that no other language has."""
    first = next((line.strip()[:200] for line in lines[:20] if line.strip()), "")
    if first.startswith("#!"):
        for pattern, language in _INTERPRETERS:
            if pattern.search(first):
                return language
        return None
    for pattern, language in _OPENINGS:
        if pattern.match(first):
            return language
    return None
