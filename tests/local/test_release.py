"""Files of releases: one, a list or lines, merged when they belong together."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.local import load_release, load_releases
from tacit.local.release import Release, local_guarantee, release_from_plain


def release(*symbols: int, model: str = "m", epsilon: float = 1.0) -> Release:
    guarantee = local_guarantee(epsilon, assumptions=("noise is secret",))
    return Release(kind="label", values=np.array(symbols), model=model, guarantee=guarantee)


def lines(path: Path, *releases: Release) -> Path:
    path.write_text("".join(json.dumps(one.to_dict()) + "\n" for one in releases))
    return path


def listed(path: Path, *releases: Release) -> Path:
    path.write_text(json.dumps([one.to_dict() for one in releases], indent=1))
    return path


def refusal(*paths: Path) -> str:
    with pytest.raises(TacitError) as caught:
        load_releases(*paths)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_one_release_a_list_and_lines_are_read(tmp_path: Path) -> None:
    release(1, 0, 2).save(tmp_path / "one.json")
    pretty = tmp_path / "pretty.json"
    pretty.write_text(json.dumps(release(2, 2).to_dict(), indent=2))
    many = listed(tmp_path / "many.json", release(0), release(1, 1))
    stream = lines(tmp_path / "stream.jsonl", release(2), release(0, 1))
    single = lines(tmp_path / "single.jsonl", release(1))
    for path, expected in (
        (tmp_path / "one.json", [1, 0, 2]),
        (pretty, [2, 2]),
        (many, [0, 1, 1]),
        (stream, [2, 0, 1]),
        (single, [1]),
    ):
        assert load_releases(path).values.tolist() == expected
    merged = load_releases(stream, tmp_path / "one.json", many)
    assert merged.values.tolist() == [2, 0, 1, 1, 0, 2, 0, 1, 1]
    assert merged.values.dtype == np.intp
    assert merged.to_dict() == {**release().to_dict(), "values": merged.values.tolist(), "id": ""}
    one = load_release(tmp_path / "one.json")
    assert one.to_dict() == {**release(1, 0, 2).to_dict(), "id": one.id}


def test_empty_lines_and_a_missing_last_newline_do_not_matter(tmp_path: Path) -> None:
    first, second = (json.dumps(release(1).to_dict()) for _ in range(2))
    (tmp_path / "r").write_text(f"\n{first}\n\n  \n{second}")
    assert load_releases(tmp_path / "r").values.tolist() == [1, 1]


def test_vectors_merge_by_rows(tmp_path: Path) -> None:
    guarantee = local_guarantee(1.0, assumptions=())
    parts = [
        Release(kind="vector", values=np.full((n, 2), n / 3), model="m", guarantee=guarantee)
        for n in (1, 2)
    ]
    merged = load_releases(lines(tmp_path / "v", *parts))
    assert np.array_equal(merged.values, np.concatenate([part.values for part in parts]))
    wider = Release(kind="vector", values=np.ones((1, 3)), model="m", guarantee=guarantee)
    message = refusal(lines(tmp_path / "w", *parts, wider))
    assert f"{tmp_path / 'w'}, line 3 has rows of shape (3,)" in message


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"model": "n"}, ("'label' releases of model n", "of model m")),
        ({"kind": "vector", "values": [[1.0]]}, ("'vector' releases of model m",)),
        ({"guarantee": {"epsilon": 0.5}}, ("epsilon 0.5", "epsilon 1.0")),
        ({"guarantee": {"unit": "person"}}, ("per person", "per series")),
        ({"guarantee": {"assumptions": []}}, ("differ in their assumptions",)),
    ],
    ids=str,
)
def test_what_does_not_belong_together_is_refused_by_file_and_line(
    tmp_path: Path, other: dict[str, Any], words: tuple[str, ...]
) -> None:
    plain = release(0).to_dict()
    changed = {**plain, **other}
    changed["guarantee"] = {**plain["guarantee"], **other.get("guarantee", {})}
    stream, second = tmp_path / "stream.jsonl", tmp_path / "second.json"
    stream.write_text(f"{json.dumps(plain)}\n\n{json.dumps(changed)}\n")
    second.write_text(json.dumps([changed]))
    first = lines(tmp_path / "first.jsonl", release(0), release(1))
    for message, where in (
        (refusal(stream), f"{stream}, line 3"),
        (refusal(first, second), f"{second}, item 1"),
    ):
        for word in (where, *words):
            assert word in message


def test_damaged_files_are_refused_by_line(tmp_path: Path) -> None:
    whole = json.dumps(release(1).to_dict())
    for text, words in (
        (f"{whole}\n{whole[:-9]}", ("line 2 is not JSON",)),
        (f"{whole}\n[]\n", ("line 2 must be one object",)),
        (
            f"{whole}\n{json.dumps({**json.loads(whole), 'values': [0.5]})}",
            ("line 2 holds values",),
        ),
        (f"[{whole}, 3]", ("item 2 must be one object",)),
        ("", ("not JSON",)),
        ("[]", ("no release",)),
        ("hello\nworld\n", ("not JSON",)),
        (whole[:-9], ("not JSON",)),
        ("3", ("must be one object",)),
    ):
        (tmp_path / "file").write_text(text)
        message = refusal(tmp_path / "file")
        assert all(word in message for word in words), message
    (tmp_path / "file").write_bytes(b"\xff\xfe\x00")
    assert "not JSON" in refusal(tmp_path / "file")
    assert "cannot read" in refusal(tmp_path / "nothing")
    assert "no release" in refusal()


def test_a_file_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    one = lines(tmp_path / "one", release(1))
    (tmp_path / "link").symlink_to(one)
    assert "named twice" in refusal(one, one)
    assert "named twice" in refusal(one, tmp_path / "link")


def test_lines_of_many_devices_are_read_quickly(tmp_path: Path) -> None:
    """At least 10,000 lines a second of processor time."""
    plain = release(1).to_dict()
    text = (json.dumps({**plain, "id": f"{number:032x}"}) for number in range(20_000))
    (tmp_path / "many").write_text("\n".join(text))
    start = time.process_time()
    assert len(load_releases(tmp_path / "many")) == 20_000
    assert time.process_time() - start < 2.0


def test_a_release_has_an_id_of_its_own_that_its_file_keeps(tmp_path: Path) -> None:
    one, two = release(0), release(0)
    assert one.id != two.id
    one.save(tmp_path / "one.json")
    assert load_release(tmp_path / "one.json").id == one.id
    plain = one.to_dict()
    del plain["id"]
    assert release_from_plain(plain).id == "", "files of earlier versions"
    with pytest.raises(TacitError, match="id that no release has"):
        release_from_plain({**plain, "id": "a b"})


def test_a_copy_of_a_release_is_refused(tmp_path: Path) -> None:
    one, two = release(1, 0), release(1, 0)
    first = lines(tmp_path / "first", one, two)
    assert len(load_releases(first)) == 4
    again = lines(tmp_path / "again", release(2), one)
    assert f"{again}, line 2 is a copy of {first}, line 1" in refusal(first, again)
    assert "line 3 is a copy of" in refusal(lines(tmp_path / "twice", one, two, one))
    old = {**one.to_dict(), "id": ""}
    (tmp_path / "old").write_text(json.dumps([old, old]))
    assert len(load_releases(tmp_path / "old")) == 4  # files of earlier versions have no id
