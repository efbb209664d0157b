"""Small edits that tools of this kind are known to get wrong: right, or asked about; never silent.

`tests/cases/trust` has a file for each kind; what a case may end in stands in the case.
"""

from __future__ import annotations

import pytest
from trust_ends import complaint_about, trust_cases, trust_kinds


@pytest.mark.parametrize("kind", trust_kinds())
def test_each_ends_as_it_may(kind: str) -> None:
    complaints = {case.id: complaint_about(case) for case in trust_cases(kind)}
    assert {name: complaint for name, complaint in complaints.items() if complaint} == {}
