"""Stop texts, however the answer is cut into pieces and tokens."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from apply_service.http.compat.stop_texts import StopCutter
from apply_service.prompts.chat import ChatProfile
from apply_service.prompts.chat_template import ChatMessage
from batching.recipes import StopTexts
from batching.stop_tokens import StopTokens

LETTERS = st.text(alphabet="abä", max_size=12)
STOPS = st.lists(st.text(alphabet="abä", min_size=1, max_size=3), min_size=1, max_size=3)


def expected_text(text: str, stops: list[str]) -> str:
    """What stands before the stop that is complete first; of several the one that begins first."""
    for end in range(1, len(text) + 1):
        begins = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if begins:
            return text[: min(begins)]
    return text


@given(st.lists(LETTERS, max_size=6), STOPS)
def test_text_is_let_through_up_to_the_first_stop(pieces: list[str], stops: list[str]) -> None:
    cutter = StopCutter(stops)
    shown = ""
    for piece in pieces:
        shown += cutter.push(piece)
        assert "".join(pieces).startswith(shown)
        assert not any(stop in shown for stop in stops)
    shown += cutter.finish()
    whole = "".join(pieces)
    assert cutter.has_stopped == any(stop in whole for stop in stops)
    places = [whole.find(stop) for stop in stops if stop in whole]
    # A stop that is complete in an earlier piece ends the text, though another begins before it.
    assert shown in {whole[: min(places)], expected_text(whole, stops)} if places else [whole]


@given(st.lists(LETTERS, max_size=6), STOPS)
def test_letter_by_letter_the_stop_that_is_complete_first_counts(
    pieces: list[str], stops: list[str]
) -> None:
    whole = "".join(pieces)
    cutter = StopCutter(stops)
    shown = "".join(map(cutter.push, whole)) + cutter.finish()
    assert shown == expected_text(whole, stops)


def test_without_stops_nothing_is_held_back() -> None:
    cutter = StopCutter(())
    assert cutter.push("ab") == "ab"
    assert cutter.finish() == ""


def test_tokens_are_counted_up_to_the_end_of_a_stop(tiny_model_dir: Path) -> None:
    """The tiny model has a token for each byte, and 2 ends a turn."""
    prompt = ChatProfile.from_dir(tiny_model_dir).build_conversation([ChatMessage("user", "x")])

    def tokens_of(text: str) -> tuple[int, ...]:
        return prompt.tokenizer.encode(text)

    def checker_of(*stops: str) -> StopTokens:
        return StopTexts([stop.encode() for stop in stops]).make(prompt.tokenizer)

    for num_before in range(6):
        checker = checker_of("zz", "abcä")
        text = "x" * num_before + "abcä" + "y"
        kept = 0
        for token_id in tokens_of(text):
            kept += 1
            if checker.push([token_id]) is not None:
                break
        assert kept == num_before + 5, "ä has two bytes"
        assert checker_of("zz", "abcä").push(tokens_of(text)) == kept
    assert checker_of("<|im_end|>").push([2, 2]) is None
    assert checker_of("a").push(tokens_of("xay")) == 2
