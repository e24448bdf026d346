"""Local recoding: every class of the result satisfies the whole policy, and nobody is lost who need not be."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from dbt_veil.frequency import Column, Table
from dbt_veil.recoding import Recoding, recode
from dbt_veil.search import Policy, SearchError, search
from levels_reference import Case, criterion, people_by_value, random_case, satisfies


def classes(case: Case, table: Table, recoding: Recoding) -> list[list[int]]:
    """Rows by released labels, as a reader of the release would group them."""
    tuples = {row: number for number, row in enumerate(sorted(set(case.rows)))}
    grouped = defaultdict(list)
    for position, row in enumerate(case.rows):
        number = int(recoding.round_of_tuple[tuples[row]])
        if number >= 0:
            levels = recoding.rounds[number]
            labels = (case.labels[p][row[p]][levels[name]] for p, name in enumerate(case.names))
            grouped[tuple(labels)].append(position)
    return list(grouped.values())


@pytest.mark.parametrize("model", [None, ("distinct_l", 2), ("entropy_l", 1.5), ("t_equal", 0.3), ("alpha", 0.9)])
@pytest.mark.parametrize("several", [False, True])
def test_every_class_satisfies_the_whole_policy(model: tuple[str, float] | None, several: bool) -> None:
    solved = 0
    for seed in range(12):
        case = random_case(300 + seed, rows=60, several=several)
        table = case.table()
        criteria = () if model is None else (criterion(*model, len(set(case.sensitive))),)
        try:
            recoding = recode(table, Policy(3, criteria), least_share=0.05)
        except SearchError:
            with pytest.raises(SearchError):
                search(table, Policy(3, criteria))
            continue
        solved += 1
        found = classes(case, table, recoding)
        assert sum(len(members) for members in found) == len(case.rows)
        assert recoding.suppressed_people == recoding.suppressed_rows == 0
        assert min(len({case.units[m] for m in members}) for members in found) >= 3
        whole = people_by_value(case, range(len(case.rows)))
        if model is not None and not several:
            assert all(satisfies(*model, people_by_value(case, members), whole) for members in found)
    assert solved > 3


def test_it_never_loses_more_than_one_node_for_all() -> None:
    better = 0
    for seed in range(10):
        table = random_case(400 + seed, rows=80).table()
        everyone = search(table, Policy(3), metric="loss").releases[0]
        recoding = recode(table, Policy(3))
        assert recoding.loss <= everyone.loss + 1e-9
        better += recoding.loss < everyone.loss - 1e-9
    assert better >= 5


def test_who_is_left_out_is_within_the_limit() -> None:
    """Ten alike and one who is like nobody: with a limit he is left out, without one the ten are coarsened for him."""
    columns = (Column.from_labels("a", [[0, 1], ["*", "*"]]),)
    table = Table(columns, np.array([[0], [1]]), np.array([10, 1]), np.array([10, 1]))
    limited = recode(table, Policy(2, (), 0.1))
    assert (limited.round_of_tuple.tolist(), limited.rounds) == ([0, -1], [{"a": 0}])
    assert (limited.people, limited.suppressed_people, limited.suppressed_rows) == (10, 1, 1)
    assert limited.loss == pytest.approx(1 / 11)
    strict = recode(table, Policy(2))
    assert (strict.round_of_tuple.tolist(), strict.rounds) == ([0, 0], [{"a": 1}])
    assert strict.loss == 1


def test_the_order_of_the_columns_changes_nothing() -> None:
    case = random_case(5, rows=70)
    turned = Case(case.names[::-1], [row[::-1] for row in case.rows], case.labels[::-1], case.sensitive, case.units)
    assert recode(case.table(), Policy(3)).rounds == recode(turned.table(), Policy(3)).rounds


def test_what_cannot_be_recoded_is_refused() -> None:
    table = random_case(5).table()
    with pytest.raises(SearchError, match="`k` must not be above the number of people"):
        recode(table, Policy(99))
    with pytest.raises(SearchError, match="no node satisfies the policy for all people within `suppress_up_to`"):
        recode(table, Policy(3, (criterion("distinct_l", 40, 4),)))
    with pytest.raises(SearchError, match=r"local recoding walks up to 2\. Give some columns a `min_level`"):
        recode(table, Policy(3), exact_nodes=2)
