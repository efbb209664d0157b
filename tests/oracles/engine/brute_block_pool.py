"""The block pool written for reading: a list of holders, a list of free blocks, linear searches."""

from __future__ import annotations

from collections.abc import Sequence


class BruteBlockPool:
    """Who holds each block, what stands in it, and in which order free blocks are handed out."""

    def __init__(self, num_blocks: int) -> None:
        self.num_holders = [0] * num_blocks
        self.contents: list[bytes | None] = [None] * num_blocks
        self.free = list(range(num_blocks))

    def try_reserve(self, num_blocks: int) -> list[int] | None:
        """The first free blocks, emptied; None if there are fewer."""
        if num_blocks > len(self.free):
            return None
        taken, self.free = self.free[:num_blocks], self.free[num_blocks:]
        for block in taken:
            self.contents[block] = None
            self.num_holders[block] = 1
        return taken

    def match(self, block_hashes: Sequence[bytes]) -> list[int]:
        """The blocks of the longest prefix that stands somewhere."""
        found = []
        for block_hash in block_hashes:
            if block_hash not in self.contents:
                break
            found.append(self.contents.index(block_hash))
        return found

    def share(self, blocks: Sequence[int]) -> None:
        """One more holder each."""
        self.free = [block for block in self.free if block not in blocks]
        for block in blocks:
            self.num_holders[block] += 1

    def release(self, blocks: Sequence[int]) -> None:
        """One holder less each. Empty blocks are reused first, of the others the oldest."""
        for block in reversed(blocks):
            self.num_holders[block] -= 1
            if self.num_holders[block] == 0:
                self.free = (
                    [block, *self.free] if self.contents[block] is None else [*self.free, block]
                )

    def register(self, block: int, block_hash: bytes) -> None:
        """Name a block's content, unless another block has that content already."""
        if block_hash not in self.contents:
            self.contents[block] = block_hash
