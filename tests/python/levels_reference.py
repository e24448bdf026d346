"""Levels by brute force: every node, plain dictionaries, formulas written from the papers. Slow, and easy to check."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dbt_veil.criteria import (
    AlphaAnonymity,
    BetaLikeness,
    Closeness,
    Criterion,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    RecursiveDiversity,
)
from dbt_veil.frequency import Column, Sensitive, Table

Row = tuple[Any, ...]


@dataclass
class Case:
    """Rows and labels: ``labels[column][value]`` is the list of the value's labels by level."""

    names: list[str]
    rows: list[Row]
    labels: list[dict[Any, list[Any]]]
    sensitive: list[Any]
    units: list[int]

    def table(self) -> Table:
        """The same as a frequency table."""
        seen = [sorted({row[position] for row in self.rows}) for position in range(len(self.names))]
        columns = []
        for name, values, labels in zip(self.names, seen, self.labels, strict=True):
            unseen = [value for value in labels if value not in values]
            depth = len(labels[values[0]])
            columns.append(
                Column.from_labels(
                    name,
                    [[labels[value][level] for value in values] for level in range(depth)],
                    [[labels[value][level] for value in unseen] for level in range(depth)],
                )
            )
        tuples = sorted(set(self.rows))
        number = {row: position for position, row in enumerate(tuples)}
        values = np.array([[seen[p].index(row[p]) for p in range(len(self.names))] for row in tuples], dtype=np.int64)
        tuples_of = defaultdict(set)
        cells_of = defaultdict(set)
        known = sorted(set(self.sensitive))
        for row, unit, value in zip(self.rows, self.units, self.sensitive, strict=True):
            tuples_of[unit].add(number[row])
            cells_of[unit].add((number[row], known.index(value)))
        once, pairs = split(tuples_of, len(tuples))
        cells = sorted({cell for own in cells_of.values() for cell in own})
        place = {cell: position for position, cell in enumerate(cells)}
        cell_once, cell_pairs = split({u: {place[c] for c in own} for u, own in cells_of.items()}, len(cells))
        counted = Counter(number[row] for row in self.rows)
        return Table(
            columns=tuple(columns),
            values=values,
            people=once,
            rows=np.array([counted[position] for position in range(len(tuples))], dtype=np.int64),
            sensitive=(
                Sensitive(
                    name="illness",
                    cell_tuple=np.array([cell[0] for cell in cells], dtype=np.int64),
                    cell_value=np.array([cell[1] for cell in cells], dtype=np.int64),
                    cell_people=cell_once,
                    values=len(known),
                    repeated_cell=cell_pairs[0],
                    repeated_unit=cell_pairs[1],
                ),
            ),
            repeated_tuple=pairs[0],
            repeated_unit=pairs[1],
        )


def split(places: Mapping[int, set[int]], size: int) -> tuple[Any, tuple[Any, Any]]:
    """Units with one place as counts, the others as pairs."""
    once = np.zeros(size, dtype=np.int64)
    pairs = []
    for unit, own in places.items():
        if len(own) == 1:
            once[next(iter(own))] += 1
        else:
            pairs.extend((place, unit) for place in sorted(own))
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return once, (array[:, 0], array[:, 1])


def satisfies(model: str, threshold: float, counts: Counter[Any], whole: Counter[Any]) -> bool:
    """Whether one class satisfies a model."""
    size, total = sum(counts.values()), sum(whole.values())
    share = {value: counts[value] / size for value in whole}
    known = {value: whole[value] / total for value in whole}
    if model == "distinct_l":
        return len(+counts) >= threshold
    if model == "entropy_l":
        return math.exp(-sum(p * math.log(p) for p in share.values() if p > 0)) >= threshold - 1e-9
    if model == "recursive_l":
        falling = sorted(counts.values(), reverse=True)
        return falling[0] < 2 * sum(falling[int(threshold) - 1 :])
    if model == "t_equal":
        return sum(abs(share[v] - known[v]) for v in whole) / 2 <= threshold + 1e-9
    if model == "t_ordered":
        running, work = 0.0, 0.0
        for value in sorted(+whole):
            running += share[value] - known[value]
            work += abs(running)
        return work / max(len(whole) - 1, 1) <= threshold + 1e-9
    if model == "beta":
        return all(share[v] - known[v] <= threshold * known[v] + 1e-9 for v in whole)
    if model == "delta":
        return all(abs(math.log(share[v] / known[v])) <= threshold + 1e-9 for v in whole if share[v] > 0)
    if model == "alpha":
        return max(share.values()) <= threshold + 1e-9
    raise AssertionError(model)


def solve(
    case: Case, k: int, limit: float, metric: str, model: tuple[str, float] | None = None
) -> dict[tuple[int, ...], tuple[float, int]]:
    """Score and suppressed people of every feasible node, levels in the order of the columns' names."""
    order = sorted(range(len(case.names)), key=lambda p: case.names[p])
    depths = [len(next(iter(case.labels[p].values()))) for p in order]
    result = {}
    for node in itertools.product(*(range(depth) for depth in depths)):
        classes = defaultdict(list)
        for position, row in enumerate(case.rows):
            classes[tuple(case.labels[p][row[p]][level] for p, level in zip(order, node, strict=True))].append(position)
        kept, dropped = [], []
        for members in classes.values():
            (kept if len({case.units[m] for m in members}) >= k else dropped).append(members)
        released = [m for members in kept for m in members]
        whole = people_by_value(case, released)
        good = model is None or all(satisfies(*model, people_by_value(case, members), whole) for members in kept)
        lost = len(set(case.units) - {case.units[m] for m in released})
        if good and lost <= limit * len(set(case.units)) + 1e-9:
            result[node] = (score(case, order, node, kept, dropped, metric), lost)
    return result


def people_by_value(case: Case, members: Sequence[int]) -> Counter[Any]:
    """People per sensitive value."""
    return Counter(value for value, _ in {(case.sensitive[m], case.units[m]) for m in members})


def score(
    case: Case,
    order: list[int],
    node: tuple[int, ...],
    kept: list[list[int]],
    dropped: list[list[int]],
    metric: str,
) -> float:
    """The metric of one node."""
    rows = len(case.rows)
    gone = {m for members in dropped for m in members}
    if metric == "height":
        return float(sum(node))
    if metric == "discernibility":
        return float(sum(len(members) ** 2 for members in kept) + rows * len(gone))
    if metric == "average_class":
        return rows / (len(kept) + bool(gone))
    columns = []
    for p, level in zip(order, node, strict=True):
        labels = case.labels[p]
        top = len(next(iter(labels.values()))) - 1
        cells = 0.0
        for m, row in enumerate(case.rows):
            label = labels[row[p]][level]
            if metric == "loss":
                leaves = sum(own[level] == label for own in labels.values())
                cells += 1.0 if m in gone else leaves / len(labels)
            elif metric == "precision":
                cells += 1.0 if m in gone else level / max(top, 1)
            else:
                value = sum(other[p] == row[p] for other in case.rows)
                shared = rows if m in gone else sum(labels[other[p]][level] == label for other in case.rows)
                cells += -math.log2(value / shared)
        mean = cells / rows
        columns.append((mean - 1 / len(labels)) / (1 - 1 / len(labels)) if metric == "loss" else mean)
    if metric == "loss":
        return math.prod(1 + own for own in columns) ** (1 / len(columns)) - 1
    return sum(columns) / len(columns)


def random_case(seed: int, *, rows: int = 40, several: bool = False) -> Case:
    """A small table with three columns of two to four levels."""
    draw = np.random.default_rng(seed)
    names = [str(name) for name in draw.permutation(["zip", "age", "sex"])]
    labels: list[dict[Any, list[Any]]] = []
    for depth in draw.integers(2, 5, size=3):
        values = list(range(int(draw.integers(2, 9))))
        chains = {value: [value] for value in values}
        for level in range(1, int(depth)):
            last = level == depth - 1
            parent = {c[-1]: "*" if last else (level, int(draw.integers(0, 3))) for c in chains.values()}
            for chain in chains.values():
                chain.append(parent[chain[-1]])
        labels.append(chains)
    picked = [tuple(int(draw.integers(0, len(own)) * draw.random()) for own in labels) for _ in range(rows)]
    illness = [int(draw.integers(0, 4) * draw.random()) for _ in range(rows)]
    units = [int(draw.integers(0, rows * 2 // 3)) for _ in range(rows)] if several else list(range(rows))
    return Case(names=names, rows=picked, labels=labels, sensitive=illness, units=units)


def criterion(model: str, threshold: float, values: int) -> Criterion:
    """The same model for the search."""
    return {
        "distinct_l": lambda: DistinctDiversity("illness", threshold),
        "entropy_l": lambda: EntropyDiversity("illness", threshold),
        "recursive_l": lambda: RecursiveDiversity("illness", threshold, c=2),
        "t_equal": lambda: Closeness("illness", threshold),
        "t_ordered": lambda: Closeness("illness", threshold, "ordered", positions=np.arange(values, dtype=np.float64)),
        "beta": lambda: BetaLikeness("illness", threshold),
        "delta": lambda: DeltaDisclosure("illness", threshold),
        "alpha": lambda: AlphaAnonymity("illness", threshold),
    }[model]()
