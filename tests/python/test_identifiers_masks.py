"""Masks, tokens, encryption, shuffling and the ways back, through dbt: one build, one set of operations."""

from __future__ import annotations

import csv
import datetime
import stat
from collections import Counter
from pathlib import Path

import pytest
from dbt_veil.keys import new_keyring, write_keyring
from dbt_veil.reveal import RevealError, write_private
from dbt_veil.tokens import new_vault
from harness import Project, Result


@pytest.fixture(scope="module")
def built(shared_project: Project) -> tuple[Project, Result]:
    project = shared_project
    write_keyring(project.folder / "ring.json", new_keyring(), replace_existing=False)
    new_vault(project.folder / "vault.sqlite")
    project.profile(config={"keyring_file": "ring.json", "vault_file": "vault.sqlite"})
    project.configure(models={"+materialized": "table"})
    for name, sql in _models.items():
        project.model(name, sql)
    for name, (call, _) in _refused.items():
        project.model(name, "select {% if execute %}{{ " + call + " }}{% endif %} as x from (select '12' as a)")
    for name, (call, _) in _refused_relations.items():
        project.model(name, "{% if execute %}{{ " + call + " }}{% endif %} -- {{ ref('visits') }}")
    return project, project.dbt("build")


_models = {
    "people": """
        select * from (values
            (1, 'Ann', 'ann@gmail.com', '4111 1111 1111 1111', date '1990-05-17', date '2024-01-10', 34),
            (1, 'Ann', 'ann@gmail.com', '4111 1111 1111 1111', date '1990-05-17', date '2024-03-01', 34),
            (2, 'Bob', 'bob@GMAIL.com', '5500-0000-0000-0004', date '1934-12-31', date '1969-12-31', 89),
            (3, 'Cy', 'cy@rare.example', null, date '1934-01-01', null, 90),
            (null, null, null, null, null, date '2024-03-01', null),
            (4, 'Di', 'no address', '4111111111111111', date '1901-02-03', date '2024-02-29', 123)
        ) as people (id, name, email, card, born, visit, age)
    """,
    "masks": """
        select
            people.id,
            people.visit,
            {{ veil.token('email', domain='patients') }} as token,
            {{ veil.fpe('card', domain='cards', check='luhn') }} as card,
            {{ veil.mask_email('email') }} as email_hidden,
            {{ veil.mask_email('email', keep_domains=['gmail.com']) }} as email_listed,
            {{ veil.mask_email('email', rare_below=2, unit='id', alias='people') }} as email_common,
            {{ veil.shift_date('visit', unit='id', domain='patients', days=30) }} as shifted,
            {{ veil.shift_date('visit', unit='id', domain='patients', type='timestamp') }} as shifted_far,
            {{ veil.year_of_birth_with_cap('born', as_of='2024-06-30') }} as born_year,
            {{ veil.round('age', to=10) }} as age_rounded,
            {{ veil.top_bottom('age', lower=40, upper=89) }} as age_capped,
            {{ veil.fake('name', what='name', domain='staging') }} as fake_name,
            {{ veil.fake('email', what='email', domain='staging') }} as fake_email,
            {{ veil.fake('email', what='phone', domain='staging') }} as fake_phone
        from {{ ref('people') }} as people
    """,
    "rounded": """
        with source_rows (x) as (values (2.5), (-2.5), (0.25), (14.999), (15), (null), (-15))
        select x, {{ veil.round('x', to=10) }} as tens, {{ veil.round('x', digits=1) }} as tenths from source_rows
    """,
    "notes": """
        with source_rows (note) as (
            values ('mail ann@example.com or call +49 30 12345678'), ('all well'), (null)
        )
        select {{ veil.scrub('note') }} as note, {{ veil.scrub('note', kinds=['phone']) }} as no_phones from source_rows
    """,
    "visits": """
        select
            i as "row", i % 3 as ward, 100 + i as "select", i * 1.5 as cost, 'p' || i as position,
            case when i = 7 then null else i % 50 end as age
        from range(600) as numbers (i)
    """,
    "shuffled": "{{ veil.shuffle(ref('visits'), columns=['select', 'cost']) }}",
    "shuffled_within": "{{ veil.shuffle(ref('visits'), columns='select', within=['ward']) }}",
    "swapped": "{{ veil.swap(ref('visits'), columns=['select'], share=0.5, within=['ward']) }}",
    "never_swapped": "{{ veil.swap(ref('visits'), columns=['select'], share=0) }}",
    "microaggregated": "{{ veil.microaggregate(ref('visits'), columns=['cost', 'age'], k=5, within=['ward']) }}",
    "medians": """
        -- depends_on: {{ ref('numbers') }}
        {{ veil.microaggregate(ref('numbers'), columns='x', k=3, statistic='median') }}
    """,
    "numbers": """
        select * from (values (1.0, 'a'), (2, 'b'), (9, 'c'), (10, 'd'), (11, 'e'), (50, 'f'), (90, 'g')) as n (x, tag)
    """,
    "areas": """
        select * from (values ('021', 15000), ('021', 6000), ('036', 20000), ('100', 90000)) as a (zip3, population)
    """,
    "registry": """
        select * from (values
            ('Ann', '02134', date '2024-03-05', date '1990-05-17', 34, 'flu'),
            ('Bob', '03601-1234', date '2023-01-01', date '1934-03-01', 90, 'flu'),
            ('Cy', '501', null, date '1900-01-01', 124, 'cold'),
            ('Di', null, date '2024-12-31', null, null, null),
            ('Eve', '10001', date '2024-12-31', date '1935-01-01', 89, 'cold')
        ) as r (name, zip, admitted, born, age, diagnosis)
    """,
    "harbour": """
        {{ veil.safe_harbor(ref('registry'), populations=ref('areas'), as_of='2024-12-31', identifiers=['name'],
            zips=['zip'], dates=['admitted'], birth_dates=['born'], ages=['age'], keep=['diagnosis']) }}
    """,
}

_refused = {
    "fpe_alphabet": (
        "veil.fpe('a', domain='d', alphabet='digit')",
        "veil.fpe(): `alphabet` must be one of digits, upper_alphanumeric, alphanumeric, or two or more different "
        "characters. Got: 'digit'; did you mean `digits`?",
    ),
    "fpe_luhn": (
        "veil.fpe('a', domain='d', alphabet='alphanumeric', check='luhn')",
        "veil.fpe(): `check: luhn` needs the alphabet digits. Got: 'alphanumeric'",
    ),
    "token_domain": ("veil.token('a')", "veil.token(): `domain` is missing"),
    "shift_unit": ("veil.shift_date('a', domain='d')", "`unit` is missing: the column that tells people apart"),
    "shift_days": ("veil.shift_date('a', unit='a', domain='d', days=0)", "`days` must be between 1 and 36500. Got: 0"),
    "round_both": ("veil.round('a', to=5, digits=1)", "veil.round(): exactly one of `to` and `digits` must be given"),
    "bounds": ("veil.top_bottom('a', lower=5, upper=5)", "`lower` must be below `upper`. Got: 5 and 5"),
    "as_of": (
        "veil.year_of_birth_with_cap('a', as_of='now')",
        "`as_of` must be a date such as '2024-12-31'. Got: 'now'",
    ),
    "fake_what": ("veil.fake('a', what='ssn', domain='d')", "`what` must be one of name, first_name"),
    "scrub_kinds": ("veil.scrub('a', kinds=['names'])", "`kinds` must be among "),
    "fpe_short": (
        "veil.fpe('a', domain='d')",
        "column a: of 1 distinct values of this batch, 1 values have",
    ),
}

_refused_relations = {
    "shuffle_column": (
        "veil.shuffle(ref('visits'), columns=['costs'])",
        "there is no column `costs`; did you mean `cost`?",
    ),
    "shuffle_text": ("veil.shuffle('visits', columns=['cost'])", "`relation` must be a relation"),
    "swap_share": (
        "veil.swap(ref('visits'), columns=['cost'], share=1.5)",
        "`share` must be between 0 and 1. Got: 1.5",
    ),
    "micro_k": ("veil.microaggregate(ref('visits'), columns='cost', k=1)", "`k` must be 2 or more. Got: 1"),
    "harbour_rest": (
        "veil.safe_harbor(ref('visits'), keep=['ward'])",
        "no place is given for row, select, cost, position, age. Put each in identifiers (left out), zips",
    ),
    "harbour_zip": ("veil.safe_harbor(ref('visits'), zips=['ward'])", "`populations` must be a relation"),
    "harbour_twice": (
        "veil.safe_harbor(ref('visits'), keep=['ward'], ages=['Ward'])",
        "the column `ward` is in `ages` and in `keep`",
    ),
}


def test_everything_that_should_build_is_built(built: tuple[Project, Result]) -> None:
    _, result = built
    assert {name: result.message(name) for name in _models if result.status(name) != "success"} == {}


@pytest.mark.parametrize("name", [*_refused, *_refused_relations])
def test_a_wrong_argument_is_refused(built: tuple[Project, Result], name: str) -> None:
    _, result = built
    assert result.status(name) == "error"
    assert (_refused | _refused_relations)[name][1] in result.message(name)


def test_tokens_and_cards(built: tuple[Project, Result]) -> None:
    project, _ = built
    found = project.query("select id, token, card from main.masks order by id nulls last, visit")
    assert found[0][1] == found[1][1]
    assert len({token for _, token, _ in found if token}) == 4
    assert found[5][1:] == (None, None)
    assert found[3][2] is None
    assert found[0][2] == found[1][2] != "4111 1111 1111 1111"
    assert found[0][2].replace(" ", "") == found[4][2]


def test_emails_keep_at_most_a_common_domain(built: tuple[Project, Result]) -> None:
    project, _ = built
    assert project.query(
        "select distinct id, email_hidden, email_listed, email_common from main.masks order by id nulls last"
    ) == [
        (1, "***@***", "***@gmail.com", "***@gmail.com"),
        (2, "***@***", "***@gmail.com", "***@gmail.com"),
        (3, "***@***", "***@***", "***@***"),
        (4, "***@***", "***@***", "***@***"),
        (None, None, None, None),
    ]


def test_dates_of_one_person_move_together(built: tuple[Project, Result]) -> None:
    project, _ = built
    found = project.query("select id, visit, shifted, shifted_far from main.masks order by id nulls last, visit")
    moves = {id: (shifted - visit).days for id, visit, shifted, _ in found if shifted}
    assert set(moves) == {1, 2, 4}
    assert all(0 < abs(days) <= 30 for days in moves.values())
    assert (found[1][2] - found[0][2]).days == 51
    assert isinstance(found[0][2], datetime.date)
    assert isinstance(found[0][3], datetime.datetime)
    assert found[5][2] is None


def test_the_oldest_share_one_year(built: tuple[Project, Result]) -> None:
    project, _ = built
    found = project.query(
        "select distinct id, born_year, age_rounded, age_capped from main.masks order by id nulls last"
    )
    assert found == [
        (1, 1990, 30, 40),
        (2, 1934, 90, 89),
        (3, 1934, 90, 89),
        (4, 1934, 120, 89),
        (None, None, None, None),
    ]


def test_rounding_is_to_the_nearest_and_away_from_zero(built: tuple[Project, Result]) -> None:
    project, _ = built
    found = {
        str(x): (tens, float(tenths))
        for x, tens, tenths in project.query("select * from main.rounded")
        if x is not None
    }
    assert found["2.500"] == (0, 2.5)
    assert found["0.250"] == (0, 0.3)
    assert found["14.999"] == (10, 15.0)
    assert found["15.000"] == (20, 15.0)
    assert found["-15.000"] == (-20, -15.0)


def test_made_up_values_are_stable_and_never_real_addresses(built: tuple[Project, Result]) -> None:
    project, _ = built
    found = project.query("select id, fake_name, fake_email, fake_phone from main.masks order by id nulls last, visit")
    assert found[0][1:] == found[1][1:]
    assert len({row[1] for row in found}) == 5
    assert all(row[2].rsplit("@")[1] in ("example.com", "example.org", "example.net") for row in found[:5])
    assert all("-555-01" in row[3] for row in found[:5])
    assert found[5][1:] == (None, None, None)


def test_free_text_is_scrubbed(built: tuple[Project, Result]) -> None:
    project, _ = built
    assert project.query("select note, no_phones from main.notes") == [
        ("mail [email] or call [phone]", "mail ann@example.com or call [phone]"),
        ("all well", "all well"),
        (None, None),
    ]


def test_shuffling_keeps_the_marginals_and_moves_columns_together(built: tuple[Project, Result]) -> None:
    project, _ = built
    names = [name for (name,) in project.query("select column_name from (describe main.shuffled)")]
    assert names == ["row", "ward", "select", "cost", "position", "age"]
    before = project.query('select "row", ward, "select", cost, position, age from main.visits')
    after = project.query('select "row", ward, "select", cost, position, age from main.shuffled')
    for column in range(6):
        assert Counter(row[column] for row in before) == Counter(row[column] for row in after)
    assert all(float(cost) == (select - 100) * 1.5 for _, _, select, cost, _, _ in after)
    assert all(position == f"p{row}" for row, _, _, _, position, _ in after)
    assert sum(select == 100 + row for row, _, select, *_ in after) < 30  # 1 is expected
    within = project.query('select "row", ward, "select" from main.shuffled_within')
    assert Counter((ward, select) for _, ward, select in within) == Counter((row[1], row[2]) for row in before)
    assert sum(select == 100 + row for row, _, select in within) < 40  # 3 are expected


def test_swapping_trades_within_pairs_of_a_cell(built: tuple[Project, Result]) -> None:
    project, _ = built
    pairs = dict(project.query('select "row", "select" - 100 from main.swapped'))
    moved = {row: given for row, given in pairs.items() if row != given}
    assert all(pairs[given] == row and given % 3 == row % 3 for row, given in moved.items())
    assert 200 < len(moved) < 400  # 300 are expected, with a deviation of 17
    assert project.scalar('select count(*) from main.never_swapped where "select" <> 100 + "row"') == 0


def test_microaggregates_stand_for_k_rows_or_more(built: tuple[Project, Result]) -> None:
    project, _ = built
    assert project.scalar("select count(*) from main.microaggregated") == 600
    sizes = project.query("select count(*) from main.microaggregated where cost is not null group by ward, cost, age")
    assert min(size for (size,) in sizes) >= 5
    assert project.query("select cost, age from main.microaggregated where cost is null or age is null") == [
        (None, None)
    ]
    mean, expected = project.query(
        "select sum(cost) from main.microaggregated union all select sum(cost) from main.visits where age is not null"
    )
    assert float(mean[0]) == pytest.approx(float(expected[0]))
    assert project.query("select tag, x from main.medians order by tag") == [
        ("a", 2.0), ("b", 2.0), ("c", 2.0), ("d", 30.5), ("e", 30.5), ("f", 30.5), ("g", 30.5),
    ]  # fmt: skip


def test_safe_harbor(built: tuple[Project, Result]) -> None:
    project, _ = built
    assert project.query("select * from main.harbour order by diagnosis nulls last, zip, admitted nulls last") == [
        ("000", None, 1934, "90+", "cold"),
        ("100", 2024, 1935, "89", "cold"),
        ("000", 2023, 1934, "90+", "flu"),
        ("021", 2024, 1990, "34", "flu"),
        (None, 2024, None, None, None),
    ]


def test_the_ways_back_need_a_reason_and_leave_a_trace(built: tuple[Project, Result]) -> None:
    project, _ = built
    token = project.scalar("select token from main.masks where id = 3")
    card = project.scalar("select card from main.masks where id = 2")
    answer = project.folder / "answer.csv"
    arguments = f"tokens: [{token}, tok_none], domain: patients, to: answer.csv"

    refused = project.dbt("run-operation", "veil.detokenize", "--args", f"{{{arguments}, reason: please}}")
    assert not refused.success
    assert "veil.detokenize(): `reason` must say why, in 10 characters or more" in refused.text
    assert not answer.exists()

    done = project.dbt("run-operation", "veil.detokenize", "--args", f"{{{arguments}, reason: asked by the person}}")
    assert done.success, done.text
    assert "veil: 1 of 2 values written to answer.csv" in done.text
    with answer.open(encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["given", "value"], [token, "cy@rare.example"], ["tok_none", ""]]
    assert stat.S_IMODE(answer.stat().st_mode) == 0o600

    back = f"{{values: ['{card}'], domain: cards, check: luhn, to: card.csv, reason: chargeback of the bank}}"
    done = project.dbt("run-operation", "veil.decrypt", "--args", back)
    assert done.success, done.text
    assert f"{card},5500-0000-0000-0004" in (project.folder / "card.csv").read_text(encoding="utf-8")

    unquoted = "{values: [4111111111111111], domain: cards, to: x.csv, reason: chargeback of the bank}"
    assert "veil.decrypt(): `values` must be a list of texts, with at least one. Put digits in quotes" in (
        project.dbt("run-operation", "veil.decrypt", "--args", unquoted).text
    )

    erased = f"{{tokens: [{token}], domain: patients, reason: erasure request 18}}"
    assert (
        "veil: 1 of 1 tokens deleted from the vault"
        in project.dbt("run-operation", "veil.forget", "--args", erased).text
    )

    trace = project.query("select operation, domain, reason, given from veil.reveals order by revealed_at")
    assert [row[0] for row in trace] == ["detokenize", "decrypt", "forget"]
    assert trace[0][1:3] == ("patients", "asked by the person")
    assert token in trace[0][3]
    assert "rare.example" not in str(trace)
    log = (project.folder / "logs" / "dbt.log").read_text(encoding="utf-8")
    operations = log[log.index("veil.detokenize") :] + done.text
    assert "cy@rare.example" not in operations
    assert "5500-0000-0000-0004" not in operations


def test_an_answer_never_replaces_a_file(tmp_path: Path) -> None:
    write_private(tmp_path / "answer.csv", ["tok_a"], ["ann"])
    with pytest.raises(RevealError, match="exists"):
        write_private(tmp_path / "answer.csv", ["tok_b"], ["bob"])
    assert (tmp_path / "answer.csv").read_text(encoding="utf-8").split() == ["given,value", "tok_a,ann"]
    with pytest.raises(RevealError, match="cannot be made"):
        write_private(tmp_path / "no folder" / "answer.csv", [], [])


def test_without_a_vault_no_row_is_written(built: tuple[Project, Result]) -> None:
    project, _ = built
    project.profile(config={"keyring_file": "ring.json"})
    result = project.dbt("run", "--select", "masks")
    assert not result.success
    assert "no vault is attached. Make one with `veil vault new" in result.message("masks")
    back = "{tokens: [tok_x], domain: patients, reason: request 17 of the person, to: b.csv}"
    assert "no vault is attached" in project.dbt("run-operation", "veil.detokenize", "--args", back).text


def test_no_mask_prints_a_value_or_moves_a_column_within_itself(project: Project) -> None:
    """Text to be averaged, numbers beyond a BIGINT, and a column that is its own cell."""
    table = [{"s": f"SECRET{i}", "n": ["nan", "1e300", "26"][i % 3]} for i in range(9)]
    project.seed("t", table, types={"n": "double"})
    models = {
        "averaged": "{{ veil.microaggregate(ref('t'), ['s'], k=3) }}",
        "rounded": "select distinct {{ veil.round('n', to=10) }} as n from {{ ref('t') }}",
    }
    for name, sql in models.items():
        project.model(name, sql, config={"materialized": "table"})
    result = project.dbt("build")
    assert "`s` must be a number, and is VARCHAR" in result.message("averaged")
    assert "SECRET" not in result.text
    assert project.query("select n from main.rounded order by n nulls last") == [(30,), (None,)]
    project.model("still", "{{ veil.shuffle(ref('t'), ['s'], within=['s']) }}", config={"materialized": "table"})
    assert "`within` names `s`, which is moved itself: nothing would change" in project.dbt("parse").text
