"""When two names mean one subject."""

from __future__ import annotations

import unicodedata

# What leaves no mark although its category says letter, mark or symbol: Unicode's
# Default_Ignorable_Code_Point, and the blank pattern of Braille.
_UNSEEN = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x2800, 0x3164, 0xFFA0}
_UNSEEN |= {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9)}
_UNSEEN |= {*range(0xE0000, 0xE1000)}


def account_of(subject: str) -> str:
    """The name that counts: one budget for "Ann", " ann" and the same name in other code points.

    Compatibility forms and case are folded, runs of white space become one blank, and characters
    that cannot be seen are left out. Letters of two alphabets that look alike stay two.
    """
    # What cannot be seen may keep a letter from its accent, so it goes first.
    folded = unicodedata.normalize("NFKC", _seen(subject)).casefold()
    return " ".join(_seen(unicodedata.normalize("NFKC", folded)).split())


def _seen(text: str) -> str:
    return "".join(
        c
        for c in text
        if c.isspace() or not (unicodedata.category(c) in ("Cc", "Cf") or ord(c) in _UNSEEN)
    )
