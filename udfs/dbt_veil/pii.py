"""Personal data in text: patterns, with check digits wherever the number has one.

A pattern proposes, a check disposes: a card number must satisfy Luhn, an IBAN its country's length and mod 97, a
national id its own rule. Names, addresses, and anything written out in words are not found.
"""

from __future__ import annotations

import functools
import ipaddress
import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
from stdnum import iban, luhn
from stdnum.be import nn
from stdnum.br import cpf
from stdnum.ca import sin
from stdnum.ch import ssn as ahv
from stdnum.cn import ric
from stdnum.de import idnr
from stdnum.dk import cpr
from stdnum.es import dni, nie
from stdnum.fi import hetu
from stdnum.fr import nir
from stdnum.gb import nhs
from stdnum.in_ import aadhaar
from stdnum.it import codicefiscale
from stdnum.nl import bsn
from stdnum.no import fodselsnummer
from stdnum.pl import pesel
from stdnum.se import personnummer
from stdnum.us import ssn

from dbt_veil.guard import constant, sealed
from dbt_veil.udf import Session, Udf


class PiiError(ValueError):
    """What was asked for is not among the kinds."""


@dataclass(frozen=True)
class Finder:
    """A kind of personal data: what it looks like, and what tells it from what only looks like it."""

    kind: str
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] = bool


def find(text: str, kinds: Collection[str]) -> list[tuple[int, int, str]]:
    """Where ``text`` holds personal data: (start, end, kind), in order, each place once.

    Places that overlap become one, of the kind that begins first.
    """
    found = sorted(
        (match.start(), -match.end(), finder.kind)
        for finder in FINDERS
        if finder.kind in kinds
        for match in finder.pattern.finditer(text)
        if finder.accepts(match.group())
    )
    places: list[tuple[int, int, str]] = []
    for start, negative_end, kind in found:
        if places and start < places[-1][1]:
            first_start, first_end, first_kind = places[-1]
            places[-1] = (first_start, max(first_end, -negative_end), first_kind)
        else:
            places.append((start, -negative_end, kind))
    return places


def kinds_in(text: str, kinds: Collection[str]) -> list[str]:
    """The kinds of personal data in ``text``, each once, sorted."""
    return sorted(
        {
            finder.kind
            for finder in FINDERS
            if finder.kind in kinds and any(finder.accepts(m.group()) for m in finder.pattern.finditer(text))
        }
    )


def scrub(text: str, kinds: Collection[str]) -> str:
    """``text`` with each place that :func:`find` names replaced by its kind in square brackets."""
    for start, end, kind in reversed(find(text, kinds)):
        text = f"{text[:start]}[{kind}]{text[end:]}"
    return text


@functools.lru_cache(maxsize=64)
def parse_kinds(text: str) -> frozenset[str]:
    """Kinds from a JSON list of their names; an empty list is all of them.

    Raises:
        PiiError: it is no such list, or there is no such kind.
    """
    try:
        names = json.loads(text)
        unknown = sorted(set(names) - KINDS)
    except (TypeError, ValueError):
        raise PiiError("the kinds must be a JSON list of names") from None
    if unknown:
        raise PiiError(f"`kinds` must be among {', '.join(sorted(KINDS))}. Got: {', '.join(map(str, unknown))}")
    return frozenset(names) or KINDS


def udfs(session: Session) -> Sequence[Udf]:
    """The UDFs of this family."""

    def pii_kinds(values: pa.ChunkedArray, kinds: pa.ChunkedArray) -> pa.Array:
        wanted = parse_kinds(constant(kinds, "kinds"))
        found = [None if value is None else kinds_in(value, wanted) for value in values.to_pylist()]
        return pa.array(found, pa.list_(pa.string()))

    def scrubbed(values: pa.ChunkedArray, kinds: pa.ChunkedArray) -> pa.Array:
        wanted = parse_kinds(constant(kinds, "kinds"))
        return pa.array([None if value is None else scrub(value, wanted) for value in values.to_pylist()], pa.string())

    text = "VARCHAR"
    return (
        Udf("veil_pii_kinds", sealed(pii_kinds), (text, text), "VARCHAR[]", sees_null=True),
        Udf("veil_scrub", sealed(scrubbed), (text, text), text, sees_null=True),
    )


def _digits(text: str) -> str:
    return "".join(character for character in text if character.isdigit())


def _is_phone(text: str) -> bool:
    return 8 <= len(_digits(text)) <= 15


def _is_card(text: str) -> bool:
    digits = _digits(text)
    return 13 <= len(digits) <= 19 and digits[0] in "23456" and luhn.is_valid(digits)


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_place(text: str) -> bool:
    latitude, longitude = (abs(float(part)) for part in re.findall(r"[0-9]+[.][0-9]+", text))
    return latitude <= 90 and longitude <= 180


def _number(lengths: str, separators: str = " -") -> re.Pattern[str]:
    """Digits in groups of the lengths given, with one separator or none between the groups, and no digit around."""
    groups = f"[{re.escape(separators)}]?".join(f"[0-9]{{{length}}}" for length in lengths.split())
    return re.compile(rf"(?<![0-9A-Za-z]){groups}(?![0-9A-Za-z])")


def _code(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![0-9A-Za-z])(?:{pattern})(?![0-9A-Za-z])", re.IGNORECASE)


# In parts, for they are long; what each finds is said by the kind that uses it.
_USER_PART = r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/@:]+(?::[^\s/@]*)?@[^\s]+"
_USER_FIELD = r"\bhttps?://[^\s?]+\?(?:[^\s]*&)?(?:user|username|login|email|uid)=[^&\s]+"
_ABROAD = r"(?<![\w+])(?:\+|00)[1-9](?:[ ()./-]{0,2}[0-9]){6,14}(?![0-9])"
_NORTH_AMERICAN = r"(?<![\w.])\(?[2-9][0-9]{2}\)?[ .-]{1,2}[0-9]{3}[ .-][0-9]{4}(?!\w)"
_AREA_CODE = r"(?<![\w.])\(?0[1-9][0-9]{1,4}\)?[ ./-]{1,2}[0-9]{2,4}(?:[ .-]?[0-9]{2,4}){1,3}(?!\w)"
_NINO = r"(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]"
_CODICE = r"[A-Z]{6}[0-9LMNPQRSTUV]{2}[A-Z][0-9A-Z]{2}[A-Z][0-9A-Z]{3}[A-Z]"
_PLACE = r"(?<![\w.])[+-]?[0-9]{1,2}\.[0-9]{3,}(?:[,;]\s?|\s)[+-]?[0-9]{1,3}\.[0-9]{3,}(?!\w)"
FINDERS: tuple[Finder, ...] = (
    Finder("url_with_user", re.compile(_USER_PART, re.IGNORECASE)),
    Finder("url_with_user", re.compile(_USER_FIELD, re.IGNORECASE)),
    Finder("email", re.compile(r"[\w.%+'-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}\b")),
    Finder("phone", re.compile(_ABROAD), _is_phone),
    Finder("phone", re.compile(_NORTH_AMERICAN), _is_phone),
    Finder("phone", re.compile(_AREA_CODE), _is_phone),
    Finder("phone", re.compile(r"(?<![\w.])0[1-9][0-9]{8,9}(?!\w)"), _is_phone),
    Finder("iban", _code(r"[A-Z]{2}[0-9]{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,4})?"), iban.is_valid),
    Finder("card", re.compile(r"(?<![0-9])[2-6](?:[ -]?[0-9]){12,18}(?![0-9])"), _is_card),
    Finder("us_ssn", re.compile(r"(?<![0-9-])[0-9]{3}-[0-9]{2}-[0-9]{4}(?![0-9-])"), ssn.is_valid),
    Finder("gb_nhs", _number("3 3 4"), nhs.is_valid),
    Finder("gb_nino", _code(_NINO)),
    Finder("de_idnr", _number("2 3 3 3"), idnr.is_valid),
    Finder("fr_nir", _code(r"[12] ?[0-9]{2} ?[0-9]{2} ?[0-9][0-9AB] ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}"), nir.is_valid),
    Finder("es_dni", _code(r"[0-9]{8}[ -]?[A-Z]"), dni.is_valid),
    Finder("es_nie", _code(r"[XYZ][ -]?[0-9]{7}[ -]?[A-Z]"), nie.is_valid),
    Finder("it_codice_fiscale", _code(_CODICE), codicefiscale.is_valid),
    Finder("nl_bsn", _number("4 2 3", " .-"), bsn.is_valid),
    Finder("nl_bsn", _number("3 3 3", " .-"), bsn.is_valid),
    Finder("be_nn", _number("2 2 2 3 2", " .-"), nn.is_valid),
    Finder("pl_pesel", _number("11"), pesel.is_valid),
    Finder("se_personnummer", _code(r"(?:[0-9]{2})?[0-9]{6}[-+]?[0-9]{4}"), personnummer.is_valid),
    Finder("fi_hetu", _code(r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-Y]"), hetu.is_valid),
    Finder("no_fodselsnummer", _number("6 5"), fodselsnummer.is_valid),
    Finder("dk_cpr", _number("6 4"), cpr.is_valid),
    Finder("ch_ahv", _number("3 4 4 2", " ."), ahv.is_valid),
    Finder("ca_sin", _number("3 3 3"), sin.is_valid),
    Finder("br_cpf", _number("3 3 3 2", ".-"), cpf.is_valid),
    Finder("in_aadhaar", _number("4 4 4"), aadhaar.is_valid),
    Finder("cn_ric", _code(r"[0-9]{17}[0-9X]"), ric.is_valid),
    Finder("ip", re.compile(r"(?<![\w.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?!\w|\.[0-9])"), _is_ip),
    Finder("ip", re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])"), _is_ip),
    Finder("mac", re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}(?![\w:-])")),
    Finder("coordinates", re.compile(_PLACE), _is_place),
)
KINDS = frozenset(finder.kind for finder in FINDERS)
