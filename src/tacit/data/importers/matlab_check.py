"""Whether the parts of a MATLAB file fit into each other.

SciPy trusts the sizes it reads; a damaged file can end the whole process instead of raising an
error. This walk over the tags, which reads no values, is made first.
"""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path

_SIZES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8, 16: 1, 17: 2, 18: 4}
_MATRIX, _COMPRESSED = 14, 15
_CELL, _STRUCT, _OBJECT, _CHAR, _SPARSE = 1, 2, 3, 4, 5
_NUMERIC = range(6, 16)
_HEADER = 128
_DEEPEST = 64
_LARGEST = 1 << 36


def check_matlab(path: Path) -> None:
    """Raise ValueError where a part is larger than what holds it, or parts are missing."""
    content = memoryview(path.read_bytes())
    if len(content) < _HEADER and bytes(content[:6]) == b"MATLAB":
        raise ValueError("its header is not whole")
    order = {b"IM": "<", b"MI": ">"}.get(bytes(content[126:128]))
    if order is None:  # version 4, which has no parts within parts
        return
    place = _HEADER
    while place < len(content):
        kind, start, stop, place = _tag(content, place, len(content), order, padded=False)
        if kind == _COMPRESSED:
            inner = memoryview(_unpacked(content[start:stop]))
            inner_kind, first, last, _ = _tag(inner, 0, len(inner), order)
            if inner_kind == _MATRIX:
                _matrix(inner, first, last, order, 0)
        elif kind == _MATRIX:
            _matrix(content, start, stop, order, 0)


def _unpacked(packed: memoryview) -> bytes:
    reader = zlib.decompressobj()
    content = reader.decompress(packed, _LARGEST)
    if not reader.eof:
        raise ValueError("a compressed part ends too early")
    return content


def _tag(
    content: memoryview, place: int, end: int, order: str, *, padded: bool = True
) -> tuple[int, int, int, int]:
    """Type, first byte, end, and where the next part begins."""
    if place + 8 > end:
        raise ValueError("a part ends within its tag")
    first, size = struct.unpack_from(f"{order}II", content, place)
    if first >> 16:  # up to four bytes of data in the tag itself
        kind, size, start, after = first & 0xFFFF, first >> 16, place + 4, place + 8
        if size > 4:
            raise ValueError("a small part claims more than four bytes")
    else:
        kind, start = first, place + 8
        after = start + size + (-size % 8 if padded else 0)
    if start + size > end:
        raise ValueError("a part is larger than what holds it")
    return kind, start, start + size, min(after, end)


def _matrix(content: memoryview, place: int, end: int, order: str, depth: int) -> None:
    if place == end:  # how an empty one is written
        return
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    kind, start, stop, place = _tag(content, place, end, order)
    if kind != 6 or stop - start != 8:
        raise ValueError("a variable has no flags")
    (flags,) = struct.unpack_from(f"{order}I", content, start)
    what = flags & 0xFF
    if what > 15:  # functions and objects of newer kinds, which SciPy skips
        return
    kind, start, stop, place = _tag(content, place, end, order)
    if kind not in (5, 6) or (stop - start) % 4 or stop - start < 8:
        raise ValueError("a variable has no dimensions")
    dimensions = struct.unpack_from(f"{order}{(stop - start) // 4}i", content, start)
    if min(dimensions) < 0 or math.prod(dimensions) > _LARGEST:
        raise ValueError(f"a variable claims the dimensions {dimensions}")
    _, _, _, place = _tag(content, place, end, order)  # its name
    count = math.prod(dimensions)
    if what == _CELL:
        _children(content, place, end, order, depth, count)
    elif what in (_STRUCT, _OBJECT):
        _structure(content, place, end, order, depth, count, what)
    elif what == _SPARSE:
        for _ in range(3):
            _, _, _, place = _tag(content, place, end, order)
    elif what == _CHAR:
        _values(content, place, end, order, (count, 0), 1)
    elif what in _NUMERIC:
        _values(content, place, end, order, (count,), 1 + bool(flags & 0x800))


def _values(
    content: memoryview, place: int, end: int, order: str, counts: tuple[int, ...], n_parts: int
) -> None:
    for _ in range(n_parts):
        kind, start, stop, place = _tag(content, place, end, order)
        size = _SIZES.get(kind)
        if size is None:
            raise ValueError(f"a variable has values of the unknown type {kind}")
        # Texts in UTF-8 may have more bytes than letters.
        if kind not in (16, 17, 18) and stop - start not in {size * count for count in counts}:
            raise ValueError("a variable has more or fewer values than its dimensions say")


def _structure(
    content: memoryview, place: int, end: int, order: str, depth: int, count: int, what: int
) -> None:
    if what == _OBJECT:
        _, _, _, place = _tag(content, place, end, order)
    _, start, stop, place = _tag(content, place, end, order)
    if stop - start != 4:
        raise ValueError("a structure does not say how long its names are")
    (length,) = struct.unpack_from(f"{order}i", content, start)
    _, start, stop, place = _tag(content, place, end, order)
    if length < 1 or (stop - start) % length:
        raise ValueError("the names of a structure are not whole")
    _children(content, place, end, order, depth, count * ((stop - start) // length))


def _children(
    content: memoryview, place: int, end: int, order: str, depth: int, count: int
) -> None:
    for _ in range(count):
        kind, start, stop, place = _tag(content, place, end, order)
        if kind != _MATRIX:
            raise ValueError("a cell or field holds no variable")
        _matrix(content, start, stop, order, depth + 1)
