"""Format-preserving encryption: NIST SP 800-38G FF1, by the library libffx, under a key of its own for each domain."""

from __future__ import annotations

import functools
import json
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from ffx import FF1
from stdnum import luhn

from dbt_veil.guard import constant, sealed
from dbt_veil.keys import Key, Keyring, keyring_source
from dbt_veil.udf import Session, Udf

ALPHABETS = {
    "digits": string.digits,
    "upper_alphanumeric": string.digits + string.ascii_uppercase,
    "alphanumeric": string.digits + string.ascii_uppercase + string.ascii_lowercase,
}
_SMALLEST_DOMAIN = 1_000_000  # SP 800-38G Rev. 1 (draft, 2019), section 5.1


class FpeError(ValueError):
    """A value cannot be encrypted; the text counts such values and holds none."""


@dataclass(frozen=True)
class Format:
    """What is kept of a value's form.

    Attributes:
        alphabet: the name of an alphabet, or its characters.
        separators: characters that stay where they are.
        check: ``luhn`` computes the last digit anew, so that a valid number stays one; ``none``.
        column: the column's name, for messages.
    """

    alphabet: str = "digits"
    separators: str = " -"
    check: str = "none"
    column: str = ""

    def __post_init__(self) -> None:
        letters = self.letters
        if len(letters) < 2 or len(set(letters)) < len(letters):
            raise FpeError(f"`alphabet` must be one of {', '.join(ALPHABETS)}, or 2 or more different characters")
        if set(letters) & set(self.separators):
            raise FpeError("`alphabet` and `separators` must have no character in common")
        if self.check not in ("none", "luhn") or (self.check == "luhn" and letters != string.digits):
            raise FpeError("`check` must be none, or luhn with the alphabet digits")

    @property
    def letters(self) -> str:
        """The characters of the alphabet, in order."""
        return ALPHABETS.get(self.alphabet, self.alphabet)

    @property
    def shortest(self) -> int:
        """The fewest characters of the alphabet that a value needs: FF1 asks for a million values or more."""
        length = 2
        while len(self.letters) ** length < _SMALLEST_DOMAIN:
            length += 1
        return length + (self.check == "luhn")


class Cipher:
    """Encrypts and decrypts the values of one domain and format under one key."""

    def __init__(self, key: Key, domain: str, form: Format) -> None:
        self._form = form
        self._ff1 = FF1(key.subkey("fpe", domain), alphabet=form.letters)

    def encrypt(self, values: Sequence[str | None]) -> list[str | None]:
        """Encrypt each value; ``None`` stays ``None``.

        Raises:
            FpeError: a value is too short, has a character that is neither in the alphabet nor a separator, or a check
                digit that is wrong.
        """
        distinct = {value for value in values if value is not None}
        self._refuse(distinct)
        encrypted = {value: self._converted(value, self._ff1.encrypt) for value in distinct}
        return [None if value is None else encrypted[value] for value in values]

    def decrypt(self, values: Sequence[str]) -> list[str | None]:
        """Decrypt each value.

        Raises:
            FpeError: as for :meth:`encrypt`.
        """
        self._refuse(set(values))
        return [self._converted(value, self._ff1.decrypt) for value in values]

    def _converted(self, value: str, convert: Callable[[str], str]) -> str:
        kept = self._form.separators
        letters = "".join(letter for letter in value if letter not in kept)
        if self._form.check == "luhn":
            body = convert(letters[:-1])
            converted = iter(body + luhn.calc_check_digit(body))
        else:
            converted = iter(convert(letters))
        return "".join(letter if letter in kept else next(converted) for letter in value)

    def _refuse(self, values: set[str]) -> None:
        form = self._form
        known = set(form.letters)
        short = strange = wrong = 0
        for value in values:
            letters = [letter for letter in value if letter not in form.separators]
            if not known.issuperset(letters):
                strange += 1
            elif len(letters) < form.shortest:
                short += 1
            elif form.check == "luhn" and not luhn.is_valid("".join(letters)):
                wrong += 1
        reasons = (
            (strange, "have a character that is neither in the alphabet nor among the separators"),
            (short, f"have fewer than {form.shortest} characters of the alphabet, and FF1 needs a million values"),
            (wrong, "have a check digit that is not Luhn's"),
        )
        problems = [f"{count} values {reason}" for count, reason in reasons if count]
        if problems:
            column = f"column {form.column}: " if form.column else ""
            raise FpeError(f"{column}of {len(values)} distinct values of this batch, {'; '.join(problems)}")


@functools.lru_cache(maxsize=256)
def parse_format(text: str) -> Format:
    """A format from a JSON object.

    Raises:
        FpeError: it is no such object, or has an option that cannot be.
    """
    try:
        return Format(**json.loads(text))
    except (TypeError, json.JSONDecodeError):
        raise FpeError("the options must be a JSON object of alphabet, separators, check, column") from None


def cipher_source(keyring: Callable[[], Keyring]) -> Callable[[str, str, int | None], Cipher]:
    """A function from domain, options and the key's version (``None`` is the current key) to a cipher, made once."""
    ciphers: dict[tuple[str, str, int], Cipher] = {}

    def cipher(domain: str, options: str, version: int | None = None) -> Cipher:
        key = keyring().current if version is None else keyring().version(version)
        if key is None:
            raise FpeError(f"the keyring has no key of version {version}")
        name = (domain, options, key.version)
        if name not in ciphers:
            ciphers[name] = Cipher(key, domain, parse_format(options))
        return ciphers[name]

    return cipher


def udfs(session: Session) -> Sequence[Udf]:
    """The UDFs of this family."""
    cipher = cipher_source(keyring_source(session.config))

    def fpe(values: pa.ChunkedArray, domains: pa.ChunkedArray, options: pa.ChunkedArray) -> pa.Array:
        of = cipher(constant(domains, "domain"), constant(options, "options"), None)
        return pa.array(of.encrypt(values.to_pylist()), pa.string())

    return (Udf("veil_fpe", sealed(fpe), ("VARCHAR", "VARCHAR", "VARCHAR"), "VARCHAR", sees_null=True),)
