"""Keys and pseudonyms without dbt: published vectors, the encoding of tuples, and every way a key can be wrong."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import stat
from pathlib import Path

import pyarrow as pa
import pytest
from dbt_veil.guard import ArgumentError, constant, sealed
from dbt_veil.keys import (
    Key,
    Keyring,
    KeyringError,
    hkdf_sha256,
    keyring_from_config,
    new_keyring,
    parse_keyring,
    read_keyring,
    write_keyring,
)
from dbt_veil.pseudonym import (
    Options,
    PseudonymError,
    Pseudonyms,
    Signer,
    hmac_sha256,
    message,
    normalized,
    parse_options,
)

# RFC 4231, sections 4.2 to 4.8: key, data, HMAC-SHA-256 (case 5 is cut to 128 bits there).
RFC_4231 = [
    (b"\x0b" * 20, b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
    (b"Jefe", b"what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    (b"\xaa" * 20, b"\xdd" * 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
    (bytes(range(1, 26)), b"\xcd" * 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
    (b"\x0c" * 20, b"Test With Truncation", "a3b6167473100ee06e0c796c2955552b"),
    (
        b"\xaa" * 131,
        b"Test Using Larger Than Block-Size Key - Hash Key First",
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    ),
    (
        b"\xaa" * 131,
        b"This is a test using a larger than block-size key and a larger than block-size data. "
        b"The key needs to be hashed before being used by the HMAC algorithm.",
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
    ),
]

# RFC 5869, appendices A.1 to A.3 (the SHA-256 ones): secret, salt, info, length, output.
RFC_5869 = [
    (
        "0b" * 22,
        "000102030405060708090a0b0c",
        "f0f1f2f3f4f5f6f7f8f9",
        42,
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    ),
    (
        bytes(range(0x50)).hex(),
        bytes(range(0x60, 0xB0)).hex(),
        bytes(range(0xB0, 0x100)).hex(),
        82,
        "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
        "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
    ),
    ("0b" * 22, "", "", 42, "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"),
]


@pytest.mark.parametrize(("key", "data", "expected"), RFC_4231)
def test_hmac_gives_the_published_vectors(key: bytes, data: bytes, expected: str) -> None:
    assert hmac_sha256(key)(data).hex()[: len(expected)] == expected


@pytest.mark.parametrize(("secret", "salt", "info", "length", "expected"), RFC_5869)
def test_hkdf_gives_the_published_vectors(secret: str, salt: str, info: str, length: int, expected: str) -> None:
    derived = hkdf_sha256(bytes.fromhex(secret), salt=bytes.fromhex(salt), info=bytes.fromhex(info), length=length)
    assert derived.hex() == expected


def test_a_key_longer_than_a_block_is_hashed_first() -> None:
    expected = "75092ca3ee2b307470c227697b42b3e65376aa3bae98fb5a1f7b7536daa9588a"
    assert hmac_sha256(b"k" * 65)(b"x").hex() == expected


def test_unicode_forms_meet_only_when_asked() -> None:
    sign = hmac_sha256(b"demo-key")
    composed, decomposed = "\u00e9", "e\u0301"
    assert sign(normalized(composed, ["nfc"]).encode()).hex().startswith("f6e22fb8bfdfa753")
    assert sign(normalized(decomposed, ["nfc"]).encode()).hex().startswith("f6e22fb8bfdfa753")
    assert sign(normalized(decomposed, []).encode()).hex().startswith("35babb36ecbf46d0")


def test_case_and_blanks_count_unless_normalized() -> None:
    names = ["Ann", "ann", "Ann "]
    assert len({normalized(name, []) for name in names}) == 3
    assert {normalized(name, ["lower", "trim"]) for name in names} == {"ann"}


def test_tuples_never_run_together() -> None:
    tuples = [
        ("ab", "c"),
        ("a", "bc"),
        ("123-", "456"),
        ("123", "-456"),
        ("a", None),
        (None, "a"),
        ("a", ""),
        ("a",),
        ("", "a"),
        ("1:a,", None),
    ]
    assert len({message(parts) for parts in tuples}) == len(tuples)


def test_the_message_is_as_documented() -> None:
    assert message(["42"]) == b"2:42,"
    assert message(["é", None, ""]) == b"2:\xc3\xa9,-0:,"


def test_a_pseudonym_is_the_hmac_under_the_domains_subkey() -> None:
    key = Key("k", 1, "", "current", b"sixteen-bytes-ok")
    info = b"veil" + b"\0\0\0\x09pseudonym" + b"\0\0\0\x08patients"
    step = hmac.digest(hmac.digest(b"\0" * 32, b"sixteen-bytes-ok", "sha256"), info + b"\x01", "sha256")
    expected = hmac.digest(step, b"2:42,", "sha256").hex()
    assert Signer(key, "patients", Options(length=64)).one(["42"]) == expected


def test_outputs_have_their_shape() -> None:
    key = new_keyring().current
    shapes = {
        ("hex", None): r"[0-9a-f]{32}",
        ("hex", 16): r"[0-9a-f]{16}",
        ("base32", None): r"[A-Z2-7]{26}",
        ("base32", 52): r"[A-Z2-7]{52}",
        ("uuid", None): r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        ("bigint", None): r"[0-9]{1,19}",
    }
    for (output, length), pattern in shapes.items():
        made = Signer(key, "d", Options(output=output, length=length)).many([str(n) for n in range(500)])
        assert len(set(made)) == 500
        assert all(re.fullmatch(pattern, str(value)) for value in made)
    biggest = max(int(str(v)) for v in Signer(key, "d", Options(output="bigint")).many([str(n) for n in range(500)]))
    assert 2**61 < biggest < 2**63


def test_the_bits_behind_the_collision_bound() -> None:
    assert [Options().bits, Options(length=16).bits, Options("base32", 52).bits] == [128, 64, 256]
    assert [Options("uuid").bits, Options("bigint").bits] == [122, 63]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output": "octal"}, "`output` must be one of hex, base32, uuid, bigint"),
        ({"length": 15}, "`length` must be between 16 and 64 for the output hex"),
        ({"output": "base32", "length": 12}, "`length` must be between 13 and 52 for the output base32"),
        ({"output": "uuid", "length": 20}, "`length` has no meaning for the output uuid"),
        ({"output": "bigint", "version_prefix": True}, "no room for a `version_prefix`"),
        ({"normalize": ["upper"]}, "`normalize` must be among nfc, lower, trim"),
        ({"salt": 1}, "the options must be a JSON object"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(PseudonymError, match=message):
        parse_options(json.dumps(options))


def test_two_domains_and_two_keys_share_no_pseudonym() -> None:
    first, second = new_keyring().current, new_keyring().current
    made = {Signer(key, domain, Options()).one(["ann"]) for key in (first, second) for domain in ("a", "b")}
    assert len(made) == 4


def test_many_values_are_those_of_one_by_one_and_null_stays_null() -> None:
    key = new_keyring().current
    many = Signer(key, "d", Options()).many(["a", None, "b", "a", ""])
    alone = Signer(key, "d", Options())
    assert many == [alone.one(["a"]), None, alone.one(["b"]), alone.one(["a"]), alone.one([""])]
    assert alone.one([None, None]) is None


@pytest.mark.parametrize(
    "options", [Options(), Options("base32"), Options("uuid"), Options("bigint"), Options(normalize=("lower", "trim"))]
)
def test_the_loop_and_the_single_call_agree(options: Options) -> None:
    signer = Signer(new_keyring().current, "d", options)
    values = ["Ann ", "", "é", None, "x" * 1000, "1:a,"]
    assert signer.many(values) == [None if value is None else signer.one([value]) for value in values]


def test_an_argument_that_is_no_constant_is_refused() -> None:
    for values in (["a", "b"], ["a", None], [None], [" "], []):
        with pytest.raises(ArgumentError, match="`domain` must be one text, the same for all rows"):
            constant(pa.chunked_array([pa.array(values, pa.string())]), "domain")
    assert constant(pa.chunked_array([pa.array(["a", "a"])]), "domain") == "a"


def test_the_hash_is_never_the_unkeyed_one() -> None:
    made = Signer(new_keyring().current, "d", Options(length=64)).one(["x"])
    assert made not in {hashlib.sha256(b"x").hexdigest(), hmac.digest(b"", b"x", "sha256").hex()}


def test_a_retired_key_verifies_and_a_destroyed_one_does_not() -> None:
    ring = new_keyring()
    old = Pseudonyms(lambda: ring).signer("d", '{"version_prefix": true}').one(["ann"])
    rotated = ring.rotated()
    destroyed = rotated.without_secret(1)

    def column(*values: str | None) -> pa.ChunkedArray:
        return pa.chunked_array([pa.array(values, pa.string())])

    def verdict(keyring: Keyring, value: str) -> bool | None:
        matches = Pseudonyms(lambda: keyring).matches
        arguments = column(value), column(old), column("d"), column('{"version_prefix": true}')
        return matches(*arguments).to_pylist()[0]  # type: ignore[no-any-return]

    assert [verdict(ring, "ann"), verdict(rotated, "ann"), verdict(destroyed, "ann")] == [True, True, False]
    assert verdict(rotated, "bob") is False
    new = Pseudonyms(lambda: rotated).signer("d", '{"version_prefix": true}').one(["ann"])
    assert str(old).startswith("v1_")
    assert str(new).startswith("v2_")
    assert str(old)[3:] != str(new)[3:]
    with pytest.raises(KeyringError, match="is destroyed: nothing can be derived"):
        destroyed.keys[1].subkey("pseudonym", "d")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "is not set"),
        ("", "is empty"),
        ("   ", "is blank"),
        ("short", "is too short: a key has 16 bytes or more"),
        ("fifteen-bytes-k", "is too short"),
        ("sixteen-bytes-ok\n", "begins or ends with white space"),
        ('{"keys": []}', "with at least one key"),
        ("{not json", r"is not JSON \(line 1\)"),
    ],
)
def test_a_wrong_environment_variable_is_refused(value: str | None, message: str) -> None:
    environ = {} if value is None else {"VEIL_KEY": value}
    with pytest.raises(KeyringError, match=f"environment variable VEIL_KEY .*{message}"):
        keyring_from_config({"keyring_env": "VEIL_KEY"}, environ)


def test_a_bare_key_in_the_environment_signs() -> None:
    key = keyring_from_config({"keyring_env": "VEIL_KEY"}, {"VEIL_KEY": "k" * 65}).current
    assert key.secret == b"k" * 65
    assert "kkkk" not in repr(key)


def test_no_config_and_two_configs_are_refused() -> None:
    with pytest.raises(KeyringError, match="no keyring is named"):
        keyring_from_config({}, {})
    with pytest.raises(KeyringError, match="both"):
        keyring_from_config({"keyring_env": "A", "keyring_file": "b"}, {})


def test_a_keyring_file_is_private_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "ring.json"
    ring = new_keyring().rotated()
    write_keyring(path, ring, replace_existing=False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_keyring(path) == ring
    assert [key.state for key in read_keyring(path).keys] == ["current", "retired"]
    assert [file.name for file in path.parent.iterdir()] == ["ring.json"]
    with pytest.raises(KeyringError, match="exists: a new key in its place"):
        write_keyring(path, new_keyring(), replace_existing=False)
    assert read_keyring(path) == ring


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_keyring_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "ring.json"
    write_keyring(path, new_keyring(), replace_existing=False)
    path.chmod(mode)
    with pytest.raises(KeyringError, match=f"has mode {mode:04o}: others may read it. Run `chmod 600"):
        read_keyring(path)


def test_a_missing_file_says_the_way_back_and_makes_none(tmp_path: Path) -> None:
    with pytest.raises(KeyringError, match=r"does not exist\. If there was one, restore it from its backup"):
        read_keyring(tmp_path / "ring.json")
    assert list(tmp_path.iterdir()) == []


def _entry(**changes: object) -> dict[str, object]:
    secret = "c2l4dGVlbi1ieXRlcy1vaw=="
    return {"id": "a", "version": 1, "created": "", "state": "current", "secret": secret} | changes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("[]", "must be"),
        ({"keys": [], "more": 1}, "must be"),
        ({"keys": [{"id": "a"}]}, "key 1 must have exactly the fields"),
        ({"keys": [_entry(secret="")]}, "key 1 has no secret"),
        ({"keys": [_entry(secret="   ")]}, "key 1 has no secret"),
        ({"keys": [_entry(secret="c2hvcnQ=")]}, "the secret is too short"),
        ({"keys": [_entry(secret="*secret-canary*")]}, "the secret is not base64"),
        ({"keys": [_entry(state="live")]}, "`state` must be one of current, retired, destroyed"),
        ({"keys": [_entry(state="destroyed")]}, "still holds a secret"),
        ({"keys": [_entry(version="1")]}, "`version` must be"),
        ({"keys": [_entry(), _entry(id="b")]}, "two keys have one version"),
        ({"keys": [_entry(), _entry(version=2)]}, "two keys have one id"),
        ({"keys": [_entry(), _entry(id="b", version=2)]}, "more than one key is current"),
    ],
)
def test_a_malformed_keyring_is_refused(content: object, message: str) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    with pytest.raises(KeyringError, match=message) as caught:
        parse_keyring(text, "keyring file ring.json")
    assert "canary" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_an_unforeseen_error_keeps_its_text_to_itself() -> None:
    def fails(value: str) -> None:
        raise ValueError(f"cannot read {value}")

    with pytest.raises(RuntimeError) as caught:
        sealed(fails)("Zed Q, 12 Elm St")
    assert "Elm" not in str(caught.value)
    assert "ValueError" in str(caught.value)
    assert caught.value.__context__ is None
