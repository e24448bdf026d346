"""What a release costs its reader: information loss of a node, in the measures the literature compares tools with.

Measures of cells (loss, precision, entropy) give each row and column a cost that depends on the value, its level, and
whether the row is suppressed. Without suppression they are sums over columns and need no classes, and they grow with
each level; a suppressed cell costs as much as the top level or more. So the cost without suppression is a lower bound
for the node and for every node above it. Measures of classes (discernibility, average class) have such a bound too,
see :meth:`Discernibility.bound`. The search uses these bounds to leave nodes unformed, and stays exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from dbt_veil.frequency import BoolArray, Classes, FloatArray, IntArray, Node, Table


class Metric(Protocol):
    """A measure of information loss; the least is best."""

    by_cells: bool

    def lattice(self, columns: list[list[int]]) -> FloatArray | None:
        """Lower bounds of all nodes whose levels are in ``columns``, or ``None`` where classes are needed."""

    def bound(self, classes: Classes) -> float:
        """A lower bound for the classes' node and every node above it, whatever is suppressed."""

    def value(self, classes: Classes, kept: BoolArray) -> float:
        """The measure when the classes that are not ``kept`` are suppressed."""


class CellMetric:
    """A measure that adds up costs of cells."""

    by_cells = True

    def __init__(self, table: Table, weights: Mapping[str, float]) -> None:
        self.table = table
        raw = np.array([float(weights.get(name, 1.0)) for name in table.names])
        self.weights = raw / raw.sum()
        self.costs = [self._costs(position) for position in range(len(table.columns))]
        self.full = [self._full(position) for position in range(len(table.columns))]
        rows = max(table.row_total, 1)
        self.means = [
            np.array([float(count @ cost[:, level]) / rows for level in range(cost.shape[1])])
            for count, cost in zip(table.column_rows, self.costs, strict=True)
        ]

    def _costs(self, position: int) -> FloatArray:
        """(values, levels): cost of a kept cell."""
        raise NotImplementedError

    def _full(self, position: int) -> FloatArray:
        """(values,): cost of a suppressed cell."""
        return np.ones(len(self.table.columns[position].codes))

    def _part(self, position: int, mean: FloatArray) -> FloatArray:
        """What a column adds to the sum, from its mean cost."""
        part: FloatArray = self.weights[position] * mean
        return part

    def _total(self, parts: FloatArray) -> FloatArray:
        """The measure from the sum of its parts."""
        return parts

    def lattice(self, columns: list[list[int]]) -> FloatArray:
        """The measure of all nodes when nothing is suppressed."""
        total = np.zeros([len(levels) for levels in columns])
        for position, levels in enumerate(columns):
            shape = [1] * len(columns)
            shape[position] = len(levels)
            total = total + self._part(position, self.means[position][levels]).reshape(shape)
        return self._total(total)

    def bound(self, classes: Classes) -> float:
        """The measure when nothing is suppressed."""
        return float(self.lattice([[level] for level in classes.node]).item())

    def value(self, classes: Classes, kept: BoolArray) -> float:
        """The measure with the suppressed rows at full cost."""
        return self._from_means(self._means(classes, kept))

    def columns(self, classes: Classes, kept: BoolArray) -> FloatArray:
        """(columns,): the measure of each column alone."""
        return self._means(classes, kept)

    def _from_means(self, means: FloatArray) -> float:
        parts = [self._part(position, means[position : position + 1])[0] for position in range(len(means))]
        return float(self._total(np.array([sum(parts)]))[0])

    def _means(self, classes: Classes, kept: BoolArray) -> FloatArray:
        if kept.all():
            return np.array([mean[level] for mean, level in zip(self.means, classes.node, strict=True)])
        rows = max(self.table.row_total, 1)
        means = []
        for position, level in enumerate(classes.node):
            values = self.table.values[classes.first, position]
            cost = self.costs[position][values, level]
            means.append(float(classes.rows @ np.where(kept, cost, self.full[position][values])) / rows)
        return np.array(means)


class Loss(CellMetric):
    """Loss as ARX defines it: the share of the hierarchy's leaves that a cell may stand for.

    A cell costs leaves under its label / leaves, a suppressed cell 1. A column's loss is the mean over rows, moved
    and scaled so that the values as they are cost 0 and full suppression costs 1. The score is the geometric mean of
    (1 + loss) over the columns, minus 1; weights are exponents that add up to 1 (Iyengar 2002, section 2.2, for the
    cell's cost).
    """

    def _costs(self, position: int) -> FloatArray:
        column = self.table.columns[position]
        if column.domain < 2:
            return np.zeros(column.codes.shape)
        share: FloatArray = (column.leaves - 1) / (column.domain - 1)
        return share

    def _full(self, position: int) -> FloatArray:
        column = self.table.columns[position]
        return np.full(len(column.codes), 1.0 if column.domain > 1 else 0.0)

    def _part(self, position: int, mean: FloatArray) -> FloatArray:
        part: FloatArray = self.weights[position] * np.log1p(mean)
        return part

    def _total(self, parts: FloatArray) -> FloatArray:
        return np.expm1(parts)


class Precision(CellMetric):
    """1 - Prec of Sweeney (2002, section 3): mean of level / highest level over cells; a suppressed cell costs 1."""

    def _costs(self, position: int) -> FloatArray:
        column = self.table.columns[position]
        levels = np.arange(column.top + 1) / max(column.top, 1)
        return np.broadcast_to(levels, column.codes.shape).copy()


class Entropy(CellMetric):
    """Non-uniform entropy per cell, in bits: -log2 of rows with the value / rows with its label.

    The sum over rows and columns of de Waal and Willenborg (1999), here divided by their number (times the weights).
    A suppressed cell stands for all rows.
    """

    def _costs(self, position: int) -> FloatArray:
        column, rows = self.table.columns[position], self.table.column_rows[position]
        levels = [
            np.bincount(column.codes[:, level], weights=rows)[column.codes[:, level]] for level in range(column.top + 1)
        ]
        return np.stack([_bits(shared.astype(np.float64), rows) for shared in levels], axis=1)

    def _full(self, position: int) -> FloatArray:
        rows = self.table.column_rows[position]
        return _bits(np.full(len(rows), float(self.table.row_total)), rows)

    def _means(self, classes: Classes, kept: BoolArray) -> FloatArray:
        if kept.all():
            return super()._means(classes, kept)
        tuple_kept = kept[self.table.assign(classes.node)]
        means = []
        for position, level in enumerate(classes.node):
            values = self.table.values[:, position]
            cost = np.where(tuple_kept, self.costs[position][values, level], self.full[position][values])
            means.append(float(self.table.rows @ cost) / self.table.row_total)
        return np.array(means)


class Height(CellMetric):
    """Sum of the levels (times the weights); suppression does not count (Samarati 2001)."""

    def _costs(self, position: int) -> FloatArray:
        column = self.table.columns[position]
        return np.broadcast_to(np.arange(column.top + 1, dtype=np.float64), column.codes.shape).copy()

    def _total(self, parts: FloatArray) -> FloatArray:
        return parts * len(self.table.columns)

    def value(self, classes: Classes, kept: BoolArray) -> float:
        """The sum of the levels."""
        return self.bound(classes)


class Discernibility:
    """Sum of squared class sizes, plus all rows for each suppressed row (Bayardo and Agrawal 2005, section 2)."""

    by_cells = False

    def __init__(self, table: Table, weights: Mapping[str, float]) -> None:
        self.total = table.row_total

    def lattice(self, columns: list[list[int]]) -> None:
        """No bound without classes."""

    def bound(self, classes: Classes) -> float:
        """The sum of squared sizes of all classes.

        A class of c rows costs c squared when kept and c times all rows, which is more, when suppressed; and the
        squares of merged classes add up to no more than the square of their sum.
        """
        return float(classes.rows @ classes.rows)

    def value(self, classes: Classes, kept: BoolArray) -> float:
        """The measure."""
        own = classes.rows[kept]
        return float(own @ own + self.total * (self.total - own.sum()))


class AverageClass:
    """Rows divided by classes; the suppressed rows are one class (LeFevre et al. 2006, section 2.2, without its k)."""

    by_cells = False

    def __init__(self, table: Table, weights: Mapping[str, float]) -> None:
        self.total = table.row_total

    def lattice(self, columns: list[list[int]]) -> None:
        """No bound without classes."""

    def bound(self, classes: Classes) -> float:
        """Rows over all classes: suppression and merging make them fewer, never more."""
        return self.total / max(len(classes.rows), 1)

    def value(self, classes: Classes, kept: BoolArray) -> float:
        """The measure."""
        count = int(kept.sum())
        return self.total / max(count + (count < len(kept)), 1)


METRICS: dict[str, type[CellMetric] | type[Discernibility] | type[AverageClass]] = {
    "loss": Loss,
    "discernibility": Discernibility,
    "average_class": AverageClass,
    "entropy": Entropy,
    "precision": Precision,
    "height": Height,
}


def _bits(shared: FloatArray, own: IntArray) -> FloatArray:
    bits: FloatArray = np.log2(np.divide(shared, own, where=own > 0, out=np.ones(len(own))))
    return bits


def node_of(table: Table, levels: Mapping[str, int]) -> Node:
    """The node with these levels by column name."""
    return tuple(levels[name] for name in table.names)
