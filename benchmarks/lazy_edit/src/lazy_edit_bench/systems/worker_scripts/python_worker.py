"""Runs one library in its own environment: a JSON object a line in, one a line out.

Called with the name of a system. Knows nothing of the benchmark, so that it runs where only the
library is installed. In: path, original, update. Out: status, text, note.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import types
from pathlib import Path
from typing import Any


class NotAppliedError(Exception):
    """The library says that it cannot apply the update."""


def _without_package_init(package: str, folder_of: str, *stubs: str) -> None:
    """Import `package` as a bare folder, with empty modules for `stubs` that the code never uses.

    Only merging code is run here; what talks to models need not be installed.
    """
    import importlib.util

    spec = importlib.util.find_spec(folder_of)
    assert spec is not None
    assert spec.submodule_search_locations
    bare = types.ModuleType(package)
    inner = package.removeprefix(folder_of).strip(".").split(".") if package != folder_of else []
    bare.__path__ = [os.path.join(next(iter(spec.submodule_search_locations)), *inner)]
    sys.modules[package] = bare
    for name in stubs:
        sys.modules[name] = types.ModuleType(name)


def aider_edit_block() -> Any:
    _without_package_init("aider.coders", "aider", "aider.coders.base_coder")
    sys.modules["aider.coders.base_coder"].Coder = object  # type: ignore[attr-defined]
    from aider.coders import editblock_coder as coder

    def apply(path: str, original: str, update: str) -> str:
        fence = ("```", "```")
        text = original
        try:
            edits = list(coder.find_original_update_blocks(update, fence, [path]))
        except ValueError as error:
            raise NotAppliedError(str(error)) from error
        if not edits:
            raise NotAppliedError("no block")
        for edit_path, search, replace in edits:
            if edit_path is None:
                continue
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text, encoding="utf-8", newline="")
            made = coder.do_replace(path, text, search, replace, fence)
            if not made:
                raise NotAppliedError("a block does not match")
            text = made
        return text

    return apply


def aider_udiff() -> Any:
    _without_package_init("aider.coders", "aider", "aider.coders.base_coder")
    sys.modules["aider.coders.base_coder"].Coder = object  # type: ignore[attr-defined]
    from aider.coders import udiff_coder as coder

    def apply(path: str, original: str, update: str) -> str:
        text = original
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8", newline="")
        hunks = [
            coder.normalize_hunk(hunk) for _, hunk in coder.find_diffs(f"```diff\n{update}```\n")
        ]
        if not any(hunks):
            raise NotAppliedError("no hunk")
        for hunk in hunks:
            if not hunk:
                continue
            try:
                made = coder.do_replace(path, text, hunk)
            except coder.SearchTextNotUnique as error:
                raise NotAppliedError("a hunk fits several places") from error
            if not made:
                raise NotAppliedError("a hunk does not match")
            text = made
        return text

    return apply


def fastedits() -> Any:
    from fastedit.inference.text_match import deterministic_edit

    def apply(path: str, original: str, update: str) -> str:
        made = deterministic_edit(original, update)
        if made is None:
            raise NotAppliedError("left to a model")
        return str(made)

    return apply


def whatthepatch() -> Any:
    import whatthepatch as library

    def apply(path: str, original: str, update: str) -> str:
        diffs = list(library.parse_patch(update))
        if not diffs:
            raise NotAppliedError("no diff")
        lines = original.split("\n")
        for diff in diffs:
            try:
                lines = library.apply_diff(diff, lines)
            except library.exceptions.HunkApplyException as error:
                raise NotAppliedError(str(error)) from error
        return "\n".join(lines)

    return apply


def patch_ng() -> Any:
    import patch_ng as library

    def apply(path: str, original: str, update: str) -> str:
        patch_set = library.fromstring(update.encode())
        if not patch_set:
            raise NotAppliedError("no patch")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(original.encode())
        if not patch_set.apply(strip=1):
            raise NotAppliedError("apply() says no")
        return Path(path).read_bytes().decode(errors="replace")

    return apply


SYSTEMS = {
    "aider-edit-block": aider_edit_block,
    "aider-udiff": aider_udiff,
    "fastedits": fastedits,
    "whatthepatch": whatthepatch,
    "patch-ng": patch_ng,
}


def main() -> None:
    """Answer until the input ends."""
    apply = SYSTEMS[sys.argv[1]]()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    home = os.getcwd()
    for line in sys.stdin:
        asked = json.loads(line)
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.redirect_stdout(io.StringIO()),
        ):
            os.chdir(folder)
            try:
                text = apply(asked["path"], asked["original"], asked["update"])
                answer = {"status": "applied", "text": text}
            except NotAppliedError as error:
                answer = {"status": "refused", "note": str(error)[:300]}
            except Exception as error:  # a library's fault must not end the run
                answer = {"status": "failed", "note": f"{type(error).__name__}: {error}"[:300]}
            os.chdir(home)
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
