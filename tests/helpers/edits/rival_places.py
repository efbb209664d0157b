"""A small edit with two possible places: the update fits two methods equally well."""

from __future__ import annotations

from apply_service.edit.regions import Region
from training.case_file import TrainingCase

ORIGINAL = """\
class Store:
    def load(self):
        self.check()
        return self.items

    def save(self):
        self.check()
        return self.items

    def clear(self):
        self.items = []
"""
UPDATE = """\
# ... existing code ...
        self.check()
        self.log("used")
        return self.items
# ... existing code ...
"""
_CHECK = "        self.check()\n"
_LOG = '        self.log("used")\n'


def changed(method: str) -> str:
    """The original with the new line in `method`."""
    header = f"    def {method}(self):\n"
    assert ORIGINAL.count(header + _CHECK) == 1
    return ORIGINAL.replace(header + _CHECK, header + _CHECK + _LOG)


def merge_case(method: str = "save", *, update: str = UPDATE, name: str = "a") -> TrainingCase:
    """An edit of one of the two methods; its place is sure if `update` names the method."""
    return TrainingCase(
        id=name,
        path="store.py",
        language="python",
        package="package",
        original=ORIGINAL,
        update=update,
        expected=changed(method),
        style="context",
        generator_version=5,
    )


def changed_part(text: str, region: Region) -> list[str]:
    """The new text of a region of the original, cut out of the `text` of a result."""
    lines = text.splitlines()
    return lines[region.start : len(lines) - len(ORIGINAL.splitlines()) + region.end]


def sure_update(method: str) -> str:
    """An update that names the method of the new line."""
    head, rest = UPDATE.split("\n", 1)
    return f"{head}\n    def {method}(self):\n{rest}"
