"""`bench accuracy --against` a real server of our own."""

from __future__ import annotations

from pathlib import Path

import msgspec
from case_files import case_file
from oracle_service import OracleService
from server_thread import serving

from apply_service.edit.text.text_file import split_lines
from apply_service.evaluate.cases.case_file import read_cases
from apply_service.evaluate.contenders.endpoint import Endpoint
from apply_service.evaluate.contenders.remote import RemoteContender, detect_api, split_url

CASES = list(read_cases(case_file("short_edits")))


def test_a_server_of_our_own_is_recognised_and_answers(tiny_model_dir: Path) -> None:
    oracle = OracleService(tiny_model_dir)
    with serving(oracle.service) as url:
        base_url, api = split_url(url)
        endpoint = Endpoint(base_url, api_key=None, timeout_s=20.0)
        contender = RemoteContender(endpoint, api or detect_api(endpoint))
        assert contender.name.endswith("(apply)")
        for case in CASES[:3]:
            oracle.will_answer(split_lines(case.expected)[0])
            answer = contender.answer(case)
            assert (answer.status, answer.text) == ("applied", case.expected)
            assert answer.num_target_passes
        block = "<<<<<<< SEARCH\nnothing of the file\n=======\nx = 2\n>>>>>>> REPLACE\n"
        impossible = msgspec.structs.replace(CASES[0], update=block)
        assert contender.answer(impossible).status == "rejected"
