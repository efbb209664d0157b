"""Linear layers by oneDNN: equal to torch's own in every shape; shared weights stay shared."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from kernels.instruction_set import has_bfloat16
from kernels.linear import OneDnnLinear, use_onednn_linear

# Largest absolute error against float64 for outputs of the size of 1.
TOLERANCE = 2e-6

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN"
)
both = pytest.mark.parametrize("make", [OneDnnLinear.packed, OneDnnLinear.in_place])


class TiedModel(nn.Module):
    """Embeddings that are also the last layer, around one layer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.layers = nn.ModuleList([nn.Linear(6, 6)])
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, token_ids: Tensor) -> Tensor:
        rows = self.embedding(token_ids)
        for layer in self.layers:
            rows = layer(rows)
        return self.head(rows)


def make_linear(in_features: int, out_features: int, *, bias: bool = True) -> nn.Linear:
    torch.manual_seed(in_features * 100 + out_features)
    return nn.Linear(in_features, out_features, bias=bias).requires_grad_(False)


def check_equal(layer: OneDnnLinear, linear: nn.Linear, rows: Tensor) -> None:
    bias = None if linear.bias is None else linear.bias.double()
    expected = functional.linear(rows.double(), linear.weight.double(), bias)
    output = layer(rows)
    assert output.dtype == torch.float32
    assert output.shape == expected.shape
    assert output.numel() == 0 or (output - expected).abs().max() <= TOLERANCE


@both
@pytest.mark.parametrize("num_rows", [0, 1, 2, 17, 65, 129])
@pytest.mark.parametrize(("in_features", "out_features"), [(1, 1), (5, 7), (64, 48), (33, 130)])
@pytest.mark.parametrize("bias", [False, True])
def test_equal_to_torch(
    make: type[OneDnnLinear], in_features: int, out_features: int, num_rows: int, bias: bool
) -> None:
    linear = make_linear(in_features, out_features, bias=bias)
    rows = torch.randn(1, num_rows, in_features)
    check_equal(make(linear), linear, rows)
    check_equal(make(linear), linear, rows[0])


@both
def test_rows_may_be_strided(make: type[OneDnnLinear]) -> None:
    linear = make_linear(8, 3)
    check_equal(make(linear), linear, torch.randn(8, 5).t())
    check_equal(make(linear), linear, torch.randn(2, 5, 16)[:, 1:4, ::2])


def test_a_model_computes_the_same_and_keeps_its_parameters() -> None:
    model = TiedModel().requires_grad_(False)
    token_ids = torch.tensor([[3, 0, 10, 3]])
    expected = model(token_ids)
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    use_onednn_linear(model)
    assert [type(layer) for layer in (model.layers[0], model.head)] == [OneDnnLinear] * 2
    assert (model(token_ids) - expected).abs().max() <= TOLERANCE
    assert sum(parameter.numel() for parameter in model.parameters()) == num_parameters
    assert model.head.weight is model.embedding.weight


def test_what_is_more_than_a_linear_layer_stays() -> None:
    class Doubled(nn.Linear):
        def forward(self, rows: Tensor) -> Tensor:
            return 2 * super().forward(rows)

    model = nn.Sequential(Doubled(3, 3))
    use_onednn_linear(model)
    assert type(model[0]) is Doubled


@both
@pytest.mark.skipif(not has_bfloat16(), reason="oneDNN has no bfloat16 on this processor")
@pytest.mark.parametrize(
    ("in_features", "out_features"), [(5, 7), (64, 48), (576, 192), (576, 1536), (1536, 576)]
)
def test_in_bfloat16_a_row_has_the_same_bits_in_any_number(
    make: type[OneDnnLinear], in_features: int, out_features: int
) -> None:
    linear = make_linear(in_features, out_features).to(torch.bfloat16)
    layer = make(linear)
    rows = torch.randn(140, in_features).to(torch.bfloat16)
    whole = layer(rows)
    expected = functional.linear(rows.double(), linear.weight.double(), linear.bias.double())
    assert ((whole - expected).abs() <= 2**-8 * expected.abs() + 1e-5).all()
    for num_rows in range(1, 140):
        assert torch.equal(layer(rows[:num_rows]), whole[:num_rows]), num_rows
        assert torch.equal(layer(rows[num_rows:]), whole[num_rows:]), num_rows
        assert torch.equal(layer(rows[num_rows][None, None])[0, 0], whole[num_rows]), num_rows
