"""Training examples: a sequence of tokens, and the choices in its answer."""

from __future__ import annotations

from dataclasses import dataclass

PRIOR_STEP = 1 / 64


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """A position of the answer at which the merge grammar allows more than one token.

    `log_prior` is the weight of the heaviest merge behind each allowed token, the logarithm of an
    odds, relative to the largest, in steps of `PRIOR_STEP`; empty if there are none.
    """

    offset: int
    allowed_token_ids: tuple[int, ...]
    log_prior: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """One training sequence: the prompt's tokens, then the answer's with its end.

    An answer may be cut off behind its last choice, what follows being forced.
    """

    case_id: str
    style: str
    prompt_token_ids: tuple[int, ...]
    answer_token_ids: tuple[int, ...]
    choices: tuple[TokenChoice, ...] = ()

    def __len__(self) -> int:
        return len(self.prompt_token_ids) + len(self.answer_token_ids)
