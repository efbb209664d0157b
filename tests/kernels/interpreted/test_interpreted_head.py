"""The Triton head that writes no logits against the reference: odd sizes, ties, poisoned memory."""

from __future__ import annotations

import pytest
import torch
from head_case import make_head_case
from verify_case import check_same

from kernels.gpu.greedy_head import greedy_head_triton
from kernels.greedy_head import greedy_head_reference

# Requests' drafts, vocabulary, hidden size, dtype: each value of one meets those of the others.
SIZES = [
    ([0], 17, 16, torch.float32),
    ([0], 300, 33, torch.float16),
    ([5, 0, 9], 128, 80, torch.float32),
    ([5, 0, 9], 17, 130, torch.float16),
    ([64], 300, 16, torch.float16),
    ([64], 129, 33, torch.float32),
    ([64, 64, 1], 129, 130, torch.float16),
    ([64, 64, 1], 300, 80, torch.float32),
    ([0], 128, 130, torch.float32),
    ([5, 0, 9], 129, 16, torch.float16),
    ([], 17, 16, torch.float32),
]


@pytest.mark.parametrize(("num_drafts", "vocab_size", "hidden_size", "dtype"), SIZES)
def test_agrees_with_the_reference(
    num_drafts: list[int], vocab_size: int, hidden_size: int, dtype: torch.dtype
) -> None:
    case = make_head_case(num_drafts, vocab_size=vocab_size, hidden_size=hidden_size, dtype=dtype)
    arguments = (case.hidden, case.weight, case.draft_token_ids)
    expected = greedy_head_reference(*arguments, cu_rows=case.cu_rows)
    for writes_logits in (False, True):
        ours = greedy_head_triton(*arguments, cu_rows=case.cu_rows, writes_logits=writes_logits)
        check_same(ours, expected, case.cu_rows)


def test_rows_whose_logits_are_written_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.gpu.greedy_head._ROWS_AT_ONCE", 7)
    case = make_head_case([5, 0, 9, 2], vocab_size=40, hidden_size=16, dtype=torch.float32)
    arguments = (case.hidden, case.weight, case.draft_token_ids)
    ours = greedy_head_triton(*arguments, cu_rows=case.cu_rows, writes_logits=True)
    check_same(ours, greedy_head_reference(*arguments, cu_rows=case.cu_rows), case.cu_rows)


def test_logits_are_rounded_before_they_are_compared() -> None:
    """2049 is 2048 in half precision, so the first of both tokens wins."""
    hidden = torch.tensor([[2048.0, 1.0]], dtype=torch.float16)
    weight = torch.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=torch.float16)
    drafts, cu_rows = torch.tensor([-1]), torch.tensor([0, 1])
    assert greedy_head_triton(hidden, weight, drafts, cu_rows=cu_rows).token_ids.tolist() == [0]
    wide = greedy_head_triton(hidden.float(), weight.float(), drafts, cu_rows=cu_rows)
    assert wide.token_ids.tolist() == [1]
