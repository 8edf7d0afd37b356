"""A party's folder: keys, certificates and `party.toml`."""

from __future__ import annotations

import ssl
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.errors import TacitError
from tacit.silo.party.folder import Limits, read_folder, split_address, write_folders
from tacit.silo.plan import Terms
from tacit.system.certificates import check_private, fingerprint, mutual_tls, self_signed

TERMS = Terms(
    program="fedst",
    parties=("north", "south", "west"),
    protocol="ABY3",
    params={"k": 3, "lengths": [3, 9], "name": 'quote " and \\', "rate": 0.25, "on": True},
)
ADDRESSES = [f"127.0.0.1:{9000 + i}" for i in range(3)]


@pytest.fixture
def configs(tmp_path: Path) -> dict[str, Path]:
    return write_folders(tmp_path / "f", TERMS, addresses=ADDRESSES, limits=Limits())


def test_a_folder_reads_back_as_it_was_agreed(configs: dict[str, Path]) -> None:
    config = read_folder(configs["south"])
    assert config.terms == TERMS
    assert config.rank == 1
    assert [p.address for p in config.peers] == ADDRESSES


def test_the_file_says_where_data_go_and_that_the_plan_is_common(configs: dict[str, Path]) -> None:
    comment = [x for x in configs["south"].read_text().splitlines() if x.startswith("#")]
    said = " ".join(comment)
    for words in ("--data mine.npz", 'data = "mine.npz"', "the same at every party", "`out`"):
        assert words in said


def test_data_named_in_the_file_lie_beside_it(configs: dict[str, Path]) -> None:
    path = configs["south"]
    assert read_folder(path).data is None
    named = '\ndata = "mine.npz"\n\n[limits]\n'
    path.write_text(path.read_text().replace("\n[limits]\n", named))
    assert read_folder(path).data == path.parent.resolve() / "mine.npz"


def test_no_folder_holds_the_key_of_another_party(configs: dict[str, Path]) -> None:
    keys = {name: (path.parent / "party.key").read_bytes() for name, path in configs.items()}
    assert len(set(keys.values())) == 3
    for name, path in configs.items():
        foreign = [key for other, key in keys.items() if other != name]
        for file in path.parent.rglob("*"):
            if file.is_file():
                assert all(key not in file.read_bytes() for key in foreign)


def test_keys_can_be_read_by_their_owner_only(configs: dict[str, Path]) -> None:
    key = configs["north"].parent / "party.key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o640)
    with pytest.raises(TacitError, match="chmod 600"):
        check_private(key)


def test_a_plan_edited_by_one_party_is_noticed(configs: dict[str, Path]) -> None:
    path = configs["west"]
    path.write_text(path.read_text().replace("k = 3", "k = 4"))
    with pytest.raises(TacitError, match="fingerprint"):
        read_folder(path)


def test_an_existing_federation_is_not_overwritten(configs: dict[str, Path]) -> None:
    with pytest.raises(TacitError, match="not empty"):
        write_folders(configs["north"].parent.parent, TERMS, addresses=ADDRESSES, limits=Limits())


def test_a_certificate_cannot_sign_another(configs: dict[str, Path]) -> None:
    from cryptography import x509

    loaded = x509.load_pem_x509_certificate((configs["north"].parent / "party.crt").read_bytes())
    assert not loaded.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def _handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> str:
    """A TLS handshake in memory; the fingerprint that the server sees."""
    import hashlib

    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    left = client.wrap_bio(to_client, to_server)
    right = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (left, right):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    return hashlib.sha256(right.getpeercert(binary_form=True) or b"").hexdigest()


def _context(folder: Path, *, server: bool) -> ssl.SSLContext:
    config = read_folder(folder / "party.toml")
    return mutual_tls(
        server=server,
        key=config.key,
        certificate=config.certificate,
        trusted=config.trusted,
    )


def test_parties_recognise_each_other(configs: dict[str, Path]) -> None:
    north, south = configs["north"].parent, configs["south"].parent
    seen = _handshake(_context(north, server=False), _context(south, server=True))
    assert seen == fingerprint(north / "party.crt")


def test_a_stranger_is_refused_by_both_sides(configs: dict[str, Path], tmp_path: Path) -> None:
    strangers = write_folders(tmp_path / "g", TERMS, addresses=ADDRESSES, limits=Limits())
    home, foreign = configs["north"].parent, strangers["south"].parent
    with pytest.raises(ssl.SSLError):
        _handshake(_context(foreign, server=False), _context(home, server=True))
    with pytest.raises(ssl.SSLError):
        _handshake(_context(home, server=False), _context(foreign, server=True))


def test_a_client_without_a_certificate_is_refused(configs: dict[str, Path]) -> None:
    naked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    naked.check_hostname = False
    naked.verify_mode = ssl.CERT_NONE
    with pytest.raises(ssl.SSLError):
        _handshake(naked, _context(configs["north"].parent, server=True))


@pytest.mark.parametrize("address", ["", "host", "host:", "host:0", "host:70000", ":9000", "h:x"])
def test_bad_addresses_are_refused(address: str) -> None:
    with pytest.raises(TacitError, match="host:port"):
        split_address(address)


def test_addresses_of_both_kinds_are_read() -> None:
    assert split_address("north.example:9100") == ("north.example", 9100)
    assert split_address("[::1]:9100") == ("::1", 9100)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_limits_must_be_times(value: float) -> None:
    with pytest.raises(TacitError, match="join_seconds"):
        replace(Limits(), join_seconds=value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "south"\nkey', 'name = "east"\nkey', "not among"),
        ("peers = [", "piers = [", "lacks or misuses"),
        ("[limits]", "[limits", "not valid TOML"),
        (
            'certificate = "peers/north.crt"',
            'certificate = "peers/none.crt"',
            "cannot read the certificate",
        ),
    ],
)
def test_broken_configurations_are_refused(
    configs: dict[str, Path], old: str, new: str, words: str
) -> None:
    path = configs["south"]
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(TacitError, match=words):
        read_folder(path)


def test_a_certificate_that_the_others_do_not_have_is_noticed_at_home(
    configs: dict[str, Path],
) -> None:
    home = configs["south"].parent
    new = self_signed("south", both_sides=True)
    new.write(key=home / "party.key", certificate=home / "party.crt")
    with pytest.raises(TacitError, match="in both places"):
        read_folder(configs["south"])
