"""One-time tokens: proof to the shuffler that a registered node may report in this round.

The shuffler holds one registration secret and the list of registered nodes. Each node's key is
derived from the secret and the node's name, and handed to the node when the fleet is set up. The
token of a round is a MAC under that key over run, round and the sealed bytes: it cannot be moved
to another round, another node or another report, and the shuffler takes one per node and round.

The shuffler learns who reports: it must, to refuse strangers and to count everybody once. It
learns no content. Tokens and names end at the shuffler; the analyser never sees them.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

SECRET_BYTES = 32


def new_secret() -> bytes:
    """A registration secret for the shuffler, from the operating system's generator."""
    return secrets.token_bytes(SECRET_BYTES)


def node_key(secret: bytes, *, run: str, node: str) -> bytes:
    """The key of one node: handed to it at set-up, re-derived by the shuffler when needed."""
    return _mac(secret, "node", run, node)


def make_token(key: bytes, *, run: str, round_number: int, sealed: bytes) -> str:
    """The token that goes with `sealed` in this round, in hexadecimal."""
    digest = hashlib.sha256(sealed).hexdigest()
    return _mac(key, "token", run, str(round_number), digest).hex()


def token_fits(key: bytes, token: str, *, run: str, round_number: int, sealed: bytes) -> bool:
    """Whether the token was made by the holder of `key` for exactly this report and round."""
    expected = make_token(key, run=run, round_number=round_number, sealed=sealed)
    return hmac.compare_digest(expected.encode(), token.encode())


def _mac(key: bytes, *parts: str) -> bytes:
    # Lengths before parts, so that no two lists of parts give the same text.
    text = b"".join(len(raw).to_bytes(4, "big") + raw for raw in (p.encode() for p in parts))
    return hmac.new(key, text, hashlib.sha256).digest()
