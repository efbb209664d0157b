"""Names that imports bind."""

from __future__ import annotations

import pytest

from apply_service.edit.imports import import_names
from apply_service.edit.syntax import parse


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("python", "import a.b, c as d\nfrom x import (\n  y,  # why\n  z as w,\n)", "a d y w"),
        ("python", "from q import *\nif T:\n    from ..m import k\n", "q.* k"),
        ("javascript", "import A, { b as c } from 'x';\nimport * as ns from \"y\";", "A c ns"),
        ("javascript", "import 'side.css';\nconst { a, b: c } = require('z');", "side.css a c"),
        ("javascript", "const q = require('p').q;\nvar r = require('r');", "q r"),
        ("typescript", "import type { T } from 't';\nimport ex = require('m');", "T ex"),
        ("typescript", "import { type A, B, // why\n  C } from 'x'", "A B C"),
        ("go", 'package a\nimport (\n "fmt"\n o "os"\n _ "p/q"\n "g.c/b/v2"\n)', "fmt o p/q b"),
        ("rust", "use std::{io::{self, Read}, fmt::Debug as D};", "Read D io"),
        ("rust", "pub use a::b::*;\nuse c::d;\nextern crate foo;", "a::b::* d foo"),
        ("java", "import java.util.List;\nimport static a.B.*;", "List a.B.*"),
        ("kotlin", "import a.b.C\nimport d.*\nimport e.F as G", "C d.* G"),
        ("scala", "import a.{C, D => E}\nimport x._\nimport y.Z", "C E x._ Z"),
        ("cpp", '#include <vector>\n#include "a.h"', '<vector> "a.h"'),
        ("csharp", "using System.Text;\nusing A = B.C;", "System.Text A"),
        ("php", "<?php\nuse X\\Y;\nuse X\\{A, B as C};\nrequire 'q.php';", "Y A C q.php"),
        ("ruby", "require 'json'\nrequire_relative \"a\"", "json a"),
        ("lua", 'local json = require("dk")\nrequire "x"', "json x"),
        ("swift", "import Foundation\n@testable import A", "Foundation A"),
        ("bash", 'source ./a.sh\n. "b.sh"', "./a.sh b.sh"),
        ("css", '@import "a.css";', "a.css"),
        ("json", '{"import": "a"}', ""),
        ("python", "x = 'import y'", ""),
    ],
)
def test_names_are_told_as_the_code_says_them(language: str, text: str, expected: str) -> None:
    assert import_names(text.split("\n"), language) == set(expected.split())


def test_a_given_tree_is_used() -> None:
    lines = ["import a"]
    tree = parse(lines, "python")
    assert import_names(lines, None, tree=tree) == {"a"}
    assert import_names(lines, None) == frozenset()
