"""Work on all cores: the order of the pieces, and an error that is not lost."""

import threading

import pytest

from tacit.system.threads import on_all_cores


def test_results_come_in_the_order_of_the_pieces() -> None:
    first_may_end = threading.Event()

    def work(piece: int) -> int:
        if piece == 0:
            first_may_end.wait(timeout=1.0)
        first_may_end.set()
        return 10 * piece

    assert on_all_cores(work, range(7)) == [0, 10, 20, 30, 40, 50, 60]


def test_one_piece_starts_no_thread() -> None:
    assert on_all_cores(lambda _: threading.current_thread(), [0]) == [threading.current_thread()]
    assert on_all_cores(lambda piece: piece, []) == []


def test_an_error_in_a_piece_is_raised() -> None:
    def work(piece: int) -> int:
        if piece == 3:
            raise ValueError("the third piece")
        return piece

    with pytest.raises(ValueError, match="the third piece"):
        on_all_cores(work, range(6))
