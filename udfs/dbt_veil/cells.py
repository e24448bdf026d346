"""Suppressed cells of a table with published totals: which can be worked out, and which more must go.

A cell belongs to lines: for each published margin, the cells that are added up to one of its totals. A reader who
knows the totals and the published cells has one linear equation a line in the suppressed ones, and can work out a cell
exactly when the equations determine it (Cox 1980; Willenborg and de Waal 2001, chapter 3). Bounds on a cell, and what
follows from counts not being negative, are not looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dbt_veil.udf import Session, Udf

PRIME = 2_147_483_647
"""Elimination is done modulo this prime: exact in 64 bits, and with 0/1 coefficients as good as over the rationals."""


def recoverable(lines: Sequence[Sequence[str]]) -> list[bool]:
    """Which suppressed cells the totals determine.

    Args:
        lines: for each suppressed cell, the lines it belongs to.

    Returns:
        One truth value a cell, in the order given.

    >>> recoverable([["row 1", "column 1"], ["row 1", "column 2"], ["row 2", "column 2"]])
    [True, True, True]
    >>> recoverable([["row 1", "column 1"], ["row 1", "column 2"], ["row 2", "column 1"], ["row 2", "column 2"]])
    [False, False, False, False]
    """
    found = [False] * len(lines)
    for cells in _components(lines):
        names = {line: row for row, line in enumerate({line for cell in cells for line in lines[cell]})}
        system = np.zeros((len(names), len(cells)), dtype=np.int64)
        for column, cell in enumerate(cells):
            for line in lines[cell]:
                system[names[line], column] = 1
        for column in _determined(system):
            found[cells[column]] = True
    return found


def suppress(counts: Sequence[int | None], lines: Sequence[Sequence[str]], floor: int) -> list[bool]:
    """Which cells to leave out, so that none below ``floor`` is published or can be worked out.

    Cells from 1 to ``floor`` - 1 go first. Then the smallest other cells of a line go until what is left out of it are
    at least two cells with ``floor`` people together, and no cell left out is determined by the totals.

    Args:
        counts: people in each cell; ``None`` is already left out, and counts as 0 in the sums.
        lines: for each cell, the lines it belongs to.
        floor: the least count that may be known.

    Returns:
        One truth value a cell: True to leave it out.

    Raises:
        ValueError: a line has no further cell to leave out, so that its total must not be published.

    >>> suppress([1, 9, 8, 7], [["r1", "c1"], ["r1", "c2"], ["r2", "c1"], ["r2", "c2"]], 5)
    [True, True, True, True]
    """
    gone = [count is None or 0 < count < floor for count in counts]
    members: dict[str, list[int]] = defaultdict(list)
    for cell, own in enumerate(lines):
        for line in own:
            members[line].append(cell)
    while True:
        changed = False
        for cells in members.values():
            out = [cell for cell in cells if gone[cell]]
            while out and (len(out) < 2 or sum(counts[cell] or 0 for cell in out) < floor):
                out.append(_cheapest(cells, counts, gone))
                gone[out[-1]] = changed = True
        if changed:
            continue
        out = [cell for cell, is_gone in enumerate(gone) if is_gone]
        known = [cell for cell, is_known in zip(out, recoverable([lines[c] for c in out]), strict=True) if is_known]
        if not known:
            return gone
        neighbours = {cell for line in lines[known[0]] for cell in members[line]}
        gone[_cheapest(neighbours, counts, gone)] = True


def _cheapest(cells: Iterable[int], counts: Sequence[int | None], gone: Sequence[bool]) -> int:
    """The published cell with the fewest people that is not empty; of equal ones the first."""
    left = [(count, cell) for cell in cells if not gone[cell] and (count := counts[cell])]
    if not left:
        raise ValueError(
            "veil.suppress_small_cells(): a total has too few cells or people to protect the small cells in it. "
            "Do not publish that margin, or merge categories"
        )
    return min(left)[1]


def _components(lines: Sequence[Sequence[str]]) -> list[list[int]]:
    """Cells in groups that share no line with one another."""
    root = list(range(len(lines)))

    def find(cell: int) -> int:
        while root[cell] != cell:
            root[cell] = root[root[cell]]
            cell = root[cell]
        return cell

    first: dict[str, int] = {}
    for cell, own in enumerate(lines):
        for line in own:
            root[find(cell)] = find(first.setdefault(line, cell))
    groups: dict[int, list[int]] = defaultdict(list)
    for cell in range(len(lines)):
        groups[find(cell)].append(cell)
    return list(groups.values())


def _determined(system: NDArray[np.int64]) -> list[int]:
    """Columns whose unknown the equations determine: alone in their row of the reduced echelon form."""
    matrix = system.copy()
    pivots: list[int] = []
    for column in range(matrix.shape[1]):
        row = len(pivots)
        candidates = np.flatnonzero(matrix[row:, column])
        if candidates.size == 0:
            continue
        swap = row + int(candidates[0])
        matrix[[row, swap]] = matrix[[swap, row]]
        matrix[row] = matrix[row] * pow(int(matrix[row, column]), -1, PRIME) % PRIME
        others = np.flatnonzero(matrix[:, column])
        others = others[others != row]
        matrix[others] = (matrix[others] - matrix[others, column][:, None] * matrix[row]) % PRIME
        pivots.append(column)
        if len(pivots) == matrix.shape[0]:
            break
    return [column for row, column in enumerate(pivots) if np.count_nonzero(matrix[row]) == 1]


def udfs(session: Session) -> Sequence[Udf]:
    """The functions of this family."""
    return (
        Udf("veil_recoverable_cells", recoverable, ("VARCHAR[][]",), "BOOLEAN[]", arrow=False),
        Udf("veil_suppress_cells", suppress, ("BIGINT[]", "VARCHAR[][]", "BIGINT"), "BOOLEAN[]", arrow=False),
    )
