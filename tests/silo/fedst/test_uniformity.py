"""Every message of the protocols that carry most bytes is uniform, whatever the secrets are.

Constant secrets, of which all shares but one are zero: whatever is sent is masked by streams alone,
so that a share without a mask, or two under one stream, stand out. A sound run is called uneven
about once in 10^8 runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from replicated_parties import assert_uniform, one_share_only, together
from tacit.silo.fedst import secure_distances
from tacit.silo.fedst.transform import SELECT_ROWS
from tacit.silo.secure.kernels import SORTED_LOW_BITS
from tacit.silo.secure.replicated import Pair, Replicated

# Two runs of one length, in two channels, and a third of another length, whose cap binds.
GROUPS: dict[str, Any] = {
    "counts": (3, 4, 5),
    "lengths": (6, 6, 11),
    "channels": (0, 1, 1),
    "caps": (0, 0, 3000),
    "shifts": (3, 3, 5),
}
N_VALUES = 3 * 6 + 4 * 6 + 5 * 11
distances = partial(secure_distances.replicated_distances, **GROUPS)
low_bits = partial(SORTED_LOW_BITS.replicated, n_bits=31)


def operands_of_distances(secret: int) -> list[NDArray[Any]]:
    cube = np.full((40, 2, 30), secret)
    return [cube, cube**2, np.full(N_VALUES, secret)]


def operands_of_choice(secret: int) -> list[NDArray[Any]]:
    return [np.full((8, 12), min(secret, 1)), *(np.full((n, 90), secret) for n in (5, 7))]


def operands_of_sorting(secret: int) -> list[NDArray[Any]]:
    return [np.full((12, 32), secret)]


CASES = [
    pytest.param(distances, operands_of_distances, id="distances"),
    pytest.param(SELECT_ROWS.replicated, operands_of_choice, id="select_rows"),
    pytest.param(low_bits, operands_of_sorting, id="sorted_low_bits"),
]


@pytest.mark.parametrize("secret", [0, 2**10])
@pytest.mark.parametrize(("kernel", "operands"), CASES)
def test_every_message_is_uniform(
    monkeypatch: pytest.MonkeyPatch,
    kernel: Callable[..., Pair],
    operands: Callable[[int], list[NDArray[Any]]],
    secret: int,
) -> None:
    monkeypatch.setattr(secure_distances, "BLOCK_WINDOWS", 5000)  # several blocks of series
    _, wire, sides = together(kernel, *(one_share_only(x) for x in operands(secret)))
    assert_uniform(wire)
    assert sum(side.traffic[1] for side in sides) > 10_000  # enough to tell


@pytest.mark.parametrize(("kernel", "operands"), CASES)
def test_a_message_without_its_mask_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
    kernel: Callable[..., Pair],
    operands: Callable[[int], list[NDArray[Any]]],
) -> None:
    """The twin: products are sent as they are."""
    monkeypatch.setattr(Replicated, "mask_sum", lambda self, z: self._reshared(z))
    _, wire, _ = together(kernel, *(one_share_only(x) for x in operands(2**10)))
    with pytest.raises(AssertionError):
        assert_uniform(wire)
