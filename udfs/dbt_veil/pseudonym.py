"""Pseudonyms: HMAC-SHA256 of a canonical text under a key of its own for each domain.

The message is the value's parts one after another, each as ``<length in bytes>:<UTF-8 bytes>,`` and a NULL part as
``-``: no two tuples, of whatever length, give one message. A value that is no tuple is a tuple of one.
"""

from __future__ import annotations

import base64
import functools
import json
import unicodedata
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from dbt_veil.guard import constant, sealed
from dbt_veil.keys import Key, Keyring, keyring_source
from dbt_veil.udf import Session, Udf

# Bits carried by one character, and how many characters there are at most.
_OUTPUTS: dict[str, tuple[float, int]] = {"hex": (4, 64), "base32": (5, 52)}
_DEFAULT_LENGTH = {"hex": 32, "base32": 26}
_MINIMUM_BITS = 64
_NORMALIZATIONS = ("nfc", "lower", "trim")


class PseudonymError(ValueError):
    """A pseudonym was asked for in a way that cannot be answered; the text never holds a value."""


@dataclass(frozen=True)
class Options:
    """What a pseudonym looks like.

    Attributes:
        output: ``hex``, ``base32`` (RFC 4648, upper case), ``uuid`` (version 8) or ``bigint`` (0 to 2**63 - 1).
        length: characters of ``hex`` or ``base32``; the version's prefix does not count.
        normalize: any of ``nfc``, ``lower``, ``trim``; applied in that fixed way whatever their order.
        version_prefix: put ``v<version>_`` before the pseudonym.
    """

    output: str = "hex"
    length: int | None = None
    normalize: tuple[str, ...] = ()
    version_prefix: bool = False

    def __post_init__(self) -> None:
        if self.output not in (*_OUTPUTS, "uuid", "bigint"):
            raise PseudonymError("`output` must be one of hex, base32, uuid, bigint")
        if unknown := set(self.normalize) - set(_NORMALIZATIONS):
            raise PseudonymError(f"`normalize` must be among {', '.join(_NORMALIZATIONS)}. Got: {sorted(unknown)}")
        if self.output not in _OUTPUTS:
            if self.length is not None:
                raise PseudonymError(f"`length` has no meaning for the output {self.output}")
            if self.version_prefix:
                raise PseudonymError(f"the output {self.output} has no room for a `version_prefix`")
            return
        bits, longest = _OUTPUTS[self.output]
        shortest = -(-_MINIMUM_BITS // int(bits))
        if self.length is not None and not shortest <= self.length <= longest:
            raise PseudonymError(f"`length` must be between {shortest} and {longest} for the output {self.output}")

    @property
    def bits(self) -> int:
        """The bits of the HMAC that are kept: among n values two collide with probability <= n**2 / 2**(bits + 1)."""
        if self.output in _OUTPUTS:
            return min(256, int(_OUTPUTS[self.output][0]) * (self.length or _DEFAULT_LENGTH[self.output]))
        return 122 if self.output == "uuid" else 63


def message(parts: Sequence[str | None]) -> bytes:
    """The bytes that are signed for a tuple of parts: different for different tuples."""
    return b"".join(b"-" if part is None else _net(part.encode()) for part in parts)


def normalized(text: str, normalize: Sequence[str]) -> str:
    """``text`` with Unicode composed (``nfc``), outer white space cut (``trim``) and in lower case (``lower``)."""
    if "trim" in normalize:
        text = text.strip()
    if "lower" in normalize:
        text = text.lower()
    return unicodedata.normalize("NFC", text) if "nfc" in normalize else text


def hmac_sha256(key: bytes) -> Callable[[bytes], bytes]:
    """A function from a message to its HMAC-SHA256 (RFC 2104) that prepares the key once."""
    prepared = HMAC(key, SHA256())

    def sign(message: bytes) -> bytes:
        state = prepared.copy()
        state.update(message)
        return state.finalize()

    return sign


class Signer:
    """Makes the pseudonyms of one domain under one key.

    It remembers none. SQL calls it once for each distinct value of a table: see the macro ``veil._once_a_value``.
    """

    def __init__(self, key: Key, domain: str, options: Options) -> None:
        self._normalize = options.normalize
        self._prepared = HMAC(key.subkey("pseudonym", domain), SHA256())
        self._prefix = f"v{key.version}_" if options.version_prefix else ""
        self._format = _formatter(options)

    def one(self, parts: Sequence[str | None]) -> str | None:
        """The pseudonym of a tuple; ``None`` when all its parts are ``None``."""
        if all(part is None for part in parts):
            return None
        normal = [None if part is None else normalized(part, self._normalize) for part in parts]
        state = self._prepared.copy()
        state.update(message(normal))
        return self._prefix + self._format(state.finalize())

    def many(self, values: Sequence[str | None]) -> list[str | None]:
        """The pseudonyms of single values, in their order: what :meth:`one` gives, in one tight loop."""
        if self._normalize:
            values = [None if value is None else normalized(value, self._normalize) for value in values]
        copy, form, made = self._prepared.copy, self._format, list[str | None]()
        for value in values:
            if value is None:
                made.append(None)
                continue
            data = value.encode()
            state = copy()
            state.update(b"%d:%b," % (len(data), data))
            made.append(form(state.finalize()))
        return [None if text is None else self._prefix + text for text in made] if self._prefix else made


class Pseudonyms:
    """The pseudonyms of one keyring, with a signer for each domain and set of options that was asked for."""

    def __init__(self, keyring: Callable[[], Keyring]) -> None:
        self._keyring = keyring
        self._signers: dict[tuple[int, str, str], Signer] = {}

    def signer(self, domain: str, options: str, key: Key | None = None) -> Signer:
        """The signer of ``domain`` with ``options`` in JSON, under the current key unless another is given."""
        key = key or self._keyring().current
        name = (key.version, domain, options)
        if name not in self._signers:
            self._signers[name] = Signer(key, domain, parse_options(options))
        return self._signers[name]

    def pseudonym(self, values: pa.ChunkedArray, domains: pa.ChunkedArray, options: pa.ChunkedArray) -> pa.Array:
        """Pseudonyms of a column of text, shape (n,); NULL stays NULL."""
        signer = self.signer(constant(domains, "domain"), constant(options, "options"))
        return pa.array(signer.many(values.to_pylist()), pa.string())

    def tuple_pseudonym(self, values: pa.ChunkedArray, domains: pa.ChunkedArray, options: pa.ChunkedArray) -> pa.Array:
        """Pseudonyms of a column of lists of text, shape (n,); a list of NULLs gives NULL."""
        signer = self.signer(constant(domains, "domain"), constant(options, "options"))
        return pa.array([signer.one(parts or ()) for parts in values.to_pylist()], pa.string())

    def matches(
        self, values: pa.ChunkedArray, pseudonyms: pa.ChunkedArray, domains: pa.ChunkedArray, options: pa.ChunkedArray
    ) -> pa.Array:
        """Whether each pseudonym is that of the value beside it under any key that still verifies, shape (n,)."""
        domain, text = constant(domains, "domain"), constant(options, "options")
        signers = [self.signer(domain, text, key) for key in self._keyring().usable]
        pairs = zip(values.to_pylist(), pseudonyms.to_pylist(), strict=True)
        return pa.array(
            [None if v is None or p is None else any(s.one((v,)) == p for s in signers) for v, p in pairs], pa.bool_()
        )


@functools.lru_cache(maxsize=256)
def parse_options(text: str) -> Options:
    """Options from a JSON object.

    Raises:
        PseudonymError: an option is unknown or has a value it cannot have.
    """
    try:
        given = json.loads(text)
        return Options(**given | {"normalize": tuple(given.get("normalize", ()))})
    except (TypeError, AttributeError, json.JSONDecodeError):
        raise PseudonymError("the options must be a JSON object of output, length, normalize, version_prefix") from None


def shift_days(keyed: bytes, furthest: int) -> int:
    """The days that all dates of one person move: -``furthest`` to ``furthest`` without 0, from a keyed digest.

    All 256 bits are reduced, so no offset is likelier than another by more than ``furthest`` / 2**254.
    """
    offset = int.from_bytes(keyed, "big") % (2 * furthest) - furthest
    return offset if offset < 0 else offset + 1


def udfs(session: Session) -> Sequence[Udf]:
    """The UDFs of this family."""
    keyring = keyring_source(session.config)
    pseudonyms = Pseudonyms(keyring)
    text, texts = "VARCHAR", "VARCHAR[]"

    def shifts(persons: pa.ChunkedArray, domains: pa.ChunkedArray, furthest: pa.ChunkedArray) -> pa.Array:
        sign = hmac_sha256(keyring().current.subkey("shift", constant(domains, "domain")))
        limit = int(constant(furthest, "days"))
        days = {person: shift_days(sign(message([person])), limit) for person in set(persons.to_pylist()) - {None}}
        return pa.array(map(days.get, persons.to_pylist()), pa.int32())

    return (
        Udf("veil_pseudonym", sealed(pseudonyms.pseudonym), (text, text, text), text, sees_null=True),
        Udf("veil_tuple_pseudonym", sealed(pseudonyms.tuple_pseudonym), (texts, text, text), text, sees_null=True),
        Udf("veil_pseudonym_matches", sealed(pseudonyms.matches), (text,) * 4, "BOOLEAN", sees_null=True),
        Udf("veil_key_version", sealed(lambda _: keyring().current.version), (text,), "INTEGER", arrow=False),
        Udf("veil_shift_days", sealed(shifts), (text, text, text), "INTEGER", sees_null=True),
    )


def _net(data: bytes) -> bytes:
    return b"%d:%b," % (len(data), data)


def _formatter(options: Options) -> Callable[[bytes], str]:
    length = options.length or _DEFAULT_LENGTH.get(options.output, 0)
    if options.output == "hex":
        size = (length + 1) // 2
        return lambda digest: digest[:size].hex()[:length]
    if options.output == "base32":
        return lambda digest: base64.b32encode(digest)[:length].decode()
    if options.output == "uuid":
        return _uuid8
    return lambda digest: str(int.from_bytes(digest[:8], "big") >> 1)


def _uuid8(digest: bytes) -> str:
    """A UUID of version 8 (RFC 9562 section 5.8) from the first 16 bytes, 122 bits of which are kept."""
    number = int.from_bytes(digest[:16], "big")
    number = number & ~(0xF << 76) | 8 << 76
    return str(uuid.UUID(int=number & ~(0x3 << 62) | 0x2 << 62))
