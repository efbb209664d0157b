"""Linear layers in int8: near their reference, far smaller, and each row for itself."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from kernels.int8_linear import (
    Int8Linear,
    count_parameters,
    int8_linear_reference,
    use_int8_linear,
)


def make_linear(in_features: int, out_features: int, *, bias: bool = True) -> nn.Linear:
    torch.manual_seed(in_features * 100 + out_features)
    return nn.Linear(in_features, out_features, bias=bias).requires_grad_(False)


def make_rows(num_rows: int, in_features: int) -> Tensor:
    """Rows of very different sizes, one of them zero and one with an outlier."""
    torch.manual_seed(num_rows)
    rows = torch.randn(num_rows, in_features) * torch.logspace(-4, 4, num_rows)[:, None]
    if num_rows > 3:
        rows[1] = 0.0
        rows[2, 0] = 1e6
    return rows


@pytest.mark.parametrize("num_rows", [1, 2, 17, 65])
@pytest.mark.parametrize(("in_features", "out_features"), [(1, 1), (5, 7), (64, 48), (130, 33)])
@pytest.mark.parametrize("bias", [False, True])
def test_near_the_reference(num_rows: int, in_features: int, out_features: int, bias: bool) -> None:
    linear = make_linear(in_features, out_features, bias=bias)
    rows = make_rows(num_rows, in_features)
    layer = Int8Linear(linear)
    output = layer(rows[None])[0]
    expected = int8_linear_reference(rows, linear.weight, linear.bias, row_bits=layer.row_bits)
    assert output.dtype == torch.float32
    # A product may be rounded to the other side once in a row; seven bits double that.
    size = rows.abs().amax(dim=1, keepdim=True) * linear.weight.abs().amax() + 1e-6
    assert ((output - expected).abs() <= size * (0.02 + 0.002 * in_features**0.5)).all()


def test_no_row_depends_on_another() -> None:
    layer = Int8Linear(make_linear(192, 320))
    rows = make_rows(129, 192)
    whole = layer(rows)
    for num_rows in range(1, 130):
        assert torch.equal(layer(rows[:num_rows]), whole[:num_rows]), num_rows
    order = torch.randperm(129)
    assert torch.equal(layer(rows[order]), whole[order])


def test_error_is_that_of_eight_bits() -> None:
    linear = make_linear(256, 256, bias=False)
    rows = torch.randn(64, 256)
    expected = linear(rows)
    error = (Int8Linear(linear)(rows) - expected).norm() / expected.norm()
    assert 1e-4 < error < 0.03


def test_no_rows_are_no_error() -> None:
    assert Int8Linear(make_linear(8, 5))(torch.empty(1, 0, 8)).shape == (1, 0, 5)


def test_a_model_keeps_no_float_weights_but_its_embeddings() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(11, 6)
            self.layer = nn.Linear(6, 6)
            self.head = nn.Linear(6, 11, bias=False)
            self.head.weight = self.embedding.weight

    model = Tied().requires_grad_(False)
    use_int8_linear(model)
    names = [name for name, _ in model.named_parameters()]
    assert names == ["embedding.weight", "layer.bias"]
    assert isinstance(model.head, Int8Linear)
    assert count_parameters(model) == 66 + 36 + 6
