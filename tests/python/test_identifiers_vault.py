"""Tokens and format-preserving encryption without dbt: concurrency, kills, rotation, published vectors, bad values."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from dbt_veil.fpe import Cipher, Format, FpeError, parse_format
from dbt_veil.keys import Keyring, new_keyring, write_keyring
from dbt_veil.tokens import Vault, VaultError, new_vault
from ffx import FF1

# NIST, "Examples with Intermediate Values: FF1 samples" of SP 800-38G: the AES-128, AES-192 and AES-256 keys.
KEYS = [
    "2B7E151628AED2A6ABF7158809CF4F3C",
    "2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F",
    "2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94",
]
# Radix, tweak, plaintext, and the ciphertext under each key.
FF1_SAMPLES = [
    (10, "", "0123456789", ["2433477484", "2830668132", "6657667009"]),
    (10, "39383736353433323130", "0123456789", ["6124200773", "2496655549", "1001623463"]),
    (
        36,
        "3737373770717273373737",
        "0123456789abcdefghi",
        ["a9tv40mll9kdu509eum", "xbj3kv35jrawxv32ysr", "xs8a0azh2avyalyzuwd"],
    ),
]


@pytest.mark.parametrize(("radix", "tweak", "plain", "expected"), FF1_SAMPLES)
@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_library_gives_the_nine_published_samples(
    radix: int, tweak: str, plain: str, expected: list[str], number: int
) -> None:
    cipher = FF1(bytes.fromhex(KEYS[number]), radix=radix)
    assert cipher.encrypt(plain, tweak=bytes.fromhex(tweak)) == expected[number]
    assert cipher.decrypt(expected[number], tweak=bytes.fromhex(tweak)) == plain


def luhn_sum(number: str) -> int:
    digits = [int(c) for c in reversed(number) if c.isdigit()]
    return sum(d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in enumerate(digits)) % 10


def test_cards_stay_cards_and_come_back() -> None:
    cipher = Cipher(new_keyring().current, "cards", Format(check="luhn"))
    cards = ["4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005", None, "4111 1111 1111 1111"]
    encrypted = cipher.encrypt(cards)
    assert encrypted[3] is None
    assert encrypted[0] == encrypted[4] != cards[0]
    made = [str(value) for value in encrypted if value is not None]
    assert all(luhn_sum(value) == 0 for value in made)
    assert [[i for i, c in enumerate(v) if not c.isdigit()] for v in made[:2]] == [[4, 9, 14], [4, 9, 14]]
    assert cipher.decrypt(made) == [card for card in cards if card is not None]


def test_own_alphabets_and_domains() -> None:
    key = new_keyring().current
    form = Format(alphabet="ACGT", separators="")
    value = "ACGTACGTAC"
    one, two = (Cipher(key, domain, form).encrypt([value])[0] for domain in ("a", "b"))
    assert one != two
    assert set(str(one)) <= set("ACGT")
    assert Cipher(key, "a", form).decrypt([str(one)]) == [value]
    mixed = Cipher(key, "a", Format(alphabet="alphanumeric"))
    assert mixed.decrypt([str(mixed.encrypt(["AbC 123-x"])[0])]) == ["AbC 123-x"]


def test_encryption_is_one_to_one() -> None:
    cipher = Cipher(new_keyring().current, "d", Format())
    values = [f"{n:06d}" for n in range(0, 1_000_000, 997)]
    assert len(set(cipher.encrypt(values))) == len(values)


@pytest.mark.parametrize(
    ("form", "value", "message"),
    [
        (Format(), "12345", "1 values have fewer than 6 characters of the alphabet"),
        (Format(check="luhn"), "123456", "have fewer than 7 characters"),
        (Format(alphabet="AB"), "AB" * 9, "fewer than 20 characters"),
        (Format(), "12345678x", "1 values have a character that is neither in the alphabet nor among the separators"),
        (Format(check="luhn"), "4111111111111112", "1 values have a check digit that is not Luhn's"),
        (Format(), "", "fewer than 6"),
        (Format(), "١٢٣٤٥٦٧", "neither in the alphabet"),
    ],
)
def test_a_value_that_cannot_be_encrypted_is_counted_and_not_shown(form: Format, value: str, message: str) -> None:
    named = Format(form.alphabet, form.separators, form.check, column="card")
    cipher = Cipher(new_keyring().current, "d", named)
    with pytest.raises(FpeError, match=f"column card: of 2 distinct values of this batch, .*{message}") as caught:
        cipher.encrypt([value, "4111111111111111" if form.alphabet == "digits" else "ABABABABABABABABABAB"])
    assert not value or value not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('{"alphabet": "AAB"}', "2 or more different characters"),
        ('{"alphabet": "A"}', "2 or more different characters"),
        ('{"alphabet": "AB-"}', "no character in common"),
        ('{"alphabet": "alphanumeric", "check": "luhn"}', "luhn with the alphabet digits"),
        ('{"radix": 10}', "must be a JSON object of alphabet"),
    ],
)
def test_a_wrong_format_is_refused(options: str, message: str) -> None:
    with pytest.raises(FpeError, match=message):
        parse_format(options)


@pytest.fixture
def ring() -> Keyring:
    return new_keyring()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    new_vault(tmp_path / "vault.sqlite")
    return tmp_path / "vault.sqlite"


def test_one_value_has_one_token_in_one_domain(path: Path, ring: Keyring) -> None:
    vault = Vault(path, lambda: ring)
    first = vault.tokens(["ann", None, "bob", "ann"], "patients")
    assert first[0] == first[3] != first[2]
    assert first[1] is None
    assert all(len(str(token)) == 28 and str(token).startswith("tok_") for token in first if token)
    assert Vault(path, lambda: ring).tokens(["bob", "ann"], "patients") == [first[2], first[0]]
    assert vault.tokens(["ann"], "staff")[0] not in first
    assert vault.values([str(first[0]), "tok_unknown"], "patients") == ["ann", None]
    assert vault.values([str(first[0])], "staff") == [None]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_file_holds_no_value_in_the_clear(path: Path, ring: Keyring) -> None:
    vault = Vault(path, lambda: ring)
    (token,) = vault.tokens(["Zed Q, 12 Elm St"], "patients")
    vault.close()
    assert b"Elm" not in path.read_bytes()
    assert str(token).encode() in path.read_bytes()


def test_a_forgotten_person_is_gone(path: Path, ring: Keyring) -> None:
    vault = Vault(path, lambda: ring)
    (token,) = vault.tokens(["ann"], "patients")
    assert vault.forget([str(token)], "staff") == 0
    assert vault.forget([str(token)], "patients") == 1
    assert vault.values([str(token)], "patients") == [None]
    assert vault.tokens(["ann"], "patients") != [token]
    vault.close()
    assert str(token).encode() not in path.read_bytes()


def test_tokens_outlive_a_rotation_but_not_the_destruction_of_an_unused_key(path: Path, ring: Keyring) -> None:
    before = Vault(path, lambda: ring).tokens(["ann", "bob"], "patients")
    rotated = ring.rotated()
    vault = Vault(path, lambda: rotated)
    assert vault.tokens(["ann"], "patients") == [before[0]]
    destroyed = rotated.without_secret(1)
    vault = Vault(path, lambda: destroyed)
    assert vault.values([str(before[0])], "patients") == ["ann"]
    with pytest.raises(ValueError, match="is destroyed: nothing can be derived"):
        vault.values([str(before[1])], "patients")


def test_another_keyring_reads_nothing(path: Path, ring: Keyring) -> None:
    (token,) = Vault(path, lambda: ring).tokens(["ann"], "patients")
    other = new_keyring()
    with pytest.raises(VaultError, match="was written under other keys"):
        Vault(path, lambda: other).values([str(token)], "patients")


def test_threads_that_meet_a_new_value_make_one_token(path: Path, ring: Keyring) -> None:
    shared = Vault(path, lambda: ring)
    values = [f"person {n}" for n in range(300)]
    found: list[list[str | None]] = []
    start = threading.Barrier(6)

    def work(vault: Vault) -> None:
        start.wait()
        found.append(vault.tokens(values, "patients"))

    vaults = [shared, shared, shared, *(Vault(path, lambda: ring) for _ in range(3))]
    threads = [threading.Thread(target=work, args=(vault,)) for vault in vaults]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert all(tokens == found[0] for tokens in found)
    assert len(set(found[0])) == 300


_RUN = """
import sys
from pathlib import Path
from dbt_veil.keys import read_keyring
from dbt_veil.tokens import Vault
folder = Path(sys.argv[1])
vault = Vault(folder / "vault.sqlite", lambda: read_keyring(folder / "ring.json"))
for part in range(int(sys.argv[2])):
    values = [f"person {part * 50 + n}" for n in range(50)]
    print(*vault.tokens(values, "patients"), flush=True)
"""


def _start(folder: Path, parts: int) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "udfs")}
    command = [sys.executable, "-c", _RUN, str(folder), str(parts)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_two_runs_make_one_token_and_a_killed_run_leaves_whole_rows(path: Path, ring: Keyring) -> None:
    folder = path.parent
    write_keyring(folder / "ring.json", ring, replace_existing=False)
    runs = [_start(folder, 20) for _ in range(2)]
    outputs = [run.communicate(timeout=60)[0] for run in runs]
    assert outputs[0] == outputs[1]
    assert len(set(outputs[0].split())) == 1000

    killed = _start(folder, 100_000)
    assert killed.stdout is not None
    for _ in range(25):
        killed.stdout.readline()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    with sqlite3.connect(path) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        tokens = [token for (token,) in connection.execute("select token from tokens")]
    vault = Vault(path, lambda: ring)
    assert len(tokens) >= 1250
    assert len(tokens) % 50 == 0
    values = vault.values(tokens, "patients")
    assert len(set(values)) == len(tokens)
    assert vault.tokens(["somebody new"], "patients") != [None]


def test_a_vault_that_stays_locked_is_an_error_and_not_a_wait_for_ever(
    path: Path, ring: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dbt_veil.tokens._WAIT_SECONDS", 0.2)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("begin immediate")
    began = time.monotonic()
    with pytest.raises(VaultError, match="was locked by another process"):
        Vault(path, lambda: ring).tokens(["ann"], "patients")
    assert time.monotonic() - began < 10
    other.close()


def test_a_vault_is_named_present_private_and_one(tmp_path: Path, ring: Keyring) -> None:
    with pytest.raises(VaultError, match="no vault is attached"):
        Vault(None, lambda: ring).tokens(["ann"], "d")
    missing = tmp_path / "missing.sqlite"
    with pytest.raises(VaultError, match="restore it from its backup: a new vault gives new tokens for everybody"):
        Vault(missing, lambda: ring).tokens(["ann"], "d")
    assert not missing.exists()
    other = tmp_path / "other.sqlite"
    other.write_text("a diary, no database, long enough to be told from one")
    other.chmod(0o600)
    with pytest.raises(VaultError, match="is no vault of Veil"):
        Vault(other, lambda: ring).tokens(["ann"], "d")
    with pytest.raises(VaultError, match="exists: a new vault in its place"):
        new_vault(other)
    other.chmod(0o644)
    with pytest.raises(VaultError, match="has mode 0644: others may read it"):
        Vault(other, lambda: ring).tokens(["ann"], "d")
