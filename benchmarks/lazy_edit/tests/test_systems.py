"""Systems that run here: the command-line patchers, and a library behind its pipe."""

import shutil
import sys

import pytest
from lazy_edit_bench.systems import workers
from lazy_edit_bench.systems.registry import COMMANDS, open_system
from lazy_edit_bench.task import Task

OLD = "".join(f"line {n}\n" for n in range(20))
NEW = OLD.replace("line 9\n", "line nine\n")
UPDATE = """--- a/f/a.txt
+++ b/f/a.txt
@@ -7,7 +7,7 @@
 line 6
 line 7
 line 8
-line 9
+line nine
 line 10
 line 11
 line 12
"""


def _task(original=OLD, dialect="diff", update=UPDATE):
    return Task(
        id="t",
        language="other",
        kind="replace",
        dialect=dialect,
        treat="apply",
        path="f/a.txt",
        instruction="",
        original=original,
        update=update,
        results=(NEW,),
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_patcher_applies_or_refuses(name, tmp_path):
    if shutil.which(name.split("-")[0]) is None:
        pytest.skip("the program is not installed")
    system = open_system(name, folder=tmp_path)
    assert system.version[0].isdigit()
    assert system.answer(_task()).text == NEW
    assert system.answer(_task(OLD.replace("line 9", "other"))).status == "refused"


def test_exact_replace_refuses_a_block_in_two_places(tmp_path):
    system = open_system("exact-replace", folder=tmp_path)
    block = "<<<<<<< SEARCH\nline 9\n=======\nline nine\n>>>>>>> REPLACE\n"
    assert system.answer(_task(dialect="search_replace", update=block)).text == NEW
    twice = system.answer(_task(OLD + OLD, "search_replace", block))
    assert (twice.status, twice.note) == ("refused", "in 2 places")


def test_a_library_answers_behind_its_pipe(tmp_path, monkeypatch):
    """The worker's protocol, with a library of this test in the place of an installed one."""
    place = tmp_path / "patch-ng"
    (place / "bin").mkdir(parents=True)
    (place / "patch_ng.py").write_text(
        "from pathlib import Path\n"
        "class fromstring:\n"
        "    def __init__(self, update): self.update = update\n"
        "    def apply(self, strip):\n"
        "        if b'fail' in self.update: raise RuntimeError('broken')\n"
        "        path = Path('f/a.txt')\n"
        "        path.write_text(path.read_text().replace('line 9\\n', 'line nine\\n'))\n"
        "        return b'no' not in self.update\n",
        encoding="utf-8",
    )
    (place / "bin/python").symlink_to(sys.executable)
    monkeypatch.setenv("PYTHONPATH", str(place))
    worker = workers.Worker("patch-ng", tmp_path)
    try:
        assert worker.answer(_task(update="yes")).text == NEW
        assert worker.answer(_task(update="no")).status == "refused"
        assert worker.answer(_task(update="fail")).note == "RuntimeError: broken"
    finally:
        worker.close()
