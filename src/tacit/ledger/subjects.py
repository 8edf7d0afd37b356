"""When two names mean one subject."""

from __future__ import annotations

import unicodedata


def account_of(subject: str) -> str:
    """The name that counts: one budget for "Ann", " ann" and the same name in other code points.

    Compatibility forms and case are folded, runs of white space become one blank, and characters
    that cannot be seen are left out.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", subject).casefold())
    seen = "".join(c for c in folded if c.isspace() or unicodedata.category(c) not in ("Cc", "Cf"))
    return " ".join(seen.split())
