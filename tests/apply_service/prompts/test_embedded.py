"""The embedded profile: the exact prompt, and lines that have the same ids everywhere."""

from __future__ import annotations

from pathlib import Path

from apply_service.prompts.profile import PromptRequest, load_profile
from apply_service.prompts.tokenizer import PromptTokenizer

ORIGINAL = ["def f():", "    return 1", ""]
UPDATE = ["def f():", "    return 2"]


def text_of(tokenizer: PromptTokenizer, token_ids: tuple[int, ...]) -> str:
    return tokenizer.decode_bytes(token_ids).decode()


def test_prompt_text_is_exact(model_dir: Path, tokenizer: PromptTokenizer) -> None:
    prompt = load_profile("embedded", model_dir).build(PromptRequest(ORIGINAL, UPDATE, [UPDATE]))
    assert text_of(tokenizer, prompt.token_ids) == (
        "<|im_start|>user\n<code>\ndef f():\n    return 1\n\n</code>\n<update>\ndef f():\n"
        "    return 2\n</update><|im_end|>\n<|im_start|>assistant\n<updated-code>"
    )
    assert text_of(tokenizer, prompt.end_token_ids) == "\n</updated-code><|im_end|>"
    assert prompt.stop_token_ids == {0, 2}


def test_instruction_stands_between_file_and_update(
    model_dir: Path, tokenizer: PromptTokenizer
) -> None:
    profile = load_profile("embedded", model_dir)
    prompt = profile.build(PromptRequest(["a"], ["b"], [], "c\nd"))
    assert "\na\n</code>\n<instruction>\nc\nd\n</instruction>\n<update>\nb\n</update>" in text_of(
        tokenizer, prompt.token_ids
    )


def test_lines_have_the_same_ids_everywhere(model_dir: Path, tokenizer: PromptTokenizer) -> None:
    prompt = load_profile("embedded", model_dir).build(PromptRequest(ORIGINAL, UPDATE, [UPDATE]))
    lines = tokenizer.encode_lines([*ORIGINAL, *UPDATE])
    assert lines[0] == lines[3]
    assert prompt.original_token_ids == sum(lines[:3], ())
    assert prompt.snippet_segments == (sum(lines[3:], ()),)
    assert prompt.update_token_ids == sum(lines[3:], ())
    assert prompt.answer_token_ids(UPDATE + ORIGINAL) == sum([*lines[3:], *lines[:3]], ())


def test_no_lines_and_an_empty_line_are_told_apart(model_dir: Path) -> None:
    profile = load_profile("embedded", model_dir)
    for lines in ([], [""], ["", ""]):
        prompt = profile.build(PromptRequest(lines, [], []))
        assert prompt.parse_answer(prompt.original_token_ids + prompt.end_token_ids) == lines
