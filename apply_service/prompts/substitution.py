"""Stand-ins for characters that a vocabulary cannot write.

A byte-level vocabulary may lack the symbols of some bytes; the tokenizer then drops them silently.
Such characters go through the model as private-use code points that occur nowhere in the
request, and are replaced by themselves in the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from apply_service.prompts.errors import TextNotEncodableError

_PRIVATE_USE = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))
MAX_SUBSTITUTES = sum(len(code_points) for code_points in _PRIVATE_USE)


@dataclass(frozen=True, slots=True)
class Substitution:
    """A reversible map of single characters; `outward` undoes `inward` exactly."""

    inward: dict[int, int] = field(default_factory=dict)
    outward: dict[int, int] = field(default_factory=dict)

    @classmethod
    def for_texts(
        cls, texts: Sequence[Iterable[str]], missing_bytes: frozenset[int]
    ) -> Substitution:
        """Map every character of `texts` whose UTF-8 form needs a byte of `missing_bytes`.

        Characters of an earlier text get their stand-ins first, so that the map of a file does
        not depend on the update that follows it. Raises `TextNotEncodableError`.
        """
        if not missing_bytes:
            return cls()
        alphabets = [set().union(*(set(line) for line in lines)) for lines in texts]
        taken = set().union(*alphabets)
        missing = dict.fromkeys(
            character
            for alphabet in alphabets
            for character in sorted(alphabet)
            if not missing_bytes.isdisjoint(_utf8(character))
        )
        if not missing:
            return cls()
        free = (
            code_point
            for code_points in _PRIVATE_USE
            for code_point in code_points
            if chr(code_point) not in taken and missing_bytes.isdisjoint(_utf8(chr(code_point)))
        )
        inward = {
            ord(character): stand_in for character, stand_in in zip(missing, free, strict=False)
        }
        if len(inward) < len(missing):
            raise TextNotEncodableError(
                f"{len(missing)} different characters are missing from the model's vocabulary and"
                f" only {len(inward)} of at most {MAX_SUBSTITUTES} stand-ins are free;"
                " send a smaller part of the file or use another model"
            )
        return cls(inward, {stand_in: code_point for code_point, stand_in in inward.items()})

    def apply(self, lines: Sequence[str]) -> Sequence[str]:
        """Turn the caller's lines into those for the model."""
        return [line.translate(self.inward) for line in lines] if self.inward else lines

    def restore(self, text: str) -> str:
        """Turn the model's text into that for the caller."""
        return text.translate(self.outward) if self.outward else text


def _utf8(character: str) -> bytes:
    try:
        return character.encode()
    except UnicodeEncodeError:
        raise TextNotEncodableError(
            f"U+{ord(character):04X} is a lone surrogate, not text; send the bytes instead"
        ) from None
