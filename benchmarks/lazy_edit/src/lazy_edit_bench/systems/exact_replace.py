"""The rule of most agents' edit tools: a block that stands in the file once is replaced."""

from __future__ import annotations

from lazy_edit_bench import __version__
from lazy_edit_bench.judge import Answer, file_text
from lazy_edit_bench.task import Dialect, Task


class ExactReplace:
    """Replaces each SEARCH text that occurs exactly once, and refuses otherwise."""

    name = "exact-replace"
    version = __version__
    command = "lazy-edit-bench run --system exact-replace"
    dialects: tuple[Dialect, ...] = ("search_replace",)

    def answer(self, task: Task) -> Answer:
        """Replace block after block in memory."""
        text = file_text(task)
        num_blocks = 0
        for part in task.update.split("<<<<<<< SEARCH\n")[1:]:
            search, _, rest = part.partition("=======\n")
            replace = rest.partition(">>>>>>> REPLACE")[0]
            if not search or text.count(search) != 1:
                return Answer(status="refused", note=f"in {text.count(search)} places")
            text = text.replace(search, replace)
            num_blocks += 1
        if not num_blocks:
            return Answer(status="refused", note="no block")
        return Answer(status="applied", text=text)

    def close(self) -> None:
        """Nothing was started."""
