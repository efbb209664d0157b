"""Sums and exchanges between the ranks of one machine: gloo for host tensors, NCCL for a GPU's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

# Ranks meet within steps alone, so that one which is later than this is lost.
_TIMEOUT = timedelta(seconds=120)
_LEAD = 0


class RankGroup:
    """This rank among the others. All ranks make the same calls in the same order.

    Every method raises RuntimeError if a rank has gone.
    """

    def __init__(self, rank: int, size: int, *, meeting: Path, device: torch.device) -> None:
        """Wait for the other ranks at the file `meeting`, which must not exist before."""
        self.rank = rank
        self.size = size
        store = dist.FileStore(str(meeting), size)  # type: ignore[attr-defined]
        options = dist.ProcessGroupGloo._Options()  # type: ignore[attr-defined]
        options._timeout = _TIMEOUT
        options._devices = [dist.ProcessGroupGloo.create_device(hostname="127.0.0.1")]
        # Groups of their own, not the one of the process: torch gives these no common type.
        prefixed = dist.PrefixStore  # type: ignore[attr-defined]
        self._of_host: Any = dist.ProcessGroupGloo(prefixed("host", store), rank, size, options)
        self._of_device: Any = self._of_host
        if device.type == "cuda":
            nccl = dist.ProcessGroupNCCL.Options()
            nccl._timeout = _TIMEOUT
            self._of_device = dist.ProcessGroupNCCL(prefixed("device", store), rank, size, nccl)

    @property
    def is_lead(self) -> bool:
        """True for the rank that has the scheduler."""
        return self.rank == _LEAD

    def sum(self, part: Tensor) -> Tensor:
        """The sum of all ranks' tensors of one shape, on each of them.

        It is added up in float32 in the order of the ranks. A ring would add each piece of the
        tensor in another order, and so give a row other bits in another batch.
        """
        parts = self.gather_all(part)
        total = parts[0].float()
        for other in parts[1:]:
            total += other
        return total.to(part.dtype)

    def gather_all(self, part: Tensor) -> Tensor:
        """The tensors of all ranks, in their order, on each of them: [size, *part.shape]."""
        sent = as_bytes(part)
        received = torch.empty(self.size * len(sent), dtype=torch.uint8, device=part.device)
        self._group_of(part)._allgather_base(received, sent).wait()
        return received.view(part.dtype).view(self.size, *part.shape)

    def gather(self, part: Tensor) -> Tensor:
        """As `gather_all` on the lead; other ranks get their own back, [1, *part.shape]."""
        sent = as_bytes(part)
        options = dist.GatherOptions()
        options.rootRank = _LEAD
        received = part[None]
        places: list[list[Tensor]] = []
        if self.is_lead:
            memory = torch.empty(self.size, len(sent), dtype=torch.uint8, device=part.device)
            places = [list(memory.unbind())]
            received = memory.view(-1).view(part.dtype).view(self.size, *part.shape)
        self._group_of(part).gather(places, [sent], options).wait()
        return received

    def scatter(self, parts: Sequence[Tensor], received: Tensor) -> None:
        """Send one tensor of the lead to each rank, which gets it in `received`.

        parts: flat tensors of the size of `received`; empty on other ranks
        """
        options = dist.ScatterOptions()
        options.rootRank = _LEAD
        sent = [list(parts)] if self.is_lead else []
        self._group_of(received).scatter([received], sent, options).wait()

    def least(self, number: int) -> int:
        """The least number of all ranks."""
        return int(self.gather_all(torch.tensor([number])).min())

    def _group_of(self, tensor: Tensor) -> Any:
        return self._of_host if tensor.device.type == "cpu" else self._of_device


def as_bytes(tensor: Tensor) -> Tensor:
    """The content of a tensor, flat: not every library knows every kind of number."""
    whole = tensor.contiguous()
    # A single number may have any stride.
    return whole.as_strided((whole.numel(),), (1,)).view(torch.uint8)
