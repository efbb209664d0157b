"""Remembers the plans of the last edits, so that a repeated edit is not planned again.

A client that got no answer in time sends the same edit once more, and one that did not like the
answer sends it with another scope or sampling: planning looks at neither.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from apply_service.apply.edit_request import EditRequest
from apply_service.apply.planning.edit_plan import EditPlan

MAX_PLANS = 64
# As `EditPlan.num_characters` counts them.
MAX_CHARACTERS = 4_000_000


class PlanMemory:
    """Holds at most `max_plans` plans, with at most `max_characters` together.

    The least recently used plan goes first. For the thread of the event loop alone.
    """

    def __init__(self, *, max_plans: int = MAX_PLANS, max_characters: int = MAX_CHARACTERS) -> None:
        self._max_plans = max_plans
        self._max_characters = max_characters
        self._plans: OrderedDict[Hashable, EditPlan] = OrderedDict()
        self._num_characters = 0

    def __len__(self) -> int:
        return len(self._plans)

    def recall(self, edit: EditRequest) -> EditPlan | None:
        """The plan of an edit that is the same to planning (see `plan_edit_again`), or None."""
        key = _key_of(edit)
        plan = self._plans.get(key)
        if plan is not None:
            self._plans.move_to_end(key)
        return plan

    def keep(self, plan: EditPlan) -> None:
        """Remember a plan, unless it is larger than the whole memory."""
        num_characters = plan.num_characters
        key = _key_of(plan.edit)
        if num_characters > self._max_characters or key in self._plans:
            return
        self._plans[key] = plan
        self._num_characters += num_characters
        while len(self._plans) > self._max_plans or self._num_characters > self._max_characters:
            _, oldest = self._plans.popitem(last=False)
            self._num_characters -= oldest.num_characters


def _key_of(edit: EditRequest) -> Hashable:
    """The parts of an edit that planning uses, and its tenant.

    Tenants share no work, so none can tell what others sent.
    """
    return (
        edit.cache_salt,
        edit.original,
        edit.update,
        edit.instruction,
        edit.path,
        edit.language,
        edit.format,
        edit.checks,
        # A choice may be of an update that by itself has no place.
        edit.resolve is not None,
    )
