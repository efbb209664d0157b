"""What is not used any more goes back to the system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# Blocks too large for Python's own allocator; one in a hundred stays and holds its heap up.
_HOLES = """
import os, time
from pathlib import Path
from apply_service.observe.free_memory import give_back_free_memory, keep_giving_back

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

blocks = [bytes(20_000) for _ in range(4_000)]
kept = blocks[::100]
del blocks
before = resident()
{give_back}
print(before - resident(), len(kept))
"""
# A freed text of 16 MB teaches glibc to keep twice as much at the end of a heap.
_TOPS = """
import os, threading
from pathlib import Path
from apply_service.observe.free_memory import keep_heaps_small

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def work():
    bytes(16_000_000)
    [bytes(20_000) for _ in range(1_400)]

assert {option}
before = resident()
threads = [threading.Thread(target=lambda: (work(), done.wait(), end.wait())) for _ in range(4)]
done, end = threading.Barrier(5), threading.Barrier(5)
for thread in threads:
    thread.start()
done.wait()
print(resident() - before, flush=True)
end.wait()
"""
_CYCLES = """
import gc, weakref
from apply_service.observe.free_memory import give_back_free_memory

class Body:
    pass

gc.disable()
body = Body()
body.itself = body
seen = weakref.ref(body)
del body
give_back_free_memory()
print(seen() is None)
"""
_AT_ONCE = "give_back_free_memory()"
_BY_THREAD = """
keep_giving_back(every_s=0.01)
while before - resident() < 60_000_000:
    time.sleep(0.01)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc alone has malloc_trim")
@pytest.mark.parametrize("give_back", [_AT_ONCE, _BY_THREAD], ids=["at once", "by a thread"])
def test_holes_go_back_to_the_system(give_back: str) -> None:
    script = _HOLES.format(give_back=give_back)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    given_back, num_kept = map(int, done.stdout.split())
    assert given_back >= 60_000_000
    assert num_kept == 40


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc alone has mallopt")
@pytest.mark.parametrize(
    ("option", "is_small"), [("keep_heaps_small()", True), ("True", False)], ids=["small", "grown"]
)
def test_threads_keep_little_of_what_they_free(option: str, is_small: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _TOPS.format(option=option)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (int(done.stdout) < 12_000_000) is is_small


def test_what_refers_to_itself_is_collected() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CYCLES], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "True"
