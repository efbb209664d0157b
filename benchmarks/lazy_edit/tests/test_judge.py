"""What an answer is worth, and the figures made of it."""

import pytest
from lazy_edit_bench.figures import Share, compare, summarise
from lazy_edit_bench.judge import Answer, judge
from lazy_edit_bench.result_file import Result, hash_of, judged, read_result, write_result
from lazy_edit_bench.task import BenchError, Task

ORIGINAL = "a = 1\nb = 2\nc = 3\n"
RIGHT = "a = 1\nb = 5\nc = 3\n"


def _task(treat="apply", results=(RIGHT,), **more):
    fields = {"id": "t", "language": "python", "kind": "replace", "dialect": "diff", "path": "a.py"}
    fields |= {"instruction": "", "original": ORIGINAL, "update": "u", "treat": treat}
    return Task(**{**fields, "results": results, **more})


@pytest.mark.parametrize(
    ("task", "answer", "outcome", "after_question"),
    [
        (_task(), Answer(status="applied", text=RIGHT), "right", True),
        (_task(), Answer(status="applied", text=ORIGINAL), "silent_harmful", False),
        (_task(), Answer(status="applied", text=RIGHT + "\n"), "silent_harmless", False),
        (_task(), Answer(status="applied", text="\ufeff" + RIGHT), "silent_harmless", False),
        (
            _task(),
            Answer(status="applied", text=RIGHT.replace("b", "  b")),
            "silent_harmful",
            False,
        ),
        (_task(), Answer(status="refused"), "refused_needlessly", False),
        (_task(), Answer(status="asked", choices=(RIGHT,)), "asked_needlessly", True),
        (_task(), Answer(status="asked", choices=(ORIGINAL,)), "asked_needlessly", False),
        (_task(), Answer(status="failed"), "failed", False),
        (_task("ask"), Answer(status="asked", choices=(RIGHT,)), "asked_rightly", True),
        (_task("ask"), Answer(status="applied", text=RIGHT), "silent_harmful", False),
        (_task("ask"), Answer(status="refused"), "refused_needlessly", False),
        (_task("refuse", ()), Answer(status="refused"), "refused_rightly", True),
        (_task("refuse", ()), Answer(status="applied", text=RIGHT), "silent_harmful", False),
        (_task("refuse", ()), Answer(status="applied", text=ORIGINAL), "silent_harmless", False),
        (_task("refuse"), Answer(status="applied", text=RIGHT), "right", True),
        (
            _task(encoding="utf-8-sig"),
            Answer(status="applied", text=RIGHT),
            "silent_harmless",
            False,
        ),
    ],
)
def test_outcomes(task, answer, outcome, after_question):
    found = judge(task, answer)
    assert (found.outcome, found.after_question) == (outcome, after_question)


def test_what_was_lost_outside_the_edit_is_counted():
    found = judge(_task(), Answer(status="applied", text="b = 5\nc = 3"))
    assert found.bytes_outside == len("a = 1\n") + len("c = 3\n")
    assert not found.final_newline_kept
    crlf = judge(_task(), Answer(status="applied", text=RIGHT.replace("\n", "\r\n")))
    assert not crlf.encoding_kept


def test_wilson_intervals_are_those_of_the_textbook():
    low, high = Share(8, 10).interval
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)
    assert Share(0, 10).interval[0] == 0


def _rows(rights):
    tasks = [_task(id=str(number)) for number in range(len(rights))]
    return [
        judged(task, Answer(status="applied", text=RIGHT if right else ORIGINAL))
        for task, right in zip(tasks, rights, strict=True)
    ]


def test_a_difference_is_paired():
    one = _rows([True] * 60 + [False] * 40)
    other = _rows([True] * 50 + [False] * 50)
    found = compare(one, other)
    assert (found.points, found.one_alone, found.other_alone) == (10.0, 10, 0)
    assert 0 < found.low < 10 < found.high
    assert found.p_value == pytest.approx(2 / 2**10)
    assert found.num_tasks_needed(10) == 77
    assert compare(one, one).p_value == 1.0


def test_shares_are_of_what_was_offered():
    rows = [*_rows([True, False]), judged(_task(id="x"), Answer(status="not_offered"))]
    figures = summarise(rows)
    assert (figures.num_tasks, figures.num_offered) == (3, 2)
    assert (figures.right.count, figures.right.total) == (1, 2)


def test_a_result_file_is_judged_anew_when_it_is_read(tmp_path):
    tasks = [_task(id="1"), _task("ask", id="2"), _task(id="3")]
    answers = [
        Answer(status="applied", text=RIGHT, seconds=0.5, tokens_in=3, tokens_out=4),
        Answer(status="asked", choices=(RIGHT, "other\n")),
        Answer(status="applied", text="wrong\n", note="n"),
    ]
    rows = tuple(judged(task, answer) for task, answer in zip(tasks, answers, strict=True))
    result = Result(
        system="s",
        version="1",
        command="c",
        split="p",
        tasks_hash=hash_of(tasks),
        date="2026-01-01",
        machine="m",
        rows=rows,
    )
    path = tmp_path / "s.json"
    write_result(path, result, tasks)
    assert read_result(path, tasks) == result
    with pytest.raises(BenchError, match="other tasks"):
        read_result(path, tasks[:2])
    path.write_text("{}")
    with pytest.raises(BenchError, match="no result file"):
        read_result(path, tasks)
