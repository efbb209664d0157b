"""When drafts may go on, by what they cost and brought."""

from __future__ import annotations

from lookup.draft_account import DraftAccount


def charge(account: DraftAccount, extra_ms: float, *, num_certain: int = 1) -> None:
    account.charge(extra_ms, step_ms=50.0, num_certain=num_certain, income=0.0)


def test_losses_close_it_and_one_token_that_holds_is_a_step() -> None:
    account = DraftAccount()
    for _ in range(2):
        charge(account, 20.0)
        assert account.is_open
    charge(account, 30.0)
    assert not account.is_open
    charge(account, 0.0)
    account.earn(1)
    assert account.is_open


def test_a_token_of_a_step_with_many_is_worth_its_share() -> None:
    account = DraftAccount()
    charge(account, 75.0)
    charge(account, 0.0, num_certain=64)
    account.earn(32)
    assert not account.is_open, "half a step was missing, and half a step came"
    account.earn(1)
    assert account.is_open


def test_neither_gains_nor_losses_are_remembered_without_end() -> None:
    account = DraftAccount()
    for _ in range(1000):
        charge(account, 0.0)
        account.earn(64)
    for _ in range(2):
        charge(account, 25.0)
    assert not account.is_open
    for _ in range(1000):
        charge(account, 500.0)
    charge(account, 0.0)
    account.earn(2)
    assert account.is_open


def test_a_small_income_pays_debts_in_time() -> None:
    account = DraftAccount()
    charge(account, 100.0)
    assert not account.is_open
    for _ in range(150):
        account.charge(0.0, step_ms=50.0, num_certain=4, income=0.01)
    assert account.is_open
