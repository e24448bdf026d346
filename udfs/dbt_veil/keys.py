"""Secret keys: where they come from, what state they are in, and the subkeys derived from them.

A key is read from a file or an environment variable that the plugin's config names, and is never handed to SQL. No
message of this module holds key material, and none repeats a part of a file it could not read.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import secrets
import stat
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

State = Literal["current", "retired", "destroyed"]

MINIMUM_BYTES = 16
NEW_KEY_BYTES = 32
_FIELDS = {"id", "version", "created", "state", "secret"}


class KeyringError(ValueError):
    """The keys cannot be used; the text says what is wrong, where, and how to mend it, and holds no secret."""


@dataclass(frozen=True)
class Key:
    """One secret key.

    Attributes:
        id: a public name, unique in its keyring.
        version: 1, 2, 3, …; carried by pseudonyms that ask for it.
        created: ISO 8601 date and time, UTC; empty where unknown.
        state: the current key signs, retired ones still verify, destroyed ones have no secret any more.
        secret: the key itself, 16 bytes or more; ``None`` when destroyed.
    """

    id: str
    version: int
    created: str
    state: State
    secret: bytes | None = field(repr=False)

    def subkey(self, purpose: str, domain: str, length: int = 32) -> bytes:
        """The key of one purpose in one domain, ``length`` bytes.

        HKDF-SHA256 (RFC 5869) without salt; ``info`` is ``veil`` and the two names, each with its length before it,
        so that no two pairs of names give one ``info``.

        Raises:
            KeyringError: the key is destroyed.
        """
        if self.secret is None:
            raise KeyringError(f"key {self.id} (version {self.version}) is destroyed: nothing can be derived from it")
        info = b"veil" + b"".join(len(n).to_bytes(4, "big") + n for n in (purpose.encode(), domain.encode()))
        return hkdf_sha256(self.secret, salt=None, info=info, length=length)


@dataclass(frozen=True)
class Keyring:
    """Keys by version, newest first; at most one is current."""

    keys: tuple[Key, ...]

    @property
    def current(self) -> Key:
        """The key that signs.

        Raises:
            KeyringError: every key is retired or destroyed.
        """
        for key in self.keys:
            if key.state == "current":
                return key
        raise KeyringError("no key of the keyring is current. Make one with `veil key rotate`")

    @property
    def usable(self) -> tuple[Key, ...]:
        """The keys that verify: the current one first, then the retired ones, newest first."""
        return tuple(sorted((k for k in self.keys if k.secret is not None), key=lambda k: k.state != "current"))

    def version(self, number: int) -> Key | None:
        """The key of one version, or ``None``."""
        return next((key for key in self.keys if key.version == number), None)

    def rotated(self) -> Keyring:
        """This keyring with a new current key; the one that was current is retired."""
        newest = max((key.version for key in self.keys), default=0)
        retired = (replace(key, state="retired") if key.state == "current" else key for key in self.keys)
        return Keyring((_new_key(newest + 1), *retired))

    def without_secret(self, version: int) -> Keyring:
        """This keyring with the key of ``version`` destroyed.

        Raises:
            KeyringError: there is no such key, or it is current.
        """
        key = self.version(version)
        if key is None:
            raise KeyringError(f"the keyring has no key of version {version}")
        if key.state == "current":
            raise KeyringError(f"key version {version} is current. Rotate first, then destroy it")
        gone = replace(key, state="destroyed", secret=None)
        return Keyring(tuple(gone if k.version == version else k for k in self.keys))


def new_keyring() -> Keyring:
    """A keyring of one new key from the operating system's generator."""
    return Keyring((_new_key(1),))


def hkdf_sha256(secret: bytes, *, salt: bytes | None, info: bytes, length: int) -> bytes:
    """HKDF with SHA-256 (RFC 5869): ``length`` bytes derived from ``secret``."""
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)


def keyring_from_config(config: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Keyring:
    """Read the keyring that the plugin's config names.

    Args:
        config: holds ``keyring_file`` (a path) or ``keyring_env`` (the name of an environment variable that holds
            either a keyring in JSON or one bare key).
        environ: the environment; the process's own by default.

    Raises:
        KeyringError: neither or both are named, or what is named cannot be used.
    """
    file, variable = config.get("keyring_file"), config.get("keyring_env")
    if file and variable:
        raise KeyringError("the plugin's config names both `keyring_file` and `keyring_env`. Keep one of them")
    if file:
        return read_keyring(Path(str(file)))
    if variable:
        return _keyring_from_environment(str(variable), os.environ if environ is None else environ)
    raise KeyringError(
        "no keyring is named. Make one with `veil key new secrets/veil_keyring.json`, and in profiles.yml, "
        "under the plugin `dbt_veil.plugin`, set `config: {keyring_file: secrets/veil_keyring.json}`"
    )


def read_keyring(path: Path) -> Keyring:
    """Read a keyring file that only its owner may read.

    Raises:
        KeyringError: the file is missing, readable by others, or no valid keyring.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise KeyringError(
            f"keyring file {path} does not exist. If there was one, restore it from its backup: a new key gives new "
            f"pseudonyms for everybody. For a first key: `veil key new {path}`"
        ) from None
    except OSError as error:
        raise KeyringError(f"keyring file {path} cannot be opened: {error.strerror}") from None
    with os.fdopen(descriptor, encoding="utf-8") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise KeyringError(f"keyring file {path} is not a regular file")
        mode = stat.S_IMODE(status.st_mode)
        if os.name == "posix" and mode & 0o077:
            raise KeyringError(f"keyring file {path} has mode {mode:04o}: others may read it. Run `chmod 600 {path}`")
        try:
            text = file.read()
        except UnicodeDecodeError:
            raise KeyringError(f"keyring file {path} is not text in UTF-8") from None
    return parse_keyring(text, f"keyring file {path}")


def parse_keyring(text: str, where: str) -> Keyring:
    """Read a keyring from JSON; ``where`` begins every message.

    Raises:
        KeyringError: the text is empty, not JSON, or not a valid keyring.
    """
    if not text.strip():
        raise KeyringError(f"{where} is empty. Restore it from its backup, or make a first key with `veil key new`")
    try:
        content = json.loads(text)
    except ValueError as error:
        line = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise KeyringError(f"{where} is not JSON{line}. Restore it from its backup") from None
    entries = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries or set(content) != {"keys"}:
        raise KeyringError(f'{where} must be {{"keys": [...]}} with at least one key')
    keys = tuple(_parse_key(entry, f"{where}, key {number}") for number, entry in enumerate(entries, start=1))
    for name, values in (("id", [k.id for k in keys]), ("version", [k.version for k in keys])):
        if len(set(values)) < len(values):
            raise KeyringError(f"{where}: two keys have one {name}")
    if sum(key.state == "current" for key in keys) > 1:
        raise KeyringError(f"{where}: more than one key is current")
    return Keyring(tuple(sorted(keys, key=lambda key: -key.version)))


def write_keyring(path: Path, keyring: Keyring, *, replace_existing: bool) -> None:
    """Write a keyring with mode 0600: whole or not at all, and never over an existing one unless told to.

    Raises:
        KeyringError: the file exists and ``replace_existing`` is false, or it cannot be written.
    """
    entries = [
        {
            "id": key.id,
            "version": key.version,
            "created": key.created,
            "state": key.state,
            "secret": None if key.secret is None else base64.b64encode(key.secret).decode(),
        }
        for key in keyring.keys
    ]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".veil_keyring_")  # mode 0600
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump({"keys": entries}, file, indent=2)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            if replace_existing:
                temporary.replace(path)
            else:
                path.hardlink_to(temporary)  # unlike a rename, refuses to replace
        finally:
            temporary.unlink(missing_ok=True)
    except FileExistsError:
        raise KeyringError(
            f"{path} exists: a new key in its place would make every pseudonym so far unlinkable. "
            f"To add a key: `veil key rotate {path}`"
        ) from None
    except OSError as error:
        raise KeyringError(f"{path} cannot be written: {error.strerror}") from None


def keyring_source(config: Mapping[str, Any]) -> Callable[[], Keyring]:
    """A function that reads the keyring when it is first asked and gives that same one ever after."""
    lock = threading.Lock()
    found: list[Keyring] = []

    def keyring() -> Keyring:
        with lock:
            if not found:
                found.append(keyring_from_config(config))
            return found[0]

    return keyring


def _new_key(version: int) -> Key:
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return Key(secrets.token_hex(4), version, created, "current", secrets.token_bytes(NEW_KEY_BYTES))


def _keyring_from_environment(variable: str, environ: Mapping[str, str]) -> Keyring:
    where = f"environment variable {variable}"
    text = environ.get(variable)
    if text is None:
        raise KeyringError(f"{where} is not set. Export the key, or name a `keyring_file` in the plugin's config")
    if not text.strip():
        raise KeyringError(f"{where} is {'blank' if text else 'empty'}. It must hold a keyring in JSON, or a key")
    if text.lstrip().startswith("{"):
        return parse_keyring(text, where)
    if text != text.strip():
        raise KeyringError(f"{where} begins or ends with white space, which would be a part of the key. Remove it")
    secret = text.encode()
    if len(secret) < MINIMUM_BYTES:
        raise KeyringError(f"{where} is too short: a key has {MINIMUM_BYTES} bytes or more")
    return Keyring((Key(f"env:{variable}", 1, "", "current", secret),))


def _parse_key(entry: Any, where: str) -> Key:
    if not isinstance(entry, dict) or set(entry) != _FIELDS:
        raise KeyringError(f"{where} must have exactly the fields {', '.join(sorted(_FIELDS))}")
    identifier, version, created, state = (entry[name] for name in ("id", "version", "created", "state"))
    if not isinstance(identifier, str) or not identifier:
        raise KeyringError(f"{where}: `id` must be a text")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise KeyringError(f"{where}: `version` must be 1, 2, 3, …")
    if not isinstance(created, str):
        raise KeyringError(f"{where}: `created` must be a text")
    if state not in get_args(State):
        raise KeyringError(f"{where}: `state` must be one of {', '.join(get_args(State))}")
    return Key(identifier, version, created, state, _parse_secret(entry["secret"], state, where))


def _parse_secret(value: Any, state: State, where: str) -> bytes | None:
    if state == "destroyed":
        if value is not None:
            raise KeyringError(f"{where} is destroyed and still holds a secret. Destroy it with `veil key destroy`")
        return None
    if not isinstance(value, str) or not value.strip():
        raise KeyringError(f"{where} has no secret. Restore the keyring from its backup")
    try:
        secret = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise KeyringError(f"{where}: the secret is not base64") from None
    if len(secret) < MINIMUM_BYTES:
        raise KeyringError(f"{where}: the secret is too short: a key has {MINIMUM_BYTES} bytes or more")
    return secret
