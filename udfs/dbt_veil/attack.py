"""Guesses of an attacker who has a list of candidates: their plain and salted digests, in the forms people store."""

from __future__ import annotations

import base64
import hashlib
import hmac
import zlib
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from dbt_veil.guard import sealed
from dbt_veil.udf import Session, Udf

_SHORTEST = 6  # a truncated digest of fewer characters equals others by chance
_DIGESTS: dict[str, Callable[[bytes], bytes]] = {
    "md5": lambda data: hashlib.md5(data, usedforsecurity=False).digest(),
    "sha1": lambda data: hashlib.sha1(data, usedforsecurity=False).digest(),
    "sha224": lambda data: hashlib.sha224(data).digest(),
    "sha256": lambda data: hashlib.sha256(data).digest(),
    "sha384": lambda data: hashlib.sha384(data).digest(),
    "sha512": lambda data: hashlib.sha512(data).digest(),
    "sha3_256": lambda data: hashlib.sha3_256(data).digest(),
    "blake2b": lambda data: hashlib.blake2b(data).digest(),
    "blake2b_256": lambda data: hashlib.blake2b(data, digest_size=32).digest(),
    "blake2s": lambda data: hashlib.blake2s(data).digest(),
}


def guesses(candidate: str, salts: Sequence[str], lengths: Sequence[int]) -> Iterator[tuple[str, str]]:
    """What a released value may be if it was made from ``candidate`` without a secret: (method, value).

    Args:
        candidate: the value as the attacker has it; also tried in lower and upper case and without outer blanks.
        salts: salts the attacker knows; tried before, after, with ``:``, ``-``, ``_``, ``|`` between, and as HMAC key.
        lengths: lengths of released values; a longer digest is cut to each of them.
    """
    for form in dict.fromkeys((candidate, candidate.strip(), candidate.lower(), candidate.upper())):
        data = form.encode()
        for name, message in _messages(data, salts):
            for method, digest in _DIGESTS.items():
                yield from _written(f"{method}{name}", digest(message), lengths)
            for method, checksum in (("crc32", zlib.crc32(message)), ("adler32", zlib.adler32(message))):
                yield f"{method}{name}", str(checksum)
                yield from _written(f"{method}{name}", checksum.to_bytes(4, "big"), lengths)
        for salt in salts:
            for method in ("md5", "sha1", "sha256", "sha512"):
                yield from _written(f"hmac {method}, known salt", hmac.digest(salt.encode(), data, method), lengths)


def encodings(value: str) -> Iterator[tuple[str, str]]:
    """Simple encodings of ``value`` that anybody can undo: (name, text)."""
    data = value.encode()
    yield "plain", value
    yield "lower case", value.lower()
    yield "upper case", value.upper()
    yield "without blanks and punctuation", "".join(c for c in value if c.isalnum())
    yield "reversed", value[::-1]
    yield "rot13", value.translate(_ROT13)
    yield "hex", data.hex()
    yield "hex, upper case", data.hex().upper()
    yield "base64", base64.b64encode(data).decode()
    yield "base64 without padding", base64.b64encode(data).decode().rstrip("=")
    yield "base64url", base64.urlsafe_b64encode(data).decode()
    yield "base64url without padding", base64.urlsafe_b64encode(data).decode().rstrip("=")
    yield "base32", base64.b32encode(data).decode()
    yield "base32 without padding", base64.b32encode(data).decode().rstrip("=")
    if value.isdecimal():
        yield "digits complemented", "".join(str(9 - int(c)) for c in value)
        yield "without leading zeros", value.lstrip("0") or "0"
        yield "hexadecimal number", format(int(value), "x")


def udfs(session: Session) -> Sequence[Udf]:
    """The UDFs of this family."""
    pairs = pa.list_(pa.struct([("method", pa.string()), ("value", pa.string())]))

    def as_pairs(found: Iterator[tuple[str, str]]) -> list[dict[str, str]]:
        return [{"method": method, "value": value} for value, method in {v: m for m, v in found}.items()]

    def dictionary(values: pa.ChunkedArray, salts: pa.ChunkedArray, lengths: pa.ChunkedArray) -> pa.Array:
        rows = zip(values.to_pylist(), salts.to_pylist(), lengths.to_pylist(), strict=True)
        return pa.array([[] if v is None else as_pairs(guesses(v, s or (), n or ())) for v, s, n in rows], pairs)

    def encoded(values: pa.ChunkedArray) -> pa.Array:
        return pa.array([[] if v is None else as_pairs(encodings(v)) for v in values.to_pylist()], pairs)

    returns = "STRUCT(method VARCHAR, value VARCHAR)[]"
    parameters = ("VARCHAR", "VARCHAR[]", "BIGINT[]")
    return (
        Udf("veil_guesses", sealed(dictionary), parameters, returns, sees_null=True),
        Udf("veil_encodings", sealed(encoded), ("VARCHAR",), returns, sees_null=True),
    )


def _messages(data: bytes, salts: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    yield "", data
    for salt in salts:
        for between in (b"", b":", b"-", b"_", b"|"):
            yield ", known salt", salt.encode() + between + data
            yield ", known salt", data + between + salt.encode()


def _written(method: str, digest: bytes, lengths: Sequence[int]) -> Iterator[tuple[str, str]]:
    hexadecimal = digest.hex()
    standard, safe = base64.b64encode(digest).decode(), base64.urlsafe_b64encode(digest).decode()
    for text in dict.fromkeys((hexadecimal, hexadecimal.upper(), standard, safe)):
        yield method, text
        for length in lengths:
            if _SHORTEST <= length < len(text):
                yield method, text[:length]


_ROT13 = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "NOPQRSTUVWXYZABCDEFGHIJKLMnopqrstuvwxyzabcdefghijklm"
)
