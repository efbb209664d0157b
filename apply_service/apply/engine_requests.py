"""Turns a prompt into a request to the engine, with what its answer is drafted from."""

from __future__ import annotations

from apply_service.prompts.prompt import Prompt
from apply_service.prompts.tokenizer import TokenIds
from batching.recipes import EditDrafts


def drafts_of(
    prompt: Prompt, *, predicted_token_ids: TokenIds = (), rival_token_ids: TokenIds = ()
) -> EditDrafts:
    """Drafts from all text that the answer to this prompt will probably copy.

    `predicted_token_ids` is the answer that the deterministic merge expects, without its end;
    `rival_token_ids` is the second-likeliest answer.
    """
    return EditDrafts(
        original=prompt.original_token_ids,
        snippet_segments=prompt.snippet_segments,
        merge=predicted_token_ids,
        rival=rival_token_ids,
        prediction=prompt.prediction_token_ids,
        update=prompt.update_token_ids,
        white_space=prompt.tokenizer.white_space_token_ids,
        end_token_ids=prompt.end_token_ids,
    )


def default_max_tokens(prompt: Prompt) -> int:
    """Room for every line of the original and of the snippet, the end, and a little more."""
    num_snippet = sum(map(len, prompt.snippet_segments))
    num_slack = 64
    return len(prompt.original_token_ids) + num_snippet + len(prompt.end_token_ids) + num_slack
