"""Lines beyond an update that begins or ends without a marker: they stay, go, or are in doubt."""

from __future__ import annotations

import pytest

from apply_service.edit.place.left_out_lines import may_go
from apply_service.edit.place.merge import MergePlan, plan_merge, splice
from apply_service.edit.read.snippet import read_snippet

IMPORTS = "import math\nimport os\nimport re\n"
LIMIT = "\nLIMIT = 10\n"
FIRST = "\n\ndef first(values):\n    total = math.fsum(values)\n    return total / LIMIT\n"
SECOND = (
    '\n\ndef second(path):\n    name = os.path.basename(path)\n    return re.sub("_", "", name)\n'
)
FILE = IMPORTS + LIMIT + FIRST + SECOND
WITHOUT_MATH = (
    "# ...\ndef first(values):\n    total = sum(values)\n    return total / LIMIT\n# ...\n"
)


def plan(update: str, original: str = FILE, *, language: str = "python") -> MergePlan:
    lines = original.splitlines()
    snippet = read_snippet(update.splitlines(), lines, language=language)
    return plan_merge(lines, snippet, language=language)


def merged(found: MergePlan) -> str:
    assert found.best is not None
    return "\n".join(splice(found.original_lines, found.best)) + "\n"


def codes(found: MergePlan) -> list[str]:
    return [finding.code for finding in found.findings]


def test_an_import_goes_with_the_last_use_of_its_name() -> None:
    found = plan("import os\nimport re\n" + WITHOUT_MATH)
    assert merged(found) == FILE.replace("import math\n", "").replace("math.fsum", "sum")
    assert codes(found) == []


def test_an_import_that_is_used_stays_without_a_doubt() -> None:
    found = plan('import os\nimport re\nimport sys\n# ...\n    return re.sub("-", "", name)\n')
    expected = FILE.replace("import re\n", "import re\nimport sys\n").replace('"_"', '"-"')
    assert merged(found) == expected
    assert codes(found) == []


def test_an_import_moves_to_where_the_update_has_it() -> None:
    found = plan("import os\nimport math\nimport re\n# ...\n")
    assert merged(found) == FILE.replace("import math\nimport os\n", "import os\nimport math\n")
    assert codes(found) == []


def test_an_import_gives_way_to_a_list_of_what_it_imported() -> None:
    old = "import {sum, mean} from './sums.js'\nimport {read} from './files.js'\n"
    body = "\nexport default path => mean(read(path)) / sum(read(path))\n"
    new = "import {\n  mean,\n  median,\n  sum,\n} from './sums.js'\n"
    update = f"import {{read}} from './files.js'\n{new}// ...\n"
    found = plan(update, old + body, language="javascript")
    assert merged(found) == "import {read} from './files.js'\n" + new + body


@pytest.mark.parametrize(
    "first",
    [
        "import idle\n",
        "VERBOSE = False\n",
    ],
)
def test_it_is_unclear_whether_what_nothing_uses_stays(first: str) -> None:
    found = plan("import math\nimport os\nimport sys\n# ...\n", first + FILE)
    assert merged(found) == first + FILE.replace("import os\n", "import os\nimport sys\n")
    assert codes(found) == ["border_unclear"]


@pytest.mark.parametrize(
    "first",
    [
        "#!/usr/bin/env python3\n",
        '"""What all of this is about."""\n',
        "# Written by hand.\n",
        "VERBOSE = os.environ\n\nprint(VERBOSE)\n",
    ],
)
def test_what_binds_no_name_or_one_in_use_stays(first: str) -> None:
    original = first + FILE + "\n\nassert VERBOSE\n" * first.startswith("VERBOSE")
    found = plan("import math\nimport os\nimport sys\n# ...\n", original)
    assert merged(found) == original.replace("import os\n", "import os\nimport sys\n", 1)
    assert codes(found) == []


@pytest.mark.parametrize(("num_more", "is_unique"), [(1, False), (2, True)])
def test_more_lines_than_a_few_stay_for_certain(num_more: int, is_unique: bool) -> None:
    constants = "".join(f"SIZE_{number} = {number}\n" for number in range(num_more))
    original = constants + FILE
    update = SECOND.strip().replace("basename", "normpath")
    found = plan(f"{update}\n# ...\n", original)
    assert merged(found) == original.replace("basename", "normpath")
    assert found.is_unique == is_unique


def test_what_changes_nothing_and_has_no_marker_behind_it_ends_the_file() -> None:
    last = "\n\ndef third():\n    return LIMIT\n"
    update = '# ...\n    total = sum(values)\n# ...\n    return re.sub("_", "", name)\n'
    found = plan(update, FILE + last)
    assert merged(found) == FILE.replace("math.fsum", "sum")
    assert not found.is_unique
    assert found.accepts((FILE.replace("math.fsum", "sum") + last).splitlines()) is not None


def test_after_which_of_two_equal_lines_the_file_ends_is_in_doubt() -> None:
    third, fourth, fifth = (
        f"\n\ndef {name}():\n    return {value}\n"
        for name, value in (("third", "LIMIT"), ("fourth", "LIMIT"), ("fifth", "2"))
    )
    update = "# ...\n    total = sum(values)\n# ...\n    return LIMIT\n"
    found = plan(update, FILE + third + fourth + fifth)
    changed = FILE.replace("math.fsum", "sum")
    for rest in (third, third + fourth):
        assert found.accepts((changed + rest).splitlines()) is not None
    assert codes(found) == ["ambiguous_place"]


@pytest.mark.parametrize(
    ("num_lost", "new", "expected"),
    [
        (0, "a = 1", False),
        (8, "a = 1", True),
        (9, "a = 1", False),
        (9, "name_3 = 1", True),
        (9, "from names import (\n    name_3,\n)", True),
        (9, "    name_3 = 1", False),
    ],
)
def test_many_lines_may_go_only_if_the_update_binds_their_names(
    num_lost: int, new: str, expected: bool
) -> None:
    lost = [f"name_{number} = {number}" for number in range(num_lost)]
    assert may_go(["", *lost, "}"], new.splitlines()) == expected


@pytest.mark.parametrize(
    "said", ["# frozen: true\n", '"""What it does."""\n', "# one\n\n# two\n", "#!/usr/bin/env x\n"]
)
def test_what_a_file_says_about_itself_stays_above_a_new_import(said: str) -> None:
    original = f"{said}import os\n\nimport re\n{LIMIT}{FIRST}"
    found = plan("import ast\nimport os\n# ...\n", original)
    assert merged(found) == original.replace("import os", "import ast\nimport os")
    other = plan(f"{said.replace('e', 'i')}import os\n# ...\n", original)
    assert merged(other) == original.replace(said, said.replace("e", "i"))


HEAD = (
    "{#\n    shop/receipt.html\n    ~~~~~~~~~~~~~~~~~\n\n    Prints what a customer has paid.\n\n"
    "    :license: MIT\n#}\n"
)
BODY = '{%- if is_paid %}\n  <h3 class="title">{{ total }}</h3>\n  {{ lines }}\n{%- endif %}\n'


@pytest.mark.parametrize(
    "rest", [BODY, BODY.replace("  {{ lines }}\n{%- endif %}", "<!-- ... -->")]
)
def test_a_head_goes_that_the_update_says_again_and_that_is_for_review(rest: str) -> None:
    found = plan("{# Prints what a customer has paid. #}\n" + rest, HEAD + BODY, language="html")
    assert merged(found) == "{# Prints what a customer has paid. #}\n" + BODY
    assert codes(found) == ["border_unclear"]
    kept = f"{HEAD}{{# Prints what a customer has paid. #}}\n{BODY}"
    assert found.accepts(kept.splitlines()) is not None


@pytest.mark.parametrize(
    ("head", "new"),
    [
        (HEAD, "{# Shown below the basket. #}\n"),
        (HEAD * 3, "{# Prints what a customer has paid. #}\n"),
        (HEAD, "{# Prints #}\n"),
    ],
)
def test_a_head_stays_that_is_long_or_that_new_lines_have_little_of(head: str, new: str) -> None:
    update = new + BODY.replace("  {{ lines }}\n{%- endif %}", "<!-- ... -->")
    found = plan(update, head + BODY, language="html")
    assert merged(found) == head + new + BODY
    assert "border_unclear" not in codes(found)
