"""The FastApply profile: the template's exact words, tokenised as the model's own chat does it."""

from __future__ import annotations

from pathlib import Path

import pytest

from apply_service.prompts.profile import AnswerFormatError, PromptRequest, load_profile

EXPECTED = """\
<|im_start|>system
You are an coding assistant that helps merge code updates, ensuring every modification is fully \
integrated.<|im_end|>
<|im_start|>user
Merge all changes from the <update> snippet into the <code> below.
- Preserve the code's structure, order, comments, and indentation exactly.
- Output only the updated code, enclosed within <updated-code> and </updated-code> tags.
- Do not include any additional text, explanations, placeholders, ellipses, or code fences.

<code>a
b</code>

<update>c
d</update>

Provide the complete updated code.<|im_end|>
<|im_start|>assistant
"""


def test_prompt_is_the_template(model_dir: Path) -> None:
    prompt = load_profile("fastapply", model_dir).build(PromptRequest(["a", "b"], ["c", "d"], []))
    assert prompt.tokenizer.decode_bytes(prompt.token_ids).decode() == EXPECTED
    assert prompt.token_ids == prompt.tokenizer.encode_template(EXPECTED)


def test_the_update_is_a_whole_answer_markers_and_all(model_dir: Path) -> None:
    update = ["c", "# ... existing code ...", "d"]
    prompt = load_profile("fastapply", model_dir).build(
        PromptRequest(["a"], update, [["c"], ["d"]])
    )
    answer = (*prompt.update_token_ids, *prompt.end_token_ids)
    assert prompt.parse_answer(answer) == update


def test_whitespace_around_the_tags_is_tolerated(model_dir: Path) -> None:
    prompt = load_profile("fastapply", model_dir).build(PromptRequest(["a"], [], []))
    encode = prompt.tokenizer.encode
    text = "\n <updated-code>  a\n\n</updated-code>\n"
    assert prompt.parse_answer((*encode(text), 2)) == ["  a", "", ""]
    decoder = prompt.stream_decoder()
    shown = "".join(decoder.push([token_id]) for token_id in encode(text))
    assert shown + decoder.finish() == "  a\n\n"
    with pytest.raises(AnswerFormatError, match="Sure"):
        prompt.parse_answer(encode("Sure: <updated-code>a</updated-code>"))
