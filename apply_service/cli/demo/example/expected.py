"""Settings, one in a line, as name = value."""

from pathlib import Path

COMMENT = "#"


def parse_line(line: str) -> tuple[str, str]:
    """Split a line at its first equals sign."""
    name, separator, value = line.partition("=")
    if not separator:
        raise ValueError(f"no equals sign in {line!r}")
    if not name.strip():
        raise ValueError(f"no name in {line!r}")
    return name.strip(), value.strip()


def parse_settings(text: str) -> dict[str, str]:
    """All settings of a text, the last one of each name."""
    settings = {}
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith(COMMENT):
            continue
        name, value = parse_line(line)
        settings[name] = value
    return settings


def load_settings(path: Path) -> dict[str, str]:
    """The settings of a file."""
    if not path.exists():
        return {}
    return parse_settings(path.read_text())
