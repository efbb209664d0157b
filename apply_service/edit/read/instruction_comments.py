"""Comments that tell a reader how to apply the update ("// Add a new method to close it").

They belong to the message, not to the file, but a file may contain such a sentence too. So they
are marked as optional, and only if the sentence is in the imperative, speaks of editing code, and
does not stand in the original.
"""

from __future__ import annotations

import re

from apply_service.edit.read.markers import comment_bodies

MAX_COMMENT_LENGTH = 200

# Names for pieces of code. What also means a thing at run time (handler, state, item, value) is
# not among them: "update the state" is an ordinary comment.
_CODE = (
    r"(?:methods?|functions?|class(?:es)?|constructors?|imports?|interfaces?|structs?|enums?|"
    r"propert(?:y|ies)|attributes?|parameters?|arguments?|variables?|constants?|signatures?|"
    r"definitions?|declarations?|implementations?|decorators?|annotations?|docstrings?|code|"
    r"statements?|imports?|components?|endpoints?|sections?|logic|lines?|traits?|types?|"
    r"test(?:\s+cases?|s)?|block|module|members?|getters?|setters?|helpers?|fields?|hooks?)"
)
_ADD = r"(?:add|insert|create|define|implement|introduce|include|write|put|place|append)"
_CHANGE = (
    r"(?:modify|update|change|replace|edit|adjust|extend|refactor|rewrite|alter|rework|fix|"
    r"rename|move|convert|enhance|improve)"
)
_NEW = r"(?:new|additional|missing|following|updated|modified|another)"
_THE = r"(?:an?|the|this|these|that|your|our|some|existing|all|its)"
_ANY_CODE = r"[\w`'\"$.()<>:/-]+"
_QUOTED = r"[`'\"]?[\w$.#:-]+(?:\(\))?[`'\"]?"
_PURPOSE = (
    r"(?:$|[:,.]|(?:to|so|with|for|that|which|in|inside|into|from|here|below|above|at|after|"
    r"before|when|by|as|and|of|on|using|according)\b)"
)
_INSTRUCTION = re.compile(
    # // BEGIN REPLACE foo, // END EDIT, // START OF CHANGES
    r"(?:(?:BEGIN|END|START|STOP)(?:\s+OF)?\s+(?:REPLACE|EDIT|CHANGE|INSERT|ADD|NEW|UPDATE|MODIF|"
    r"REMOV|DELET)\w*\b.{0,80})"
    rf"|(?i:{_ADD}(?:\s+{_THE})?\s+{_NEW}(?:\s+{_ANY_CODE}){{0,3}}?\s+{_CODE}\b.*"
    rf"|{_ADD}(?:\s+{_THE})?(?:\s+{_ANY_CODE}){{0,3}}?\s+(?:method|function|class|constructor|property|"
    rf"parameter|import|interface|field|attribute|argument|constant|endpoint|decorator)s?"
    rf"\s*{_PURPOSE}.*"
    rf"|{_ADD}\s+(?:it|this|these|that|them|{_QUOTED})\s+(?:here|below|above|(?:to|in|into|after|"
    rf"before)\s+(?:the\s+)?(?:{_ANY_CODE}\s+)?{_CODE})\b.*"
    rf"|{_CHANGE}\s+{_THE}(?:\s+{_ANY_CODE}){{0,3}}?\s+(?:methods?|functions?|class|constructor|"
    rf"imports?|interface|signature|definition|declaration|implementation|decorator|docstring|"
    rf"struct|enum|component|line|lines|section|block|code|logic|schema)\s*{_PURPOSE}.*"
    rf"|{_CHANGE}\s+{_QUOTED}\s+(?:method|function|class|constructor|import|interface)s?\s*{_PURPOSE}.*"
    # // NEW: import, // Updated method, // Added
    rf"|(?:new|updated|modified|changed|added|replaced|edited)(?:\s+{_CODE})?"
    rf"(?:\s+(?:here|below|above|starts?|ends?|begins?))?\s*:?)"
)
# Above a line that the original has, a request to add something cannot describe that line.
_LOOSE = re.compile(
    r"(?i:(?:add|insert|modify|update|change|replace)\s+(?:an?|the|this|these|new)\s+.{3,160})"
)


def is_instruction(line: str, *, is_before_known_code: bool = False) -> bool:
    """True if `line` is a comment about the edit and not about the code.

    Directly above code that the original has without this comment, fewer words suffice.
    """
    stripped = line.strip()
    if len(stripped) > MAX_COMMENT_LENGTH or not is_comment(stripped):
        return False
    for body, _ in comment_bodies(stripped):
        text = body.strip(" \t-=*#/<>!.:")
        if _INSTRUCTION.fullmatch(text):
            return True
        if is_before_known_code and _LOOSE.fullmatch(text):
            return True
    return False


def is_comment(line: str) -> bool:
    """True if `line` is one comment and nothing else; docstrings are code."""
    stripped = line.strip()
    if not stripped or stripped[0].isalnum() or stripped.startswith(('"""', "'''")):
        return False
    return bool(comment_bodies(stripped))
