"""Tokens: random surrogates whose values are in a vault, a file of its own that is never in the warehouse.

The vault is SQLite, which locks across processes: however many threads and runs meet a new value, one of them makes
its token and the others find it. A value is looked up by its HMAC and kept under AES-256-GCM, both with subkeys of the
keyring, so the file alone tells nothing. Every write is one transaction; a killed run leaves whole rows or none.
"""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dbt_veil.guard import constant, sealed
from dbt_veil.keys import Key, Keyring, keyring_source
from dbt_veil.pseudonym import hmac_sha256, message
from dbt_veil.udf import Session, Udf

_NONCE_BYTES = 12
_TOKEN_BYTES = 15  # 24 characters of base32 and no padding
_WAIT_SECONDS = 60.0
_SCHEMA = """
create table tokens (
    token text primary key,
    domain text not null,
    key_version integer not null,
    lookup blob not null,
    value blob not null,
    created text not null,
    unique (domain, lookup)
) without rowid
"""


class VaultError(ValueError):
    """The vault cannot be used; the text says what to do and holds no value."""


class Vault:
    """The mapping of tokens to values in one file, opened when it is first needed."""

    def __init__(self, path: Path | None, keyring: Callable[[], Keyring]) -> None:
        self._path = path
        self._keyring = keyring
        self._lock = threading.Lock()
        self._open: sqlite3.Connection | None = None

    def tokens(self, values: Sequence[str | None], domain: str) -> list[str | None]:
        """The token of each value in its order, made and committed where there was none; ``None`` stays ``None``."""
        distinct = sorted({value for value in values if value is not None})
        with self._lock:
            current = self._keyring().current
            lookups = dict(zip(distinct, _lookups(current, domain, distinct), strict=True))
            found = self._find(domain, lookups)
            if len(found) < len(distinct):
                with self._writing() as connection:
                    found = self._find(domain, lookups)
                    missing = [value for value in distinct if value not in found]
                    seal = _sealer(current, domain)
                    found |= self._resealed(connection, domain, missing, lookups, seal)
                    new = {value: _new_token() for value in missing if value not in found}
                    now = datetime.now(UTC).isoformat(timespec="seconds")
                    connection.executemany(
                        "insert into tokens values (?, ?, ?, ?, ?, ?)",
                        [
                            (token, domain, current.version, lookups[value], seal(token, value), now)
                            for value, token in new.items()
                        ],
                    )
                    found |= new
        return [None if value is None else found[value] for value in values]

    def values(self, tokens: Sequence[str], domain: str) -> list[str | None]:
        """The value of each token; ``None`` where the vault has none in this domain.

        Raises:
            VaultError: the key of a row is destroyed, or the row was tampered with.
        """
        with self._lock:
            rows = {
                token: (version, value)
                for token, version, value in self._connection().execute(
                    f"select token, key_version, value from tokens where domain = ? and token in ({_marks(tokens)})",
                    (domain, *tokens),
                )
            }
        return [self._unseal(token, domain, *rows[token]) if token in rows else None for token in tokens]

    def forget(self, tokens: Sequence[str], domain: str) -> int:
        """Delete the rows of these tokens, which then mean nothing; gives how many there were."""
        with self._lock, self._writing() as connection:
            sql = f"delete from tokens where domain = ? and token in ({_marks(tokens)})"
            return connection.execute(sql, (domain, *tokens)).rowcount

    def close(self) -> None:
        """Close the file."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _find(self, domain: str, lookups: dict[str, bytes]) -> dict[str, str]:
        if not lookups:
            return {}
        sql = f"select lookup, token from tokens where domain = ? and lookup in ({_marks(lookups)})"
        by_lookup = dict(self._connection().execute(sql, (domain, *lookups.values())).fetchall())
        return {value: by_lookup[lookup] for value, lookup in lookups.items() if lookup in by_lookup}

    def _resealed(
        self,
        connection: sqlite3.Connection,
        domain: str,
        values: list[str],
        lookups: dict[str, bytes],
        seal: Callable[[str, str], bytes],
    ) -> dict[str, str]:
        """The tokens of values that were put away under a retired key, now under the current one."""
        found: dict[str, str] = {}
        current, *retired = self._keyring().usable
        for key in retired:
            left = [value for value in values if value not in found]
            older = self._find(domain, dict(zip(left, _lookups(key, domain, left), strict=True)))
            connection.executemany(
                "update tokens set key_version = ?, lookup = ?, value = ? where token = ?",
                [(current.version, lookups[value], seal(token, value), token) for value, token in older.items()],
            )
            found |= older
        return found

    def _unseal(self, token: str, domain: str, version: int, value: bytes) -> str:
        key = self._keyring().version(version)
        if key is None:
            raise VaultError(f"the keyring has no key of version {version}, under which a token's value was put away")
        try:
            cipher = AESGCM(key.subkey("vault value", domain))
            return cipher.decrypt(value[:_NONCE_BYTES], value[_NONCE_BYTES:], token.encode()).decode()
        except InvalidTag:
            raise VaultError("a row of the vault is not as it was written, or was written under other keys") from None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection()
        try:
            connection.execute("begin immediate")
        except sqlite3.OperationalError:
            raise VaultError(f"the vault was locked by another process for {_WAIT_SECONDS:.0f} seconds") from None
        try:
            yield connection
            connection.execute("commit")
        except BaseException:
            connection.execute("rollback")
            raise

    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            self._open = _connect(self._path)
        return self._open


def new_vault(path: Path) -> None:
    """Make an empty vault with mode 0600.

    Raises:
        VaultError: the file exists, or cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(_SCHEMA)
    except FileExistsError:
        raise VaultError(f"{path} exists: a new vault in its place would make every token so far meaningless") from None
    except (OSError, sqlite3.Error) as error:
        raise VaultError(f"{path} cannot be made: {type(error).__name__}") from None


def vault_of(session: Session) -> Vault:
    """The vault that the plugin's config names."""
    named = session.config.get("vault_file")
    return Vault(Path(str(named)) if named else None, keyring_source(session.config))


def udfs(session: Session) -> Sequence[Udf]:
    """The UDFs of this family."""
    vault = vault_of(session)

    def token(values: pa.ChunkedArray, domains: pa.ChunkedArray) -> pa.Array:
        return pa.array(vault.tokens(values.to_pylist(), constant(domains, "domain")), pa.string())

    # Not volatile, though it may write: a value's token is a function of the value, and one call for it is enough.
    return (Udf("veil_token", sealed(token), ("VARCHAR", "VARCHAR"), "VARCHAR", sees_null=True),)


def _connect(path: Path | None) -> sqlite3.Connection:
    if path is None:
        raise VaultError(
            "no vault is attached. Make one with `veil vault new secrets/veil_vault.sqlite`, and in profiles.yml, "
            "under the plugin `dbt_veil.plugin`, add `vault_file: secrets/veil_vault.sqlite` to its `config`"
        )
    if not path.exists():
        raise VaultError(
            f"vault file {path} does not exist. If there was one, restore it from its backup: a new vault gives new "
            f"tokens for everybody. For a first vault: `veil vault new {path}`"
        )
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        raise VaultError(f"vault file {path} has mode {mode:04o}: others may read it. Run `chmod 600 {path}`")
    try:
        connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("pragma secure_delete = on")
        connection.execute("pragma synchronous = full")
        connection.execute("select token, domain, key_version, lookup, value, created from tokens limit 0")
    except sqlite3.Error:
        raise VaultError(f"vault file {path} is no vault of Veil. Restore it from its backup") from None
    return connection


def _lookups(key: Key, domain: str, values: Sequence[str]) -> list[bytes]:
    sign = hmac_sha256(key.subkey("vault lookup", domain))
    return [sign(message([value])) for value in values]


def _sealer(key: Key, domain: str) -> Callable[[str, str], bytes]:
    """A function from a token and its value to the value under AES-256-GCM, bound to the token, after its nonce."""
    cipher = AESGCM(key.subkey("vault value", domain))

    def seal(token: str, value: str) -> bytes:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + cipher.encrypt(nonce, value.encode(), token.encode())

    return seal


def _new_token() -> str:
    return "tok_" + base64.b32encode(secrets.token_bytes(_TOKEN_BYTES)).decode().lower()


def _marks(values: Sequence[object] | dict[str, bytes]) -> str:
    return ", ".join("?" * len(values))
