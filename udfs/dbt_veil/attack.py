"""What an attacker recovers with a list of candidates: by plain and salted digests, in the forms people store."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import zlib
from collections import Counter
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
    "crc32": lambda data: zlib.crc32(data).to_bytes(4, "big"),
    "adler32": lambda data: zlib.adler32(data).to_bytes(4, "big"),
}


def recovered(candidates: Sequence[str], released: Sequence[str], salts: Sequence[str]) -> dict[str, int]:
    """How many released values an attacker with ``candidates`` recovers, by method.

    A candidate is tried as it is, in lower and in upper case, and without outer blanks.

    Args:
        candidates: values the attacker tries.
        released: distinct released values.
        salts: salts the attacker knows; tried before, after, with ``:``, ``-``, ``_``, ``|`` between, and as HMAC key.
    """
    targets = set(released)
    writings = _writings(released)
    cuts = sorted({len(value) for value in released if len(value) >= _SHORTEST})
    found: dict[str, str] = {}
    for candidate in candidates:
        for form in {candidate, candidate.strip(), candidate.lower(), candidate.upper()}:
            for method, digest in _digests(form.encode(), salts):
                for write in writings:
                    text = write(digest)
                    if text in targets:
                        found.setdefault(text, method)
                    for cut in cuts:
                        if cut < len(text) and text[:cut] in targets:
                            found.setdefault(text[:cut], f"{method}, cut")
                if len(digest) == 4 and (text := str(int.from_bytes(digest, "big"))) in targets:
                    found.setdefault(text, method)
    return dict(Counter(found.values()))


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

    def dictionary(candidates: list[str], released: list[str], salts: list[str]) -> list[dict[str, str | int]]:
        found = recovered(candidates, released, salts)
        return [{"method": method, "recovered": count} for method, count in sorted(found.items())]

    def encoded(values: pa.ChunkedArray) -> pa.Array:
        rows = ([] if value is None else encodings(value) for value in values.to_pylist())
        return pa.array([[{"method": method, "value": text} for method, text in row] for row in rows], pairs)

    texts = "VARCHAR[]"
    counts = "STRUCT(method VARCHAR, recovered BIGINT)[]"
    return (
        Udf("veil_recovered", sealed(dictionary), (texts, texts, texts), counts, arrow=False),
        Udf("veil_encodings", sealed(encoded), ("VARCHAR",), "STRUCT(method VARCHAR, value VARCHAR)[]", sees_null=True),
    )


def _digests(data: bytes, salts: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for name, message in _messages(data, salts):
        for method, digest in _DIGESTS.items():
            yield f"{method}{name}", digest(message)
    for salt in salts:
        for method in ("md5", "sha1", "sha256", "sha512"):
            yield f"hmac {method}, known salt", hmac.digest(salt.encode(), data, method)


def _messages(data: bytes, salts: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    yield "", data
    for salt in salts:
        for between in (b"", b":", b"-", b"_", b"|"):
            yield ", known salt", salt.encode() + between + data
            yield ", known salt", data + between + salt.encode()


def _writings(released: Sequence[str]) -> list[Callable[[bytes], str]]:
    """The ways of writing a digest down that some released value may have come from."""
    values = [value for value in released if value]
    ways: list[Callable[[bytes], str]] = []
    if any(re.fullmatch("[0-9a-f]+", value) for value in values):
        ways.append(bytes.hex)
    if any(re.fullmatch("[0-9A-F]+", value) for value in values):
        ways.append(lambda digest: digest.hex().upper())
    if any(re.fullmatch("[0-9A-Za-z+/]+=*", value) and not re.fullmatch("[0-9a-f]+", value) for value in values):
        ways.append(lambda digest: base64.b64encode(digest).decode())
    if any(re.fullmatch("[0-9A-Za-z_-]+=*", value) and not re.fullmatch("[0-9a-f]+", value) for value in values):
        ways.append(lambda digest: base64.urlsafe_b64encode(digest).decode())
    return ways


_ROT13 = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "NOPQRSTUVWXYZABCDEFGHIJKLMnopqrstuvwxyzabcdefghijklm"
)
