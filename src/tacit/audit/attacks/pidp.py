"""FedST's Pi_DP hands P0's shapelet to the participant: recover it from one run, exactly.

The protocol (FedST, Algorithm 3) over Z_q, q = 2**61 - 1. P0 holds a shapelet x of length L and
sends U = Q X, c and g, where row r of X is x' = (x, 1) and the rest of X, Q, f, R1, R2, R3 are
random. The participant adds up what it got:

    u = sum_j U_j - c = b x' - (R2/R3) g,          b = sum_j Q_{j,r}.

So x' lies in span(u, g), and it also lies in the row space of U. For d <= L one vector h with
U h = 0 tells where the two meet: t = -<h, u>/<h, g>, and x' is u + t g divided by its last entry.
For d > L the row space is everything, but every entry of x is then an affine function of any one
entry with known coefficients: guess that one, a 16-bit fixed-point number, and keep the guess
that makes all others 16-bit numbers too. The paper's proof (Theorem 5) assumes that the entries
of U are independent; their rank is at most d.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.audit.attacks.result import AttackResult, SoundCheck
from tacit.data import load_dataset
from tacit.errors import check_at_least
from tacit.guarantee import MpcGuarantee, Unprotected
from tacit.noise import SYSTEM_NOISE, NoiseSource, uniform_below
from tacit.system.progress import Progress, silent

Q = 2**61 - 1
FRACTION_BITS = 12
ENTRY_BITS = 16
_LIMIT: int = 2 ** (ENTRY_BITS - 1)

PUBLISHED = Unprotected(
    reason="Pi_DP sends the participant a line that holds the shapelet; linear algebra finds it"
)
SHARED = MpcGuarantee(
    n_parties=3,
    max_corrupt=1,
    adversary="passive",
    protocol="replicated secret sharing",
    opened=(),
    unit="the shapelet",
    assumptions=("the three parties do not pool their shares",),
    not_covered=("the length of the shapelet, and timing",),
)

Vector = list[int]
Matrix = list[Vector]


@dataclass(frozen=True, slots=True)
class Message:
    """All that the participant receives from P0: U (d rows of L + 1), c and g."""

    U: Matrix
    c: Vector
    g: Vector


@dataclass(frozen=True, slots=True)
class Secrets:
    """What P0 keeps: b, R2 and R3."""

    b: int
    r2: int
    r3: int


def to_fixed_point(values: NDArray[np.float64]) -> Vector:
    """Signed 16-bit fixed-point numbers as residues of q (Algorithm 3, line 1)."""
    scaled = np.clip(np.rint(values * 2**FRACTION_BITS), -_LIMIT, _LIMIT - 1)
    return [int(v) % Q for v in scaled]


def first_message(x: Vector, *, d: int, source: NoiseSource) -> tuple[Message, Secrets]:
    """P0's side (Algorithm 3, line 2); the row r of the shapelet is the first."""
    width = len(x) + 1
    X = [[*x, 1], *_random_matrix(d - 1, width, source)]
    mask = _random_matrix(d, d, source)
    f = _random_matrix(1, width, source)[0]
    r1, r2, r3 = (1 + int(v) for v in uniform_below(Q - 1, (3,), source=source))
    column_sums = [sum(row[i] for row in mask) % Q for i in range(d)]
    U = [[sum(m * v for m, v in zip(row, col, strict=True)) % Q for col in zip(*X, strict=True)]
         for row in mask]  # fmt: skip
    c = [
        (sum(column_sums[i] * X[i][j] for i in range(1, d)) + r1 * r2 * f[j]) % Q
        for j in range(width)
    ]
    g = [r1 * r3 * v % Q for v in f]
    return Message(U, c, g), Secrets(column_sums[0], r2, r3)


def dot_product(message: Message, secrets: Secrets, y: Vector, *, source: NoiseSource) -> int:
    """The rest of the protocol (lines 3 and 4), to show that it computes what it should."""
    alpha = int(uniform_below(Q, (1,), source=source)[0])
    extended = [*y, alpha]
    a = sum(
        (sum(column) - c) * v
        for column, c, v in zip(zip(*message.U, strict=True), message.c, extended, strict=True)
    )
    h = sum(g * v for g, v in zip(message.g, extended, strict=True))
    beta = (a + h * secrets.r2 * pow(secrets.r3, -1, Q)) * pow(secrets.b, -1, Q)
    z: int = (beta - alpha) % Q
    return z


def recover_shapelet(message: Message) -> Vector | None:
    """The participant's attack: x exactly, or None if nothing fits."""
    u = [
        (sum(column) - c) % Q
        for column, c in zip(zip(*message.U, strict=True), message.c, strict=True)
    ]
    h = _null_vector(message.U)
    return _meet(u, message.g, h) if h is not None else _guess_one_entry(u, message.g)


def _meet(u: Vector, g: Vector, h: Vector) -> Vector | None:
    """Where span(u, g) meets the row space that `h` annihilates, scaled to a last entry of 1."""
    denominator = _dot(h, g)
    if denominator == 0:
        return None
    t = -_dot(h, u) * pow(denominator, -1, Q) % Q
    line = [(a + t * b) % Q for a, b in zip(u, g, strict=True)]
    if line[-1] == 0:
        return None
    scale = pow(line[-1], -1, Q)
    return [v * scale % Q for v in line[:-1]]


def _guess_one_entry(u: Vector, g: Vector) -> Vector | None:
    """Every entry is alpha_k + beta_k x_0: step through x_0 until all entries are small.

    A wrong guess passes for all of L entries with probability about 2**(-45 (L - 1)).
    """
    determinant = (u[-1] * g[0] - u[0] * g[-1]) % Q
    if determinant == 0:
        return None
    scale = pow(determinant, -1, Q)
    alpha = [(a * g[0] - b * u[0]) * scale % Q for a, b in zip(u[:-1], g[:-1], strict=True)]
    beta = [(b * u[-1] - a * g[-1]) * scale % Q for a, b in zip(u[:-1], g[:-1], strict=True)]
    step, value = beta[1], (alpha[1] - _LIMIT * beta[1]) % Q
    for guess in range(-_LIMIT, _LIMIT):
        if _is_small(value):
            x = [(a + b * guess) % Q for a, b in zip(alpha, beta, strict=True)]
            if all(map(_is_small, x)):
                return x
        value = (value + step) % Q
    return None


def replicated_shares(values: Vector, *, source: NoiseSource) -> tuple[Vector, Vector, Vector]:
    """Split into three vectors that add up to `values`; party i would hold the i-th and next."""
    first, second = _random_matrix(2, len(values), source)
    third = [(v - a - b) % Q for v, a, b in zip(values, first, second, strict=True)]
    return first, second, third


def share_view(x: Vector, *, rows: int, party: int, source: NoiseSource) -> Message:
    """What one party sees of x' shared over and over, dressed as a message for the same solver.

    Any two of the three shares are uniform and independent of x: there is nothing to solve.
    """
    vectors: Matrix = []
    while len(vectors) < rows + 2:
        shares = replicated_shares([*x, 1], source=source)
        vectors += [shares[party], shares[(party + 1) % 3]]
    return Message(vectors[:rows], vectors[rows], vectors[rows + 1])


def attack_pidp(
    *,
    data: str = "GunPoint",
    length: int = 60,
    runs: int = 3,
    seed: int = 0,
    source: NoiseSource = SYSTEM_NOISE,
    progress: Progress = silent,
) -> AttackResult:
    """Run Pi_DP on shapelets of a data set for several d, recover them, and try shares too."""
    check_at_least(length, 3, name="length")
    check_at_least(runs, 1, name="runs")
    started = time.perf_counter()
    series = load_dataset(data).X_train[:, 0]
    dimensions = [2, 3, length // 2, length, length + 1, length + 5]
    rows, total = [], len(dimensions) * runs
    hits = leaks = done = 0
    example: dict[str, list[float]] = {}
    for d in dimensions:
        shapelets = _shapelets(series, length, runs, seed + d)
        tick = time.perf_counter()
        exact = 0
        for run, x in enumerate(shapelets):
            message, _ = first_message(x, d=d, source=source)
            found = recover_shapelet(message)
            exact += found == x
            view = share_view(x, rows=d, party=run % 3, source=source)
            leaks += recover_shapelet(view) == x
            done += 1
            example = {"secret": _to_floats(x), "recovered": _to_floats(found or [])}
            progress(done, total, f"d = {d}")
        rows.append({"d": d, "recovered": exact, "runs": runs,
                     "how": "linear algebra" if d <= length else "guess one entry",
                     "seconds": time.perf_counter() - tick})  # fmt: skip
        hits += exact
    n = runs * len(dimensions)
    chance = 2.0 ** (-ENTRY_BITS * length)
    return AttackResult(
        attack="pidp",
        succeeded=hits == n,
        rate=hits / n,
        chance=chance,
        seconds=time.perf_counter() - started,
        guarantee=PUBLISHED,
        sound=SoundCheck.of(
            hits=leaks,
            runs=n,
            bound=chance,
            what="one party's replicated shares of the shapelet",
            guarantee=SHARED,
        ),
        details={
            "data": data,
            "length": length,
            "q": "2**61 - 1",
            "by_dimension": rows,
            "example": example,
        },
    )


def _shapelets(X: NDArray[np.float64], length: int, count: int, seed: int) -> list[Vector]:
    """Pieces of random series, z-scored; a shorter series is repeated."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        row = X[rng.integers(len(X))]
        start = int(rng.integers(max(1, row.size - length + 1)))
        piece = row[start : start + length]
        scaled = (piece - piece.mean()) / (piece.std() or 1.0)
        found.append(to_fixed_point(np.resize(scaled, length)))
    return found


def _to_floats(values: Vector) -> list[float]:
    return [(v if v < Q // 2 else v - Q) / 2**FRACTION_BITS for v in values]


def _random_matrix(rows: int, columns: int, source: NoiseSource) -> Matrix:
    drawn: Matrix = uniform_below(Q, (rows, columns), source=source).tolist()
    return drawn


def _null_vector(matrix: Matrix) -> Vector | None:
    """Some h != 0 with matrix h = 0 over Z_q, by Gauss-Jordan elimination; None if there is none.

    Of several it returns a random-looking one: the free entries are 1, 2, 3, ...
    """
    rows = [row[:] for row in matrix]
    width = len(rows[0])
    pivots: list[int] = []
    for column in range(width):
        k = len(pivots)
        pivot = next((i for i in range(k, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[k], rows[pivot] = rows[pivot], rows[k]
        scale = pow(rows[k][column], -1, Q)
        rows[k] = [v * scale % Q for v in rows[k]]
        for i, row in enumerate(rows):
            if i != k and row[column]:
                factor = row[column]
                rows[i] = [(v - factor * p) % Q for v, p in zip(row, rows[k], strict=True)]
        pivots.append(column)
        if len(pivots) == len(rows):
            break
    free = [column for column in range(width) if column not in pivots]
    if not free:
        return None
    h = [0] * width
    for position, column in enumerate(free):
        h[column] = position + 1
    for row, column in zip(rows, pivots, strict=False):
        h[column] = -sum(row[j] * h[j] for j in free) % Q
    return h


def _dot(a: Vector, b: Vector) -> int:
    return sum(v * w for v, w in zip(a, b, strict=True)) % Q


def _is_small(value: int) -> bool:
    return value < _LIMIT or value >= Q - _LIMIT
