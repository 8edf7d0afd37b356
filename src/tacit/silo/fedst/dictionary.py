"""How often a series holds a word: each owner counts at home, with public breakpoints.

A window is z-normalised and cut into pieces; each piece becomes a letter by where its mean lies
among the quartiles of the normal distribution (SAX). Windows, word length and breakpoints follow
from the length of the series alone, never from anybody's data. Repeats of a word without a break
count once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats

LETTERS = "abcd"
WORD_LENGTH = 4
N_WORDS: int = len(LETTERS) ** WORD_LENGTH
_WINDOWS = (0.1, 0.2, 0.35, 0.5)  # parts of the series
_BREAKPOINTS = [NormalDist().inv_cdf(i / len(LETTERS)) for i in range(1, len(LETTERS))]
_FLAT = 1e-3  # a window with less deviation is flat


@dataclass(frozen=True, slots=True)
class Word:
    """One word of one window length; its value is the root of how often it occurs."""

    window: int
    letters: str
    channel: int = 0

    @property
    def description(self) -> str:
        """In words, without the channel."""
        return f"word {self.letters} in windows of {self.window} steps (root of its count)"

    def limits(self, series_length: int) -> tuple[float, float]:
        """The public range of the value."""
        return 0.0, math.sqrt(series_length)


def count_words(*, series_length: int, n_channels: int = 1) -> int:
    """How many words `all_words` gives."""
    return n_channels * len(_windows(series_length)) * N_WORDS


def all_words(*, series_length: int, n_channels: int = 1) -> tuple[Word, ...]:
    """Every word of every window length in every channel; none for series too short for one."""
    spelled = ["".join(letters) for letters in product(LETTERS, repeat=WORD_LENGTH)]
    every = product(range(n_channels), _windows(series_length), spelled)
    return tuple(Word(window, letters, channel) for channel, window, letters in every)


def _windows(series_length: int) -> list[int]:
    lengths = {round(series_length * part) for part in _WINDOWS}
    return sorted(n for n in lengths if WORD_LENGTH <= n <= series_length)


def word_values(X: Floats, words: Sequence[Word]) -> Floats:
    """The value of each word (row) in each series (column) of X (n, N)."""
    counts = {window: _counts(X, window) for window in {word.window for word in words}}
    out = np.empty((len(words), len(X)))
    for row, word in enumerate(words):
        out[row] = np.sqrt(counts[word.window][:, _number(word.letters)])
    return out


def first_place(x: Floats, word: Word) -> int:
    """Where a series first holds the word, or -1."""
    (places,) = np.nonzero(_codes(x[None, :], word.window)[0] == _number(word.letters))
    return int(places[0]) if places.size else -1


def _number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * len(LETTERS) + LETTERS.index(letter)
    return number


def _counts(X: Floats, window: int) -> NDArray[np.int64]:
    codes = _codes(X, window)
    begins = np.ones(codes.shape, dtype=bool)
    begins[:, 1:] = codes[:, 1:] != codes[:, :-1]
    counts = np.zeros((len(X), N_WORDS), dtype=np.int64)
    rows, columns = np.nonzero(begins)
    np.add.at(counts, (rows, codes[rows, columns]), 1)
    return counts


def _codes(X: Floats, window: int) -> NDArray[np.int64]:
    """The number of the word at every place of every series."""
    n = X.shape[1] - window + 1
    sums, squares = _running(X), _running(X**2)
    mean = (sums[:, window:] - sums[:, :-window]) / window
    variance = (squares[:, window:] - squares[:, :-window]) / window - mean**2
    deviation = np.sqrt(np.maximum(variance, 0.0))
    codes = np.zeros(mean.shape, dtype=np.int64)
    edges = [window * i // WORD_LENGTH for i in range(WORD_LENGTH + 1)]
    for start, stop in pairwise(edges):
        piece = (sums[:, stop : stop + n] - sums[:, start : start + n]) / (stop - start)
        height = np.where(deviation < _FLAT, 0.0, (piece - mean) / np.maximum(deviation, _FLAT))
        codes = codes * len(LETTERS) + np.searchsorted(_BREAKPOINTS, height)
    return codes


def _running(X: Floats) -> Floats:
    running = np.zeros((len(X), X.shape[1] + 1))
    np.cumsum(X, axis=1, out=running[:, 1:])
    return running
