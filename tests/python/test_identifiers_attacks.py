"""The attack tests on releases that are known to fall to them and on ones that are known to stand, in one build."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from dbt_veil.keys import new_keyring, write_keyring
from dbt_veil.pseudonym import Pseudonyms
from harness import Project, Result


def _tests(column: str, **tests: dict[str, Any]) -> dict[str, Any]:
    """A column's YAML with tests by the name they get: ``{name: {test: arguments}}``."""
    return {
        "name": column,
        "data_tests": [{kind: {"name": name} | body} for name, of in tests.items() for kind, body in of.items()],
    }


def _test(kind: str, config: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    return {f"veil.{kind}": {"arguments": arguments} | ({"config": config} if config else {})}


PINS = {"candidates": "ref('pins')", "candidate_column": "pin"}
SOURCE = {"source": "ref('customers')", "identifier": "email"}


@pytest.fixture(scope="module")
def built(shared_project: Project) -> tuple[Project, Result]:
    project = shared_project
    write_keyring(project.folder / "ring.json", new_keyring(), replace_existing=False)
    project.profile(config={"keyring_file": "ring.json"})
    project.configure(models={"+materialized": "table"})
    project.model("pins", "select lpad(i::varchar, 4, '0') as pin from range(10000) as numbers (i)")
    project.model(
        "accounts",
        """
        select
            pins.pin,
            md5(pins.pin) as plain,
            upper(sha256(pins.pin)) as upper_hex,
            left(sha256(pins.pin), 12) as truncated,
            sha256('pepper' || pins.pin) as salted,
            {{ veil.pseudonym('pin', domain='accounts', alias='pins') }} as keyed,
            {{ veil.pseudonym('pin', domain='accounts', alias='pins', length=64) }} as keyed_whole
        from {{ ref('pins') }} as pins
        where pins.pin::integer % 20 = 3
        """,
        columns=[
            _tests("plain", plain_falls=_test("resists_dictionary", **PINS)),
            _tests("upper_hex", upper_falls=_test("resists_dictionary", **PINS)),
            _tests("truncated", truncated_falls=_test("resists_dictionary", **PINS)),
            _tests(
                "salted",
                salted_stands=_test("resists_dictionary", **PINS),
                salted_falls=_test("resists_dictionary", {"where": "pin = '0003'"}, **PINS, salts=["pepper"]),
                salted_empty=_test("resists_dictionary", {"where": "1 = 0"}, **PINS, salts="pepper"),
            ),
            _tests("keyed", keyed_stands=_test("resists_dictionary", **PINS)),
            _tests("keyed_whole", whole_stands=_test("resists_dictionary", **PINS)),
        ],
    )
    for column in ("plain", "salted", "keyed"):
        salts = ", salts=['pepper']" if column == "salted" else ""
        call = f"veil.resists_dictionary(ref('accounts'), '{column}', ref('pins'), 'pin'{salts})"
        project.model(f"recovered_{column}", "{{ " + call + " }}")
    project.model(
        "notes",
        """
        select * from (values
            (1, 'mail me: ann@example.com', 'fine', 'x'), (2, 'card 4111 1111 1111 1111', 'well', 'x'),
            (3, 'bob@example.com and 192.0.2.1', 'good', 'x'), (4, null, null, 'x')
        ) as notes (id, note, clean, "odd ""name")
        """,
        data_tests=[
            {"veil.no_pii": {"name": "all_text_falls"}},
            {"veil.no_pii": {"name": "kinds_narrow", "arguments": {"columns": "note", "kinds": ["iban"]}}},
            {
                "veil.no_pii": {
                    "name": "where_narrow",
                    "arguments": {"columns": ["note"]},
                    "config": {"where": "id = 4"},
                }
            },
        ],
        columns=[
            _tests("note", note_falls=_test("no_pii")),
            _tests("clean", clean_stands=_test("no_pii")),
        ],
    )
    project.model("found", "{{ veil.no_pii(ref('notes')) }}")
    project.model(
        "customers",
        """
        select i as id, 'user' || (i * 7919 % 1000) || '@example.com' as email, 100000 + i * 7919 % 1000 as "number"
        from range(200) as numbers (i)
        """,
    )
    project.model(
        "released",
        """
        select
            customers.id,
            base64(customers.email::blob) as encoded,
            reverse(customers.email) as backwards,
            lag(customers.email, 1, 'user0@example.com') over (order by customers.id) as permuted,
            dense_rank() over (order by customers."number") as ranked,
            'customer ' || customers.email || ' paid' as note,
            'no' as short,
            {{ veil.pseudonym('email', domain='customers', alias='customers') }} as keyed,
            {{ veil.pseudonym('number', domain='customers', output='bigint', alias='customers') }} as keyed_number
        from {{ ref('customers') }} as customers
        """,
        columns=[
            _tests("encoded", encoded_falls=_test("not_reversible", **SOURCE)),
            _tests("backwards", backwards_falls=_test("not_reversible", **SOURCE)),
            _tests("permuted", permuted_falls=_test("not_reversible", **SOURCE)),
            _tests(
                "ranked",
                ranked_unpaired=_test("not_reversible", source="ref('customers')", identifier="number"),
                ranked_falls=_test("not_reversible", source="ref('customers')", identifier="number", paired_by=["id"]),
            ),
            _tests(
                "keyed",
                keyed_irreversible=_test("not_reversible", **SOURCE, paired_by=["id"]),
                keyed_overlaps_nothing=_test("no_identifier_overlap", source="ref('customers')", identifiers=["email"]),
            ),
            _tests(
                "keyed_number",
                number_irreversible=_test(
                    "not_reversible", source="ref('customers')", identifier="number", paired_by="id"
                ),
            ),
            _tests(
                "note",
                note_overlaps=_test("no_identifier_overlap", source="ref('customers')", identifiers=["email"]),
            ),
        ],
    )
    project.model(
        "overlaps",
        """{{ veil.no_identifier_overlap(ref('released'), source=ref('customers'), identifiers=['email'],
            columns=['permuted', 'note', 'short', 'keyed']) }}""",
    )
    project.model(
        "table_out",
        """
        select * from (values ('021', 30, 1), ('021', 30, 2), ('036', 40, 3), ('100', 50, 4), (null, 60, 5))
        as t (zip, age, id)
        """,
        data_tests=[
            {"veil.linkage": {"name": name, "arguments": _linkage | arguments}} for name, arguments in _linkages.items()
        ],
    )
    project.model(
        "known_people",
        """
        select * from (values ('036', 40, 3), ('100', 50, 9), ('021', 30, 1), ('999', 1, 5), (null, 60, 5))
        as t (zip, age, person)
        """,
    )
    project.model(
        "links",
        """{{ veil.linkage(ref('table_out'), ref('known_people'), ['zip', 'age'], release_id='id',
            auxiliary_id='person') }}""",
    )
    project.model("links_blind", "{{ veil.linkage(ref('table_out'), ref('known_people'), ['zip', 'age']) }}")
    for number, call in enumerate(_refused):
        project.model(f"refused_{number}", "{% if execute %}{{ " + call + " }}{% endif %} -- {{ ref('pins') }}")
    ran, tested = project.dbt("run"), project.dbt("test")
    return project, Result(ran.success, ran.messages + tested.messages, ran.nodes | tested.nodes)


_linkage: dict[str, Any] = {"auxiliary": "ref('known_people')", "quasi_identifiers": ["zip", "age"]}
_linkages: dict[str, dict[str, Any]] = {
    "linkage_falls": {"release_id": "id", "auxiliary_id": "person"},
    "linkage_falls_below": {"release_id": "id", "auxiliary_id": "person", "max_share": 0.39},
    "linkage_stands": {"release_id": "id", "auxiliary_id": "person", "max_share": 0.4},
}

_refused = {
    "veil.linkage(ref('pins'), ref('pins'), [])": "`quasi_identifiers` must be a list of names, with at least one",
    "veil.linkage(ref('pins'), ref('pins'), ['a'], release_id='a')": "must be given together, or neither",
    "veil.resists_dictionary(ref('pins'), none, ref('pins'), 'pin')": "`column_name` must be a text",
    "veil.no_identifier_overlap(ref('pins'), ref('pins'), ['b'], shortest=0)": "`shortest` must be 1 or more",
    "veil.no_pii('(select 1)')": "with `where`, give `columns`",
    "veil.not_reversible(ref('pins'), 'a', ref('pins'), 'b', max_share=2)": "`max_share` must be between 0 and 1",
}

FALLS = {
    "plain_falls": 1,
    "upper_falls": 1,
    "truncated_falls": 1,
    "salted_falls": 1,
    "all_text_falls": 3,
    "note_falls": 3,
    "encoded_falls": 1,
    "backwards_falls": 1,
    "permuted_falls": 1,
    "ranked_falls": 1,
    "note_overlaps": 1,
    "linkage_falls": 1,
    "linkage_falls_below": 1,
}
STANDS = [
    "salted_stands",
    "salted_empty",
    "keyed_stands",
    "whole_stands",
    "kinds_narrow",
    "where_narrow",
    "clean_stands",
    "ranked_unpaired",
    "keyed_irreversible",
    "keyed_overlaps_nothing",
    "number_irreversible",
    "linkage_stands",
]


@pytest.mark.parametrize(("name", "failures"), FALLS.items())
def test_what_is_weak_falls(built: tuple[Project, Result], name: str, failures: int) -> None:
    _, result = built
    assert (result.status(name), result.failures(name)) == ("fail", failures), result.message(name)


@pytest.mark.parametrize("name", STANDS)
def test_what_is_strong_stands(built: tuple[Project, Result], name: str) -> None:
    _, result = built
    assert result.status(name) == "pass", result.message(name)


def test_every_pin_is_recovered_from_a_hash_and_none_from_a_pseudonym(built: tuple[Project, Result]) -> None:
    project, _ = built
    assert project.query("select * from main.recovered_plain") == [("md5", 500, 500)]
    assert project.query("select * from main.recovered_salted") == [("sha256, known salt", 500, 500)]
    assert project.query("select * from main.recovered_keyed") == []


def test_knowing_every_true_value_but_not_the_key_recovers_none(built: tuple[Project, Result]) -> None:
    project, _ = built
    released = {value for (value,) in project.query("select keyed from main.accounts")}
    truth = project.query("select pin from main.accounts")

    def column(values: list[str]) -> pa.ChunkedArray:
        return pa.chunked_array([pa.array(values, pa.string())])

    for ring in (new_keyring(), new_keyring()):
        attacker = Pseudonyms(lambda ring=ring: ring)  # type: ignore[misc]
        pins = [pin for (pin,) in truth]
        guesses = attacker.pseudonym(
            column(pins), column(["accounts"] * len(pins)), column(['{"output": "hex"}'] * len(pins))
        )
        assert not released & set(guesses.to_pylist())


def test_kinds_are_counted_by_column(built: tuple[Project, Result]) -> None:
    project, _ = built
    assert project.query("select * from main.found order by all") == [
        ("note", "card", 1),
        ("note", "email", 2),
        ("note", "ip", 1),
    ]


def test_overlaps_are_counted_equal_and_contained(built: tuple[Project, Result]) -> None:
    project, _ = built
    assert project.query("select * from main.overlaps order by all")[:2] == [
        ("note", "email", "contained", 200),
        ("permuted", "email", "equal", 199),
    ]
    assert project.scalar("select count(*) from main.overlaps where released_column in ('keyed', 'short')") == 0


def test_linkage_counts_unique_and_correct_matches(built: tuple[Project, Result]) -> None:
    project, _ = built
    assert project.query("select * from main.links") == [(5, 3, 2, 0.4)]
    assert project.query("select * from main.links_blind") == [(5, 3, 3, 0.6)]


def test_no_failure_shows_a_value(built: tuple[Project, Result]) -> None:
    _, result = built
    assert "ann@example.com" not in result.text
    assert "4111 1111" not in result.text


@pytest.mark.parametrize("number", range(len(_refused)))
def test_wrong_arguments_are_refused(built: tuple[Project, Result], number: int) -> None:
    _, result = built
    assert list(_refused.values())[number] in result.message(f"refused_{number}")
