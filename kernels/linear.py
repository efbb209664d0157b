"""Linear layers on the CPU in float32 or bfloat16, by oneDNN from weights in its own order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from kernels.row_grouping import RowGrouping


class OneDnnLinear(nn.Module):
    """Computes the same as `nn.Linear`; torch itself would take MKL, which is slow on AMD CPUs."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        """weight: [out_features, in_features], plain or reordered; both are parameters."""
        super().__init__()
        self.weight = weight
        self.bias = bias
        self.grouping = RowGrouping.ALL

    @classmethod
    def packed(cls, linear: nn.Linear) -> OneDnnLinear:
        """Make a layer with a copy of the weight in the blocks that oneDNN reads fastest."""
        weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach())
        return cls(nn.Parameter(weight, requires_grad=False), linear.bias)

    @classmethod
    def in_place(cls, linear: nn.Linear) -> OneDnnLinear:
        """Make a layer that shares the weight with others; slower for two rows and more."""
        return cls(linear.weight, linear.bias)

    def forward(self, rows: Tensor) -> Tensor:
        """rows: [..., in_features] in the weight's dtype, any strides. Returns [..., out_features].

        A row has the same bits among any number of rows, as far as `grouping` ensures it.
        """
        if self.grouping is not RowGrouping.ALL:
            return self._multiply_tiles(rows, 1 if self.grouping is RowGrouping.SINGLE else 32)
        if rows.numel() == rows.shape[-1]:
            # A single row would be summed in another order.
            doubled = rows.expand(*rows.shape[:-2], 2, rows.shape[-1])
            return self._multiply(doubled)[..., :1, :]
        return self._multiply(rows)

    def _multiply_tiles(self, rows: Tensor, tile: int) -> Tensor:
        """`tile` rows at a time, the last ones filled up with zeros."""
        flat = rows.reshape(-1, rows.shape[-1])
        filled = functional.pad(flat, (0, 0, 0, -len(flat) % tile))
        products = [self._multiply(part) for part in torch.split(filled, tile)]
        output = torch.cat(products)[: len(flat)]
        return output.view(*rows.shape[:-1], output.shape[-1])

    def _multiply(self, rows: Tensor) -> Tensor:
        output: Tensor = torch.ops.mkldnn._linear_pointwise(
            rows, self.weight, self.bias, "none", [], ""
        )
        return output


def use_onednn_linear(model: nn.Module) -> None:
    """Replace the linear layers of a model on the CPU; changes `model`.

    Does nothing where torch was built without oneDNN. Weights that are shared, such as those of
    tied embeddings, stay as they are, but every other copy of the weights can be freed afterwards.
    """
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return

    def make(linear: nn.Linear, is_shared: bool) -> nn.Module:
        return OneDnnLinear.in_place(linear) if is_shared else OneDnnLinear.packed(linear)

    replace_linears(model, make)
    copy_mapped_weights(model)


def group_rows(model: nn.Module, grouping: RowGrouping) -> None:
    """Make all layers of a model compute their rows in these groups; changes `model`."""
    for layer in onednn_linears(model):
        layer.grouping = grouping


def onednn_linears(model: nn.Module) -> list[OneDnnLinear]:
    """The layers of a model that oneDNN computes."""
    return [module for module in model.modules() if isinstance(module, OneDnnLinear)]


def replace_linears(model: nn.Module, make: Callable[[nn.Linear, bool], nn.Module]) -> None:
    """Replace each linear layer by `make(linear, is_shared)`; changes `model`.

    `is_shared` is true where another module has the same weight.
    """
    num_owners = Counter(
        id(parameter) for _, parameter in model.named_parameters(remove_duplicate=False)
    )
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if type(child) is nn.Linear:  # a subclass computes something else
                setattr(parent, name, make(child, num_owners[id(child.weight)] > 1))


def copy_mapped_weights(model: nn.Module) -> None:
    """Copy mapped weights; a mapped file stays in memory while any of its weights is needed."""
    for parameter in model.parameters():
        if not parameter.is_mkldnn:
            parameter.data = parameter.data.clone()
