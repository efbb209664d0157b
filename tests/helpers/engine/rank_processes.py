"""Finds the processes of ranks and what they take, in /proc."""

from __future__ import annotations

from pathlib import Path

_MODULE = b"batching.model.parallel.worker"


def rank_ids(lead: int) -> list[int]:
    """The processes of the ranks that the process `lead` has started, the first rank first."""
    return sorted(
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdecimal() and _is_rank(folder, lead)
    )


def memory_bytes(process_id: int, field: str) -> int:
    """A figure of a process, such as `RssAnon` or `VmHWM`."""
    status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii", errors="replace")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return int(fields[field].split()[0]) << 10


def _is_rank(folder: Path, lead: int) -> bool:
    try:
        parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        return parent == lead and _MODULE in (folder / "cmdline").read_bytes()
    except OSError:  # it has ended meanwhile
        return False
