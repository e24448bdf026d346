"""The frequency table of a relation, and its equivalence classes at any node of the generalisation lattice.

A search never looks at rows again once they are counted: it works on the distinct tuples of the quasi-identifiers,
coded as small integers per level. Classes of a coarser node are formed from the classes of a finer one that is
already known (roll-up), because each hierarchy level is a function of the level below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Node = tuple[int, ...]

_KEY_LIMIT = 2**62


@dataclass(frozen=True, eq=False)
class Column:
    """A quasi-identifier with all its generalisation levels.

    Attributes:
        name: the column's name.
        codes: (values, levels); the label of a value at a level, as a number from 0.
        leaves: (values, levels); how many values of the whole hierarchy share the label, 1 at level 0.
        domain: number of values of the whole hierarchy, at least those that occur.
    """

    name: str
    codes: IntArray
    leaves: IntArray
    domain: int

    @classmethod
    def from_labels(
        cls, name: str, labels: Sequence[Sequence[object]], unseen: Sequence[Sequence[object]] = ()
    ) -> Column:
        """Code a column from its labels.

        Args:
            name: the column's name.
            labels: one sequence per level, each with the label of every value that occurs; level 0 is the value.
                ``None`` is a label like any other.
            unseen: the same for values that the hierarchy knows and the data does not; they count as leaves.

        Raises:
            ValueError: a level is not a function of the level below it, or lengths differ. The text names the
                column and the level, never a label.
        """
        count = len(labels[0])
        coded = []
        for level, own in enumerate(labels):
            every = [*own, *(unseen[level] if unseen else ())]
            known: dict[object, int] = {}
            coded.append([known.setdefault(label, len(known)) for label in every])
        if len({len(level) for level in coded}) != 1:
            raise ValueError(f"`{name}` has not the same number of labels on every level")
        codes = np.array(coded, dtype=np.int64).reshape(len(labels), -1).T
        if len(codes) and int(codes[:, 0].max()) + 1 != len(codes):
            raise ValueError(f"`{name}` has a value twice")
        _check_nested(name, codes)
        leaves = np.stack([np.bincount(codes[:, level])[codes[:, level]] for level in range(codes.shape[1])], axis=1)
        return cls(name=name, codes=codes[:count], leaves=leaves[:count].astype(np.int64), domain=len(codes))

    @property
    def top(self) -> int:
        """The highest level."""
        return int(self.codes.shape[1]) - 1

    @cached_property
    def sizes(self) -> list[int]:
        """Number of labels on each level (an upper limit of the codes)."""
        return [int(size) + 1 for size in self.codes.max(axis=0, initial=0)]


@dataclass(frozen=True, eq=False)
class Sensitive:
    """People per tuple of quasi-identifiers and sensitive value, sparse.

    Attributes:
        name: the column's name.
        cell_tuple: (cells,); index of the tuple.
        cell_value: (cells,); index of the sensitive value.
        cell_people: (cells,); people counted once, see :class:`Table`.
        values: number of distinct values.
        missing: index of NULL among the values, or -1.
        repeated_cell: (pairs,); index of a cell, for people with several cells.
        repeated_unit: (pairs,); number of the person in that pair.
    """

    name: str
    cell_tuple: IntArray
    cell_value: IntArray
    cell_people: IntArray
    values: int
    missing: int = -1
    repeated_cell: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    repeated_unit: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def counts(self, class_of_tuple: IntArray, classes: int) -> FloatArray:
        """People per class and sensitive value.

        Args:
            class_of_tuple: (tuples,); class of each tuple, or -1 where it is left out.
            classes: number of classes.

        Returns:
            (classes, values).
        """
        owner = class_of_tuple[self.cell_tuple]
        seen = owner >= 0
        slot = owner * self.values + self.cell_value
        size = classes * self.values
        counts: FloatArray = np.bincount(slot[seen], weights=self.cell_people[seen], minlength=size).astype(np.float64)
        if len(self.repeated_cell):
            seen = seen[self.repeated_cell]
            counts = counts + _distinct_units(slot[self.repeated_cell][seen], self.repeated_unit[seen], size)
        return counts.reshape(classes, self.values)


@dataclass(frozen=True, eq=False)
class Table:
    """Distinct tuples of the quasi-identifiers and how many people and rows share each.

    A person whose rows all share one tuple is counted in ``people``. A person with several tuples would be counted
    twice when two of them fall in one class, so those are listed as (tuple, person) pairs and counted apart.

    Attributes:
        columns: the quasi-identifiers in order of their names, which makes every answer independent of the order
            in which they were declared.
        values: (tuples, columns); index of the value in its column.
        people: (tuples,); people with this tuple alone.
        rows: (tuples,); rows.
        sensitive: the sensitive columns.
        repeated_tuple: (pairs,); index of the tuple, for people with several tuples.
        repeated_unit: (pairs,); number of the person in that pair.
    """

    columns: tuple[Column, ...]
    values: IntArray
    people: IntArray
    rows: IntArray
    sensitive: tuple[Sensitive, ...] = ()
    repeated_tuple: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    repeated_unit: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        """Put the columns in order of their names."""
        order = sorted(range(len(self.columns)), key=lambda position: self.columns[position].name)
        object.__setattr__(self, "columns", tuple(self.columns[position] for position in order))
        object.__setattr__(self, "values", np.asfortranarray(self.values[:, order]))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in the order of a node's levels."""
        return tuple(column.name for column in self.columns)

    @property
    def top(self) -> Node:
        """The node where every column is at its highest level."""
        return tuple(column.top for column in self.columns)

    @cached_property
    def people_total(self) -> int:
        """Number of people."""
        return int(self.people.sum()) + len(np.unique(self.repeated_unit))

    @cached_property
    def row_total(self) -> int:
        """Number of rows."""
        return int(self.rows.sum())

    @cached_property
    def column_rows(self) -> tuple[IntArray, ...]:
        """Rows per value, for each column."""
        return tuple(
            np.bincount(self.values[:, position], weights=self.rows, minlength=len(column.codes)).astype(np.int64)
            for position, column in enumerate(self.columns)
        )

    def classes(self, node: Node, finer: Classes | None = None) -> Classes:
        """Equivalence classes at a node, in lexicographic order of their codes.

        Args:
            node: one level per column.
            finer: classes of a node that is nowhere above this one; the work is then proportional to their number.
        """
        tuples = None if finer is None else finer.first
        order, starts = self._sorted(node, tuples)
        rows = np.add.reduceat((self.rows if finer is None else finer.rows)[order], starts)
        if len(self.repeated_tuple):
            first = (order if tuples is None else tuples[order])[starts]
            return Classes(node=node, first=first, people=self._people(self.assign(node), len(starts)), rows=rows)
        people = np.add.reduceat((self.people if finer is None else finer.people)[order], starts)
        return Classes(node=node, first=(order if tuples is None else tuples[order])[starts], people=people, rows=rows)

    def assign(self, node: Node) -> IntArray:
        """(tuples,): the class of each tuple, numbered as in :meth:`classes`."""
        codes = [
            column.codes[self.values[:, p], level]
            for p, (column, level) in enumerate(zip(self.columns, node, strict=True))
        ]
        sizes = [column.sizes[level] for column, level in zip(self.columns, node, strict=True)]
        return numbered_groups(codes, sizes, len(self.values))[0]

    def reference(self, column: str) -> FloatArray:
        """(values,): share of each value of a sensitive column among all people."""
        (sensitive,) = (own for own in self.sensitive if own.name == column)
        counts = sensitive.counts(np.zeros(len(self.values), dtype=np.int64), 1)[0]
        shares: FloatArray = counts / max(float(counts.sum()), 1.0)
        return shares

    def select(self, keep: BoolArray) -> Table:
        """The table of the tuples where ``keep`` is true."""
        number = np.cumsum(keep) - 1
        pairs = keep[self.repeated_tuple]
        sensitive = []
        for column in self.sensitive:
            cells = keep[column.cell_tuple]
            cell_number = np.cumsum(cells) - 1
            cell_pairs = cells[column.repeated_cell]
            sensitive.append(
                Sensitive(
                    name=column.name,
                    cell_tuple=number[column.cell_tuple[cells]],
                    cell_value=column.cell_value[cells],
                    cell_people=column.cell_people[cells],
                    values=column.values,
                    missing=column.missing,
                    repeated_cell=cell_number[column.repeated_cell[cell_pairs]],
                    repeated_unit=column.repeated_unit[cell_pairs],
                )
            )
        return Table(
            columns=self.columns,
            values=self.values[keep],
            people=self.people[keep],
            rows=self.rows[keep],
            sensitive=tuple(sensitive),
            repeated_tuple=number[self.repeated_tuple[pairs]],
            repeated_unit=self.repeated_unit[pairs],
        )

    def _people(self, class_of_tuple: IntArray, classes: int) -> IntArray:
        once = np.bincount(class_of_tuple, weights=self.people, minlength=classes).astype(np.int64)
        several = _distinct_units(class_of_tuple[self.repeated_tuple], self.repeated_unit, classes)
        return once + several.astype(np.int64)

    def _sorted(self, node: Node, tuples: IntArray | None) -> tuple[IntArray, IntArray]:
        """Positions in lexicographic order of their codes at ``node``, and where each class starts in that order."""
        codes, sizes = [], []
        for position, (column, level) in enumerate(zip(self.columns, node, strict=True)):
            if column.sizes[level] > 1:
                values = self.values[:, position] if tuples is None else self.values[tuples, position]
                codes.append(column.codes[values, level])
                sizes.append(column.sizes[level])
        return sorted_groups(codes, sizes, len(self.values) if tuples is None else len(tuples))


@dataclass(frozen=True, eq=False)
class Classes:
    """The equivalence classes of a table at one node.

    Attributes:
        node: one level per column.
        first: (classes,); index of one tuple of each class: its labels are the class's labels.
        people: (classes,); distinct people.
        rows: (classes,); rows.
    """

    node: Node
    first: IntArray
    people: IntArray
    rows: IntArray


def sorted_groups(codes: Sequence[IntArray], sizes: Sequence[int], count: int) -> tuple[IntArray, IntArray]:
    """Group rows of codes.

    Args:
        codes: one array (rows,) per column, values from 0.
        sizes: a bound above each column's values.
        count: number of rows.

    Returns:
        The positions of the rows in lexicographic order, stable; and where each group of equal rows starts in it.
    """
    key = np.zeros(count, dtype=np.int64)
    span = 1
    for own, size in zip(codes, sizes, strict=True):
        if span > _KEY_LIMIT // size:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            span = count
        key *= size
        key += own
        span *= size
    return _order(key, span)


def numbered_groups(codes: Sequence[IntArray], sizes: Sequence[int], count: int) -> tuple[IntArray, IntArray]:
    """(rows,): the group of each row, in lexicographic order; and (groups,): one row of each. See above."""
    order, starts = sorted_groups(codes, sizes, count)
    marks = np.zeros(count, dtype=np.int64)
    marks[starts[1:]] = 1
    number = np.empty(count, dtype=np.int64)
    number[order] = np.cumsum(marks)
    return number, order[starts]


def _order(key: IntArray, span: int) -> tuple[IntArray, IntArray]:
    """A stable order of ``key`` (values below ``span``) and the start of each run of equal keys in it."""
    count = len(key)
    if count == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    bits = count.bit_length()
    if span < 2 ** (62 - bits):
        # Key and position in one number: numpy sorts integers several times faster than it finds their order.
        packed = np.sort((key << bits) | np.arange(count, dtype=np.int64))
        ordered = packed >> bits
        order = packed & ((1 << bits) - 1)
    else:
        order = np.argsort(key, kind="stable")
        ordered = key[order]
    starts = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))
    return order, starts


def _distinct_units(group: IntArray, unit: IntArray, groups: int) -> FloatArray:
    """(groups,): number of different units in each group."""
    if len(group) == 0:
        return np.zeros(groups)
    pairs = np.unique(np.stack([group, unit], axis=1), axis=0)
    return np.bincount(pairs[:, 0], minlength=groups).astype(np.float64)


def _check_nested(name: str, codes: IntArray) -> None:
    for level in range(codes.shape[1] - 1):
        lower, upper = codes[:, level], codes[:, level + 1]
        parent = np.zeros(int(lower.max(initial=0)) + 1, dtype=np.int64)
        parent[lower] = upper
        if np.any(parent[lower] != upper):
            raise ValueError(
                f"`{name}`: level {level + 1} is not a function of level {level}: values with one label there have "
                f"several here, so the levels are not nested"
            )
