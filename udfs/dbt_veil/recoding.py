"""Local recoding: levels of its own for every group of people, instead of one node for all.

The nodes of the lattice are walked from the least lossy to the most. Each takes the people who form classes that
satisfy the policy there and leaves the others to the next. So nobody's values are coarser than the first node at
which enough others, who are left too, look alike. A node that would take less than a small share of the people is
passed over, which keeps the rounds few and readable.

Every class that a round takes satisfies the policy. In the release, classes of different rounds may carry the same
labels and are then one class: it has more than k people, and it satisfies every convex model because its
distribution is an average (:mod:`dbt_veil.criteria`). What is not convex is measured by the release gate.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from dbt_veil import utility
from dbt_veil.criteria import TOLERANCE
from dbt_veil.frequency import BoolArray, FloatArray, IntArray, Node, Table
from dbt_veil.search import DIGITS, EXACT_NODES, Judge, Lattice, Policy, Progress, SearchError, check

LEAST_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class Recoding:
    """Levels by tuple.

    Attributes:
        rounds: the nodes, in the order in which they took people.
        round_of_tuple: (tuples,); index of the round, or -1 for what is suppressed.
        people: people in the release.
        suppressed_people: people with no row in it.
        suppressed_rows: rows left out.
        loss: loss as ARX defines it, each cell at the level it has; 1 - loss is called granularity.
        seconds: time it took.
    """

    rounds: list[dict[str, int]]
    round_of_tuple: IntArray
    people: int
    suppressed_people: int
    suppressed_rows: int
    loss: float
    seconds: float


def recode(
    table: Table,
    policy: Policy,
    *,
    least_share: float = LEAST_SHARE,
    min_level: dict[str, int] | None = None,
    max_level: dict[str, int] | None = None,
    exact_nodes: int = EXACT_NODES,
    time_limit: float = 60.0,
    progress: Progress | None = None,
) -> Recoding:
    """Recode locally.

    Args:
        table: the frequency table.
        policy: what every class must satisfy; the last rows are left out if no node takes them, and the people who
            have one among them are no more than its suppression limit.
        least_share: share of all people that a round must take, unless it takes all that are left.
        min_level: lowest level by column.
        max_level: highest level by column.
        exact_nodes: the largest lattice that is walked.
        time_limit: seconds after which the rest is taken by the first node that can take all of it.
        progress: is told how far the walk is, about once a second.

    Raises:
        SearchError: as :func:`dbt_veil.search.search`, or the lattice is larger than ``exact_nodes``.
    """
    started = time.monotonic()
    check(table, policy)
    lattice = Lattice(table, min_level or {}, max_level or {})
    if lattice.nodes > exact_nodes:
        raise SearchError(
            f"the lattice has {lattice.nodes} nodes, and local recoding walks up to {exact_nodes}. "
            f"Give some columns a `min_level` or `max_level`, or hierarchies with fewer levels"
        )
    walk = _Walk(table, policy, lattice, least_share, started + time_limit, progress)
    walk.run()
    rounds = [dict(zip(table.names, node, strict=True)) for node, _ in walk.taken]
    round_of_tuple = np.full(len(table.values), -1, dtype=np.int64)
    for number, (_, tuples) in enumerate(walk.taken):
        round_of_tuple[tuples] = number
    out = round_of_tuple < 0
    return Recoding(
        rounds=rounds,
        round_of_tuple=round_of_tuple,
        people=table.select(~out).people_total,
        suppressed_people=table.people_total - table.select(~out).people_total,
        suppressed_rows=int(table.rows[out].sum()),
        loss=_loss(table, [node for node, _ in walk.taken], round_of_tuple),
        seconds=time.monotonic() - started,
    )


class _Walk:
    """The walk from the least lossy node up, with the rounds taken so far."""

    def __init__(
        self,
        table: Table,
        policy: Policy,
        lattice: Lattice,
        least_share: float,
        deadline: float,
        progress: Progress | None,
    ) -> None:
        self.table, self.policy, self.lattice = table, policy, lattice
        self.least = max(policy.k, math.ceil(least_share * table.people_total - TOLERANCE))
        self.limit = math.floor(policy.suppress_up_to * table.people_total + TOLERANCE)
        self.deadline, self.progress = deadline, progress
        self.reference = {column.name: table.reference(column.name) for column in table.sensitive}
        self.order = self._order()
        self.taken: list[tuple[Node, IntArray]] = []

    def run(self) -> None:
        """Walk until nobody is left, then see to those whom no node took."""
        left = self._walk(np.arange(len(self.table.values)))
        while len(left):
            if self._part(left).people_total <= self.limit:
                return
            node = self._node_for_all(left)
            if node is not None:
                self.taken.append((node, left))
                return
            if not self.taken:
                raise SearchError(
                    "no node satisfies the policy for all people within `suppress_up_to`. "
                    "Raise it or `max_level`, or relax the threshold"
                )
            left = np.sort(np.concatenate([left, self.taken.pop()[1]]))

    def _order(self) -> list[Node]:
        """All nodes by the sum of their columns' losses, ties to the smallest levels."""
        loss = utility.Loss(self.table, {})
        total = np.zeros(self.lattice.shape)
        for position, levels in enumerate(self.lattice.columns):
            shape = [1] * len(self.lattice.columns)
            shape[position] = len(levels)
            total = total + loss.means[position][levels].reshape(shape)
        numbers = np.argsort(np.round(total, DIGITS).ravel(), kind="stable")
        return [self.lattice.node(int(number)) for number in numbers]

    def _walk(self, left: IntArray) -> IntArray:
        judge = Judge(self.table, self.policy)
        told = time.monotonic()
        for node in self.order:
            rest = judge.table
            if not len(left) or time.monotonic() > self.deadline:
                break
            kept = self._kept(judge, node)
            least = min(self.least, rest.people_total)
            if judge.classes(node).people[kept].sum() < least:
                continue
            take = kept[judge.assign(node)]
            if rest.select(take).people_total < least:
                continue
            self.taken.append((node, left[take]))
            left = left[~take]
            judge = Judge(rest.select(~take), self.policy)
            if self.progress and time.monotonic() - told > 1:
                told = time.monotonic()
                people = judge.table.people_total
                self.progress(f"{len(self.taken)} rounds, {people} of {self.table.people_total} people left")
        return left

    def _kept(self, judge: Judge, node: Node) -> BoolArray:
        """(classes,): those that satisfy the policy; none where even the large ones are too few for a round."""
        classes = judge.classes(node)
        kept = classes.people >= self.policy.k
        if classes.people[kept].sum() < min(self.least, judge.table.people_total):
            return np.zeros(len(kept), dtype=bool)
        return judge.satisfied(classes, kept, self.reference)

    def _part(self, tuples: IntArray) -> Table:
        inside = np.zeros(len(self.table.values), dtype=bool)
        inside[tuples] = True
        return self.table.select(inside)

    def _node_for_all(self, left: IntArray) -> Node | None:
        judge = Judge(self._part(left), replace(self.policy, suppress_up_to=0.0))
        if not judge.other and not self._takes_all(judge, self.lattice.node(self.lattice.nodes - 1)):
            # Where nothing is suppressed the policy is monotone: what the top cannot take, no node can.
            return None
        return next((node for node in self.order if self._takes_all(judge, node)), None)

    def _takes_all(self, judge: Judge, node: Node) -> bool:
        classes = judge.classes(node)
        kept = classes.people >= self.policy.k
        return bool(kept.all() and judge.satisfied(classes, kept, self.reference).all())


def _loss(table: Table, rounds: list[Node], round_of_tuple: IntArray) -> float:
    """Loss with each tuple at the levels of its round, suppressed ones at 1."""
    loss = utility.Loss(table, {})
    levels = np.array([*rounds, table.top], dtype=np.int64)[round_of_tuple]
    means: list[float] = []
    for position, cost in enumerate(loss.costs):
        values = table.values[:, position]
        cells: FloatArray = np.where(round_of_tuple < 0, loss.full[position][values], cost[values, levels[:, position]])
        means.append(float(table.rows @ cells) / table.row_total)
    return float(np.expm1(np.mean(np.log1p(means))))
