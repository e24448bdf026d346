"""Made-up names, e-mails and phone numbers for test environments: one for a value, the same each time under one key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt_veil.guard import constant, sealed
from dbt_veil.keys import keyring_source
from dbt_veil.pseudonym import hmac_sha256, message
from dbt_veil.udf import Session, Udf

if TYPE_CHECKING:
    from faker import Faker

# E-mails are at domains reserved for documentation (RFC 2606), phone numbers in a range kept for fiction.
_MAKERS: dict[str, Callable[[Faker], str]] = {
    "name": lambda faker: str(faker.name()),
    "first_name": lambda faker: str(faker.first_name()),
    "last_name": lambda faker: str(faker.last_name()),
    "email": lambda faker: f"{faker.user_name()}.{faker.numerify('####')}@{faker.safe_domain_name()}",
    "phone": lambda faker: str(faker.numerify("+1-%##-555-01##")),
}


Column = pa.ChunkedArray


class FakeError(ValueError):
    """A made-up value cannot be given."""


def faker_of(locale: str) -> Faker:
    """The generator of one locale.

    Raises:
        FakeError: the library is not installed, or has no such locale.
    """
    try:
        from faker import Faker
    except ImportError:
        raise FakeError('made-up values need the library Faker: `pip install "dbt-veil[fake]"`') from None
    try:
        return Faker(locale)
    except (AttributeError, ImportError):
        raise FakeError("`locale` must be one that Faker has, such as en_US") from None


def fake_values(
    values: Sequence[str | None], kind: str, seed: Callable[[bytes], bytes], faker: Faker
) -> list[str | None]:
    """A made-up value for each value, the same for the same one; ``None`` stays ``None``.

    Raises:
        FakeError: there is no such kind.
    """
    if kind not in _MAKERS:
        raise FakeError(f"`what` must be one of {', '.join(_MAKERS)}")
    make, known = _MAKERS[kind], {}
    for value in {value for value in values if value is not None}:
        faker.seed_instance(int.from_bytes(seed(message([value])), "big"))
        known[value] = make(faker)
    return [None if value is None else known[value] for value in values]


def udfs(session: Session) -> Sequence[Udf]:
    """The UDFs of this family."""
    keyring = keyring_source(session.config)

    def fake(
        values: pa.ChunkedArray, domains: pa.ChunkedArray, kinds: pa.ChunkedArray, locales: pa.ChunkedArray
    ) -> pa.Array:
        seed = hmac_sha256(keyring().current.subkey("fake", constant(domains, "domain")))
        faker = faker_of(constant(locales, "locale"))
        return pa.array(fake_values(values.to_pylist(), constant(kinds, "what"), seed, faker), pa.string())

    return (Udf("veil_fake", sealed(fake), ("VARCHAR",) * 4, "VARCHAR", sees_null=True),)
