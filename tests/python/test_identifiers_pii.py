"""What the finder of personal data finds, what it leaves alone, and the guesses of the attacks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import zlib

import pytest
from dbt_veil.attack import encodings, recovered
from dbt_veil.pii import KINDS, PiiError, find, kinds_in, parse_kinds, scrub

# Published examples: of the standards, of the issuing offices, or made with the check rule of the number.
FOUND = [
    ("email", "write to ann.o'neil+test@mail.example.co.uk, please"),
    ("email", "jörg@exämple.de"),
    ("phone", "call +49 (0)30 123456-78 now"),
    ("phone", "0049 30 12345678"),
    ("phone", "(212) 555-0134"),
    ("phone", "tel. 212-555-0134."),
    ("phone", "030/1234 5678"),
    ("phone", "020 7946 0958"),
    ("iban", "GB82 WEST 1234 5698 7654 32"),
    ("iban", "pay to DE89370400440532013000 soon"),
    ("card", "4111 1111 1111 1111"),
    ("card", "card:5500000000000004;"),
    ("us_ssn", "SSN 536-22-8726"),
    ("gb_nhs", "NHS 943 476 5870"),
    ("gb_nino", "AB 12 34 56 C"),
    ("de_idnr", "36 574 261 809"),
    ("fr_nir", "2 95 10 99 126 111 93"),
    ("es_dni", "54362315K"),
    ("es_nie", "X2482300W"),
    ("it_codice_fiscale", "RCCMNL83S18D969H"),
    ("nl_bsn", "111222333"),
    ("be_nn", "85.07.30-033 28"),
    ("pl_pesel", "44051401359"),
    ("se_personnummer", "880320-0016"),
    ("fi_hetu", "131052-308T"),
    ("no_fodselsnummer", "151086 95088"),
    ("dk_cpr", "211062-5629"),
    ("ch_ahv", "756.9217.0769.85"),
    ("ca_sin", "123-456-782"),
    ("br_cpf", "390.533.447-05"),
    ("in_aadhaar", "2341 2341 2346"),
    ("cn_ric", "360426199101010071"),
    ("ip", "from 192.0.2.17:"),
    ("ip", "at 2001:db8::8a2e:370:7334 today"),
    ("mac", "00:1B:44:11:3A:B7"),
    ("coordinates", "seen at 48.13743, 11.57549 at noon"),
    ("url_with_user", "https://ann:secret@example.com/x"),
    ("url_with_user", "https://example.com/p?x=1&user=ann"),
]

CLEAN = [
    "",
    "The patient is well, 37.5 degrees, 120/80, weight 80.5 kg.",
    "2024-05-17 12:30:45",
    "version 1.2.3, see section 4.5.6",
    "4111 1111 1111 1112",
    "DE89370400440532013001",
    "order 12345",
    "at noon @ the park",
    "ratio 0.123, 95.5",
    "https://example.com/page?x=1",
    "999.999.999.999",
    "12:30:45",
    "000-12-3456",
]


@pytest.mark.parametrize(("kind", "text"), FOUND)
def test_what_is_personal_is_found(kind: str, text: str) -> None:
    assert kind in kinds_in(text, KINDS)


@pytest.mark.parametrize("text", CLEAN)
def test_what_is_not_personal_is_left_alone(text: str) -> None:
    assert kinds_in(text, KINDS) == []
    assert scrub(text, KINDS) == text


@pytest.mark.parametrize(("kind", "text"), FOUND)
def test_scrubbed_text_is_clean(kind: str, text: str) -> None:
    assert kinds_in(scrub(text, KINDS), KINDS) == []


def test_scrubbing_replaces_by_kind_and_keeps_the_rest() -> None:
    text = "Ann (ann@example.com) paid with 4111 1111 1111 1111 from 192.0.2.17."
    assert scrub(text, KINDS) == "Ann ([email]) paid with [card] from [ip]."
    assert scrub(text, {"card"}) == "Ann (ann@example.com) paid with [card] from 192.0.2.17."


def test_overlapping_places_are_one() -> None:
    text = "https://ann:x@example.com/p"
    assert find(text, KINDS) == [(0, len(text), "url_with_user")]


def test_kinds_are_checked() -> None:
    assert parse_kinds("[]") == KINDS
    assert len([kind for kind in KINDS if kind[2:3] == "_"]) >= 12
    with pytest.raises(PiiError, match="Got: name"):
        parse_kinds('["email", "name"]')
    with pytest.raises(PiiError, match="must be a JSON list"):
        parse_kinds("{")


def test_a_long_text_takes_no_long_time() -> None:
    import time

    began = time.perf_counter()
    for text in ("a" * 50_000, "1" * 50_000, "1 " * 25_000, "a.b-" * 12_000 + "@", "+1 " * 20_000, "00:" * 20_000):
        kinds_in(text, KINDS)
    assert time.perf_counter() - began < 10


def test_the_attacker_recovers_what_people_store() -> None:
    pin = b"1234"
    stored = {
        hashlib.md5(pin).hexdigest(): "md5",
        hashlib.sha1(pin).hexdigest().upper(): "sha1",
        hashlib.sha256(pin).hexdigest()[:12]: "sha256, cut",
        base64.b64encode(hashlib.sha512(pin).digest()).decode(): "sha512",
        base64.urlsafe_b64encode(hashlib.sha256(pin).digest()).decode()[:20]: "sha256, cut",
        hashlib.blake2b(pin).hexdigest(): "blake2b",
        hashlib.blake2s(pin).hexdigest(): "blake2s",
        f"{zlib.crc32(pin):08x}": "crc32",
        str(zlib.crc32(pin)): "crc32",
        hashlib.sha256(b"pepper" + pin).hexdigest(): "sha256, known salt",
        hashlib.sha256(pin + b":" + b"pepper").hexdigest(): "sha256, known salt",
        hmac.digest(b"pepper", pin, "sha256").hex(): "hmac sha256, known salt",
    }
    for value, method in stored.items():
        assert recovered(["1233", "1234"], [value], ["pepper"]) == {method: 1}
        assert recovered(["1233", "1235"], [value], ["pepper"]) == {}
    assert sum(recovered(["1234"], list(stored), ["pepper"]).values()) == len(stored)
    assert recovered(["1234"], [hashlib.sha256(b"other" + pin).hexdigest()], ["pepper"]) == {}
    assert recovered([" Ann "], [hashlib.md5(b"ANN").hexdigest()], []) == {}
    assert recovered(["Ann"], [hashlib.md5(b"ANN").hexdigest()], []) == {"md5": 1}


def test_what_is_short_proves_nothing() -> None:
    assert recovered([str(n) for n in range(1000)], ["a", "3f", "81dc9"], []) == {}
    assert recovered(["1"], [], ["pepper"]) == {}


def test_simple_encodings_are_known() -> None:
    known = {value for _, value in encodings("Ann-01")}
    assert {"Ann-01", "ann-01", "Ann01", "10-nnA", "Naa-01", "416e6e2d3031", "QW5uLTAx"} <= known
    assert {"9876", "123", "7b", "3210"} <= {value for _, value in encodings("0123")}
