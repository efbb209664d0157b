"""Lines that an update leaves out without a word: keep them or remove them is asked first."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest
from case_files import case_file
from pipeline_session import make_edit, make_plan

from apply_service.apply.choices import Choice
from apply_service.apply.conclusion import settle_doubt, try_conclude_alone
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.outcome import Outcome
from apply_service.edit.verdict.omission import find_omission
from apply_service.evaluate.cases.case_file import read_cases
from apply_service.evaluate.cases.planned_case import edit_of_case

PYTHON = """\
import json
import logging
import os


class Store:
    def __init__(self, path):
        self.path = path
        self.items = {}

    def load(self):
        with open(self.path) as file:
            self.items = json.load(file)

    def close(self):
        logging.info("closing %s", self.path)
        self.flush()
        os.unlink(self.path)

    def flush(self):
        with open(self.path, "w") as file:
            json.dump(self.items, file)
"""
JAVASCRIPT = """\
const cache = new Map();

export function remember(key, value) {
  cache.set(key, value);
  return value;
}

export function forget(key) {
  audit("forget", key);
  cache.delete(key);
  notify(key);
}

export function size() {
  return cache.size;
}
"""
TYPESCRIPT = """\
import { db } from "./db";
import { metrics } from "./metrics";

export interface Order {
  id: string;
  total: number;
}

export async function load(id: string): Promise<Order> {
  metrics.count("load");
  const row = await db.get(id);
  return { id: row.id, total: row.total };
}

export async function save(order: Order): Promise<void> {
  metrics.count("save");
  await db.lock(order.id);
  await db.put(order.id, order);
  await db.unlock(order.id);
}

export async function erase(id: string): Promise<void> {
  metrics.count("erase");
  await db.remove(id);
}
"""
RUST = """\
use std::collections::HashMap;
use std::time::Instant;

impl Cache {
    pub fn put(&mut self, key: String, value: String) {
        self.audit("put", &key);
        self.items.insert(key, value);
    }

    pub fn drop_all(&mut self) {
        self.audit("drop", "*");
        self.items.clear();
        self.started = Instant::now();
    }

    fn audit(&self, what: &str, key: &str) {
        println!("{what} {key}");
    }
}
"""
JAVA = """\
package shop;

public class Basket {
    private final List<Item> items = new ArrayList<>();
    private final Log log;

    public void add(Item item) {
        items.add(item);
        log.added(item);
    }

    public void remove(Item item) {
        items.remove(item);
        log.removed(item);
    }

    public int total() {
        int sum = 0;
        for (Item item : items) {
            sum += item.price();
        }
        return sum;
    }
}
"""
RUBY = """\
require "logger"

class Queue
  def initialize
    @jobs = []
    @log = Logger.new($stdout)
  end

  def push(job)
    @log.info("push #{job}")
    @jobs << job
    notify
  end

  def pop
    @log.info("pop")
    @jobs.shift
  end
end
"""
C = """\
#include <stdio.h>
#include "log.h"

void buffer_free(struct buffer *b)
{
    log_debug("free");
    free(b->data);
    b->data = NULL;
    b->size = 0;
}

int buffer_write(struct buffer *b, FILE *out)
{
    log_debug("write");
    return fwrite(b->data, 1, b->size, out) == b->size;
}
"""
KOTLIN = """\
package shop

class Cart(private val log: Log) {
    private val items = mutableListOf<Item>()

    fun add(item: Item) {
        check(item)
        items.add(item)
        log.info("added")
    }

    fun clear() {
        log.info("cleared")
        items.clear()
    }
}
"""
GO = """\
package store

import (
	"errors"
	"log"
	"os"
)

func (s *Store) Get(key string) (string, error) {
	value, ok := s.items[key]
	if !ok {
		return "", errors.New("no such key")
	}
	return value, nil
}

func (s *Store) Close() error {
	log.Print("closed")
	return s.file.Close()
}
"""
SHELL = """\
#!/bin/sh
set -eu

check() {
  log "check"
  make test
  make lint
}

release() {
  log "release"
  check
  make publish
}
"""
YAML = """\
server:
  host: 0.0.0.0
  port: 8080
  timeout: 30
  retries: 3
logging:
  level: info
  format: json
"""
TOML = """\
[server]
host = "0.0.0.0"
port = 8080
timeout = 30
retries = 3

[log]
level = "info"
"""
JSON = """\
{
  "name": "store",
  "private": true,
  "scripts": {
    "build": "tsc",
    "lint": "eslint .",
    "test": "vitest"
  },
  "license": "MIT"
}
"""
CSS = """\
.button {
  color: black;
  border: none;
  outline: 2px solid blue;
  padding: 4px;
}

.link {
  color: blue;
}
"""


@dataclass(frozen=True)
class LeftOut:
    """An update in doubt that lacks `lines` of the original; both readings have `new`."""

    path: str
    original: str
    update: str
    lines: str
    where: str
    new: str

    @property
    def edit(self) -> EditRequest:
        """The edit of a caller who names no language."""
        return make_edit(
            self.original, self.update, path=self.path, language=None, use_model="never"
        )


CLOSE = """\
# ... existing code ...
    def close(self):
        logging.info("closing %s", self.path)
        os.unlink(self.path)
        self.path = None

    def flush(self):
# ... existing code ...
"""
LOAD = """\
// ... existing code ...
  const row = await db.get(id);
  return { id: row.id, total: row.total ?? 0 };
}

export async function erase(id: string): Promise<void> {
  metrics.count("erase");
// ... existing code ...
"""
SAVE = "export async function save(order: Order): Promise<void> {"
CASES = {
    "a shorter body, Python": LeftOut(
        "store.py",
        PYTHON,
        CLOSE,
        "        self.flush()\n",
        "`self.flush()` (line 17 in Store.close)",
        "self.path = None",
    ),
    "a method between two others, Python": LeftOut(
        "store.py",
        PYTHON,
        "# ... existing code ...\n    def load(self):\n        with open(self.path) as file:\n"
        "            self.items = json.load(file)\n\n    def flush(self):\n"
        '        with open(self.path, "w") as file:\n'
        "            json.dump(self.items, file, indent=2)\n",
        PYTHON[PYTHON.index("    def close") : PYTHON.index("    def flush")],
        "`def close(self):` (lines 15 to 18 in Store)",
        "indent=2",
    ),
    "an import that is used, Python": LeftOut(
        "store.py",
        PYTHON,
        "import json\nimport os\nimport sys\n\n\nclass Store:\n# ... existing code ...\n",
        "import logging\n",
        "`import logging` (line 2)",
        "import sys",
    ),
    "an import that is used, Go": LeftOut(
        "store.go",
        GO,
        '// ... existing code ...\nimport (\n\t"errors"\n\t"os"\n\t"sync"\n)\n'
        "// ... existing code ...\n",
        '\t"log"\n',
        '`"log"` (line 5)',
        '"sync"',
    ),
    "a shorter body, JavaScript": LeftOut(
        "cache.js",
        JAVASCRIPT,
        "// ... existing code ...\nexport function forget(key) {\n"
        "  const had = cache.delete(key);\n  notify(key);\n  return had;\n}\n"
        "// ... existing code ...\n",
        '  audit("forget", key);\n',
        '`audit("forget", key);` (line 9 in forget)',
        "return had;",
    ),
    "a function between two others, TypeScript": LeftOut(
        "orders.ts",
        TYPESCRIPT,
        LOAD,
        TYPESCRIPT[TYPESCRIPT.index(SAVE) : TYPESCRIPT.index("export async function erase")],
        f"`{SAVE}` (lines 15 to 20)",
        "row.total ?? 0",
    ),
    "a shorter body, Rust": LeftOut(
        "cache.rs",
        RUST,
        "    // ... existing code ...\n    pub fn drop_all(&mut self) {\n"
        "        self.items.clear();\n        self.items.shrink_to_fit();\n"
        "        self.started = Instant::now();\n    }\n    // ... existing code ...\n",
        '        self.audit("drop", "*");\n',
        '`self.audit("drop", "*");` (line 11 in impl Cache.drop_all)',
        "shrink_to_fit",
    ),
    "a method between two others, Java": LeftOut(
        "Basket.java",
        JAVA,
        "// ... existing code ...\n    public void add(Item item) {\n        items.add(0, item);\n"
        "        log.added(item);\n    }\n\n    public int total() {\n        int sum = 0;\n"
        "// ... existing code ...\n",
        JAVA[JAVA.index("    public void remove") : JAVA.index("    public int")],
        "`public void remove(Item item) {` (lines 12 to 15 in Basket)",
        "items.add(0, item)",
    ),
    "a shorter body, Ruby": LeftOut(
        "queue.rb",
        RUBY,
        "  # ... existing code ...\n  def push(job)\n    @jobs << job\n    @count += 1\n"
        "    notify\n  end\n  # ... existing code ...\n",
        '    @log.info("push #{job}")\n',
        '`@log.info("push #{job}")` (line 10 in Queue.push)',
        "@count += 1",
    ),
    "a shorter body, C": LeftOut(
        "buffer.c",
        C,
        "// ... existing code ...\nvoid buffer_free(struct buffer *b)\n{\n    free(b->data);\n"
        "    b->data = NULL;\n    b->size = 0;\n    b->capacity = 0;\n}\n"
        "// ... existing code ...\n",
        '    log_debug("free");\n',
        '`log_debug("free");` (line 6 in buffer_free)',
        "b->capacity = 0;",
    ),
    "a shorter body, Kotlin": LeftOut(
        "Cart.kt",
        KOTLIN,
        "    // ... existing code ...\n    fun clear() {\n        items.clear()\n"
        "        changed = true\n    }\n    // ... existing code ...\n",
        '        log.info("cleared")\n',
        '`log.info("cleared")` (line 13 in Cart.clear)',
        "changed = true",
    ),
    "a shorter body, shell": LeftOut(
        "release.sh",
        SHELL,
        '# ... existing code ...\nrelease() {\n  log "release"\n  make publish VERSION="$1"\n}\n',
        "  check\n",
        "`check` (line 12 in release)",
        'VERSION="$1"',
    ),
    "a key, YAML": LeftOut(
        "server.yaml",
        YAML,
        "server:\n  host: 0.0.0.0\n  port: 9090\n  retries: 5\n# ... existing code ...\n",
        "  timeout: 30\n",
        "`timeout: 30` (line 4 in server)",
        "port: 9090",
    ),
    "a key, TOML": LeftOut(
        "server.toml",
        TOML,
        "# ... existing code ...\nport = 9090\nretries = 5\n# ... existing code ...\n",
        "timeout = 30\n",
        "`timeout = 30` (line 4 in server)",
        "port = 9090",
    ),
    "a key, JSON": LeftOut(
        "package.json",
        JSON,
        '  "scripts": {\n    "build": "tsc -b",\n    "test": "vitest"\n  },\n',
        '    "lint": "eslint .",\n',
        '`"lint": "eslint .",` (line 6 in scripts)',
        "tsc -b",
    ),
    "a rule, CSS": LeftOut(
        "page.css",
        CSS,
        "/* ... */\n  color: white;\n  border: none;\n  padding: 4px;\n/* ... */\n",
        "  outline: 2px solid blue;\n",
        "`outline: 2px solid blue;` (line 4 in .button)",
        "color: white;",
    ),
}


def asked(edit: EditRequest) -> Outcome:
    """The outcome of an edit, planned from its texts alone as any replica does."""
    plan = make_plan(edit)
    outcome = try_conclude_alone(plan)
    assert outcome is not None
    return settle_doubt(plan, outcome)


def pair_of(outcome: Outcome) -> tuple[Choice, Choice] | None:
    """The choices that keep and remove what is left out, if these come first."""
    first = outcome.choices[:2]
    found = {choice.reason.split()[1]: choice for choice in first if "without a w" in choice.reason}
    return (found["keeps"], found["removes"]) if len(found) == 2 else None


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_keep_and_remove_are_the_first_two_choices(case: LeftOut) -> None:
    question = asked(case.edit)
    assert question.verdict.status == "needs_review"
    pair = pair_of(question)
    assert pair is not None, [choice.reason for choice in question.choices]
    keeps, removes = pair
    end = f"{case.where}, which the update leaves out without a word."
    assert (keeps.reason, removes.reason) == (f"It keeps {end}", f"It removes {end}")
    texts = {}
    for choice in pair:
        answer = asked(replace(case.edit, resolve=choice.id))
        assert (answer.source, answer.choices) == ("resolved", ())
        assert answer.verdict.status == "applied"
        texts[choice.id] = answer.merged
        assert case.new in answer.merged
    kept, removed = texts[keeps.id], texts[removes.id]
    assert case.lines in kept
    assert kept.replace(case.lines, "", 1) == removed
    first = case.original[: case.original.index(case.lines)].count("\n") + 1
    last = first + case.lines.rstrip("\n").count("\n")
    assert {(choice.start_line, choice.end_line) for choice in pair} == {(first, last)}
    probabilities = [choice.probability for choice in question.choices]
    assert probabilities[0] == max(probabilities)
    assert sum(probabilities) <= 1


def test_the_likelier_of_both_comes_first() -> None:
    removing, keeping = (
        asked(replace(CASES["a shorter body, Python"].edit, instruction=instruction)).choices
        for instruction in (None, "Reset the path")
    )
    assert removing[0].reason.startswith("It removes `self.flush()`")
    assert keeping[0].reason.startswith("It keeps `self.flush()`")


def test_a_half_that_no_merge_has_is_made() -> None:
    """Its probability is no more than that of the least likely merge."""
    cases = read_cases(case_file("agent_edits"))
    case = next(case for case in cases if case.id == "managed-026")
    edit = edit_of_case(case, use_model="never")
    plan, question = make_plan(edit), asked(edit)
    assert plan.merge is not None
    removes, keeps = question.choices[:2]
    assert removes.reason.replace("removes", "keeps", 1) == keeps.reason
    assert ", and 2 more places, which" in keeps.reason
    kept, removed = (asked(replace(edit, resolve=one.id)) for one in (keeps, removes))
    assert kept.lines not in plan.merge.merges
    assert keeps.probability <= math.exp(min(plan.merge.weights)) + 5e-5  # four digits are shown
    assert (kept.verdict.status, removed.merged) == ("applied", case.expected)
    guard = "        if ($coupon === null) {\n"
    assert kept.merged.count(guard) == removed.merged.count(guard) + 3


def test_lines_that_are_left_out_in_several_places_are_one_question() -> None:
    shorter = CASES["a shorter body, C"].update.removesuffix("// ... existing code ...\n")
    update = (
        shorter + "\n" + C[C.index("int buffer_write") :].replace('    log_debug("write");\n', "")
    )
    edit = make_edit(C, update, path="b.c", language=None, use_model="never")
    keeps, removes = pair_of(asked(edit)) or pytest.fail("no question")
    assert 'It keeps `log_debug("free");` (line 6 in buffer_free), and 1 more place' in keeps.reason
    kept, removed = (asked(replace(edit, resolve=one.id)).merged for one in (keeps, removes))
    assert (kept.count("log_debug("), removed.count("log_debug(")) == (2, 0)


BODY = CASES["a shorter body, Python"]
FUNCTION = CASES["a function between two others, TypeScript"]
SPOKEN_OF = {
    "an instruction removes it": (BODY, {"instruction": "Remove the flush from close"}),
    "an instruction deletes it": (FUNCTION, {"instruction": "Delete save(). Add nothing."}),
    "a comment says removed": (
        BODY,
        {"update": CLOSE.replace("        os", "        # removed\n        os")},
    ),
    "a comment names it": (
        BODY,
        {"update": CLOSE.replace("        os", "        # no flush here: dropped\n        os")},
    ),
    "a directive removes it": (
        FUNCTION,
        {"update": LOAD.replace("\nexport", "\n// remove save\n\nexport")},
    ),
    "a marker stands for it": (
        BODY,
        {"update": CLOSE.replace("        os", "        # ... existing code ...\n        os")},
    ),
    "a marker between functions stands for it": (
        FUNCTION,
        {"update": LOAD.replace("\nexport", "\n// ... existing code ...\n\nexport")},
    ),
    "it is rewritten": (
        BODY,
        {"update": CLOSE.replace("        os", "        self.flush(again=True)\n        os")},
    ),
}


@pytest.mark.parametrize(("case", "change"), SPOKEN_OF.values(), ids=list(SPOKEN_OF))
def test_lines_of_which_the_update_speaks_are_no_question(
    case: LeftOut, change: dict[str, str]
) -> None:
    for edit, is_asked in ((case.edit, True), (replace(case.edit, **change), False)):
        plan = make_plan(edit)
        assert plan.merge is not None
        found = find_omission(
            plan.merge, plan.update_lines, tree=plan.tree, instruction=edit.instruction
        )
        assert (found is not None) == is_asked
        assert (pair_of(asked(edit)) is not None) == is_asked


def test_what_the_data_settle_is_not_asked() -> None:
    update = "server:\n  host: 127.0.0.1\n  port: 8080\n  retries: 3\n# ... existing code ...\n"
    outcome = asked(make_edit(YAML, update, path="a.yaml", language=None, use_model="never"))
    assert (outcome.verdict.status, outcome.choices) == ("applied", ())
    assert "timeout" not in outcome.merged


def test_a_question_changes_nothing_but_the_choices() -> None:
    for case in CASES.values():
        plan = make_plan(case.edit)
        outcome = try_conclude_alone(plan)
        assert outcome is not None
        question = settle_doubt(plan, outcome)
        assert replace(question, choices=()) == outcome
        assert plan.merge is not None
        assert outcome.lines == plan.merge.best
