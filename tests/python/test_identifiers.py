"""Pseudonyms and masks through dbt: one build of many models, and its parts."""

from __future__ import annotations

import pytest
from dbt_veil.keys import new_keyring, write_keyring
from harness import Project, Result


@pytest.fixture(scope="module")
def built(shared_project: Project) -> tuple[Project, Result]:
    project = shared_project
    write_keyring(project.folder / "ring.json", new_keyring(), replace_existing=False)
    project.profile(config={"keyring_file": "ring.json"})
    project.configure(models={"+materialized": "table"})
    project.model("a_view", "select {{ veil.pseudonym('a', domain='d') }} as x", config={"materialized": "view"})
    project.model("numbers", _numbers)
    project.model("tuples", _tuples)
    project.model("masks", _masks)
    project.model("dispatched", _dispatched)
    for name, call in _refused.items():
        project.model(name, "select {% if execute %}{{ " + call[0] + " }}{% endif %} as x from source")
    return project, project.dbt("build")


_numbers = """
with source_rows as (
    select 42::integer as i, 42::bigint as b, '42' as t, '042' as z, 9007199254740993 as big,
    '9007199254740992' as near, null::integer as missing, 'Ann ' as "na""me"
)
select
    {{ veil.pseudonym('i', domain='patients') }} as from_integer,
    {{ veil.pseudonym('b', domain='patients') }} as from_bigint,
    {{ veil.pseudonym('t', domain='patients', alias='source_rows') }} as from_text,
    {{ veil.pseudonym(['t'], domain='patients') }} as from_list,
    {{ veil.pseudonym('z', domain='patients') }} as from_padded,
    {{ veil.pseudonym('t', domain='staff') }} as other_domain,
    {{ veil.pseudonym('big', domain='patients') }} as big,
    {{ veil.pseudonym('near', domain='patients') }} as near,
    {{ veil.pseudonym('missing', domain='patients') }} as missing,
    {{ veil.pseudonym('t', domain='patients', output='uuid') }} as as_uuid,
    {{ veil.pseudonym('t', domain='patients', output='bigint') }} as as_bigint,
    {{ veil.pseudonym('t', domain='patients', version_prefix='true', length='16') }} as with_version,
    {{ veil.pseudonym('na"me', domain="o'hara", normalize=['trim', 'lower']) }} as hostile
from source_rows
"""

_tuples = """
with source_rows (a, b) as (
    values ('ab', 'c'), ('a', 'bc'), ('123-', '456'), ('123', '-456'), ('a', null), (null, 'a'), ('a', ''), ('', 'a'),
    (null, null)
)
select a, b, {{ veil.pseudonym(['a', 'b'], domain='patients') }} as pseudonym from source_rows
"""

_masks = """
with source_rows (card) as (values ('4111111111111111'), ('1234'), ('12345'), ('é€ñ‑ü1'), (''), (null))
select
    card,
    {{ veil.partial('card', last=4) }} as last_four,
    {{ veil.partial('card', first=1, last=1, keep_length=false, fill='x') }} as ends,
    {{ veil.redact('card') }} as redacted,
    {{ veil.redact('card', text="it's gone", nulls='hide') }} as hidden
from source_rows
"""

_dispatched = """
with source_rows as (select 'ann@example.com' as email, 4111 as card)
select
    {{ veil.masked({'name': 'email', 'mask': {'kind': 'pseudonym', 'domain': 'patients', 'length': 16}}) }} as email,
    {{ veil.masked({'name': 'card', 'mask': {'kind': 'partial', 'last': '1'}}, alias='source_rows') }} as card,
    {{ veil.masked({'name': 'card', 'mask': 'redact'}) }} as gone
from source_rows
"""

_refused = {
    "no_domain": (
        "veil.pseudonym('email')",
        "veil.pseudonym(): `domain` is missing: the name of the realm in which pseudonyms join, "
        "such as `domain: patients`",
    ),
    "bare_mask": (
        "veil.masked({'name': 'email', 'mask': 'pseudonym'})",
        "veil.masked(): mask `pseudonym` of column `email`: `domain` is missing: the name of the realm in which "
        "pseudonyms join, such as `domain: patients`",
    ),
    "wrong_mask": (
        "veil.masked({'name': 'email', 'mask': 'pseudonim'})",
        "`mask of column email` must be one of drop, pseudonym",
    ),
    "no_mask": (
        "veil.masked({'name': 'email', 'mask': true})",
        "veil.masked(): `mask of column email` must be a mask or a mapping with `kind`. Got: True",
    ),
    "wrong_option": (
        "veil.masked({'name': 'email', 'mask': {'kind': 'partial', 'lst': 4}})",
        "veil.masked(): mask `partial` of column `email`: the mask `partial` has no option `lst`; did you mean `last`?",
    ),
    "dropped": ("veil.masked({'name': 'email', 'mask': 'drop'})", "has the mask `drop`: it is left out"),
    "short_hex": (
        "veil.pseudonym('email', domain='d', length=15)",
        "veil.pseudonym(): `length` must be between 16 and 64. Got: 15",
    ),
    "wide_fill": ("veil.partial('email', fill='ab')", "veil.partial(): `fill` must be one character. Got: 'ab'"),
    "negative": ("veil.partial('email', last=-1)", "veil.partial(): `last` must be 0 or more. Got: -1"),
}


def test_one_value_gives_one_pseudonym_whatever_its_type(built: tuple[Project, Result]) -> None:
    project, result = built
    assert result.status("numbers") == "success", result.message("numbers")
    ((i, b, t, one, z, other, big, near, missing, as_uuid, as_bigint, versioned, hostile),) = project.query(
        "select * from main.numbers"
    )
    assert i == b == t == one
    assert len({t, z, other, big, near, hostile}) == 6
    assert missing is None
    assert as_uuid.version == 8
    assert isinstance(as_bigint, int)
    assert versioned == "v1_" + t[:16]


def test_eight_tuples_give_eight_pseudonyms(built: tuple[Project, Result]) -> None:
    project, result = built
    assert result.status("tuples") == "success", result.message("tuples")
    found = project.query("select pseudonym from main.tuples where coalesce(a, b) is not null")
    assert len(found) == 8
    assert len({value for (value,) in found}) == 8
    assert project.query("select pseudonym from main.tuples where coalesce(a, b) is null") == [(None,)]


def test_masks_hide_what_they_say(built: tuple[Project, Result]) -> None:
    project, result = built
    assert result.status("masks") == "success", result.message("masks")
    assert project.query("select last_four, ends, redacted, hidden from main.masks") == [
        ("************1111", "4xxxx1", "[redacted]", "it's gone"),
        ("****", "1xxxx4", "[redacted]", "it's gone"),
        ("*2345", "1xxxx5", "[redacted]", "it's gone"),
        ("**ñ‑ü1", "éxxxx1", "[redacted]", "it's gone"),
        ("", "xxxx", "[redacted]", "it's gone"),
        (None, None, None, "it's gone"),
    ]


def test_a_policy_chooses_the_mask(built: tuple[Project, Result]) -> None:
    project, result = built
    assert result.status("dispatched") == "success", result.message("dispatched")
    ((email, card, gone),) = project.query("select * from main.dispatched")
    assert len(email) == 16
    assert (card, gone) == ("***1", "[redacted]")


@pytest.mark.parametrize("name", list(_refused))
def test_a_wrong_argument_is_refused_with_a_way_to_mend_it(built: tuple[Project, Result], name: str) -> None:
    _, result = built
    assert result.status(name) == "error"
    assert _refused[name][1] in result.message(name)


def test_a_view_is_refused(built: tuple[Project, Result]) -> None:
    _, result = built
    expected = "veil.pseudonym(): model `a_view`: a view would call veil_pseudonym whenever it is read"
    assert expected in result.message("a_view")


def test_compiled_sql_is_plain(built: tuple[Project, Result]) -> None:
    project, _ = built
    expected = """(select veil_pseudonym(cast("t" as varchar), 'staff', '{"output": "hex"}')) as other_domain"""
    assert expected in project.compiled("numbers")


def test_without_the_plugin_the_message_is_pasteable(project: Project) -> None:
    project.profile(plugin=False)
    project.configure(models={"+materialized": "table"})
    project.model("people", "select {{ veil.pseudonym('name', domain='d') }} as p from (select 'ann' as name)")
    result = project.dbt("run")
    assert not result.success
    assert "veil.pseudonym(): needs the function veil_pseudonym, which this database does not have" in result.text
    assert "        - module: dbt_veil.plugin\n            config:\n              keyring_file:" in result.text
