"""Search the generalisation lattice for the least destructive levels that satisfy a policy.

A node of the lattice is one level per quasi-identifier. The search asks as few nodes as it can, and is exact:

1. *Which nodes may be feasible.* The parts of the policy that are monotone are decided for the whole lattice: a node
   that satisfies them settles every node above it, one that fails settles every node below. The next node to ask is
   the one that settles most either way (a binary search on a partial order; Flash, Kohlmayer et al. 2012, does the
   same along paths from the bottom to the top).

   Monotone are: k with any suppression limit, since a class of k people stays one when merged, so whoever is kept
   below is kept above; and without suppression distinct l and every model whose class distributions form a convex
   set (:mod:`dbt_veil.criteria` says which, and why). With suppression no model on sensitive values is monotone:
   people who were left out below come back above, in classes that may fail, and they move the reference.

2. *Which of them are best.* What is left is asked in the order of a lower bound of the metric, until the bound of the
   next node is above the worst release on the list. A model that is not monotone is decided here, node by node, so no
   property is assumed of it.

Classes of a node are formed from those of a finer node that is already known and has fewest classes (roll-up).

Nodes are numbered in lexicographic order of their levels, columns in order of their names. Ties go to the smallest
number. So the answer depends neither on the order of the columns nor on any thread.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbt_veil import utility
from dbt_veil.criteria import TOLERANCE, Criterion, View, worst
from dbt_veil.frequency import BoolArray, Classes, FloatArray, IntArray, Node, Table

EXACT_NODES = 100_000
DIGITS = 12
_UNKNOWN, _FEASIBLE, _INFEASIBLE = 0, 1, 2
# How steeply the guess in `_Exact._undecided` turns from yes to no, in units of ln(label combinations).
_SHARPNESS = 0.5
# Classes kept for roll-up, over all nodes: 24 bytes each.
_KEPT_CLASSES = 8_000_000

StateArray = npt.NDArray[np.int8]
Progress = Callable[[str], None]


class SearchError(ValueError):
    """The question has no answer, or none that can be found; the text says what to change."""


@dataclass(frozen=True)
class Policy:
    """What every equivalence class of a release must satisfy.

    Classes of fewer than k people are left out of a release, and every class that is kept must satisfy the criteria,
    with the kept people as the reference: that is what ``veil.anonymize`` builds and the release gate measures.

    Attributes:
        k: people in a class.
        criteria: models on sensitive columns.
        suppress_up_to: largest share of people that may be left out. Someone is left out whose rows all are.
    """

    k: int
    criteria: tuple[Criterion, ...] = ()
    suppress_up_to: float = 0.0


@dataclass(frozen=True)
class Release:
    """A feasible node and what it keeps and costs.

    Attributes:
        levels: level by column.
        people: people in the release.
        suppressed_people: people left out.
        suppressed_rows: rows left out.
        classes: equivalence classes.
        smallest: people in the smallest class.
        score: the metric that was searched for.
        loss: loss as ARX defines it.
        discernibility: sum of squared class sizes, plus all rows for each suppressed row.
        average_class: rows by classes.
        figures: the worst figure of each criterion, by ``<name> of <column>``.
    """

    levels: dict[str, int]
    people: int
    suppressed_people: int
    suppressed_rows: int
    classes: int
    smallest: int
    score: float
    loss: float
    discernibility: float
    average_class: float
    figures: dict[str, float]


@dataclass(frozen=True)
class Answer:
    """What a search found.

    Attributes:
        releases: best first.
        nodes: nodes of the lattice.
        checked: nodes whose classes were formed to decide whether they satisfy the policy.
        measured: further nodes whose classes were formed for the metric alone.
        feasible: number of feasible nodes, or ``None`` where the best were found without deciding all.
        minimal: feasible nodes with none below them, or ``None``.
        exact: the first release is the optimum, not just the best found.
        seconds: time the search took.
    """

    releases: list[Release]
    nodes: int
    checked: int
    measured: int
    feasible: int | None
    minimal: list[dict[str, int]] | None
    exact: bool
    seconds: float


@dataclass(frozen=True, eq=False)
class Verdict:
    """A feasible node.

    Attributes:
        classes: its classes.
        kept: (classes,); those that are released.
        suppressed_people: people who are not in a kept class.
    """

    classes: Classes
    kept: BoolArray
    suppressed_people: int


class Judge:
    """Forms the classes of nodes and tells which of them satisfy a policy.

    Args:
        table: the frequency table.
        policy: the policy.
    """

    def __init__(self, table: Table, policy: Policy) -> None:
        self.table = table
        self.policy = policy
        self.limit = math.floor(policy.suppress_up_to * table.people_total + TOLERANCE)
        # Who has other rows that are kept is not left out: a small class of such people may be dropped at no charge,
        # and so may one of rows without a person.
        self.may_suppress = self.limit > 0 or len(table.repeated_tuple) > 0 or bool((table.people == 0).any())
        self.sensitive = {column.name: column for column in table.sensitive}
        self.monotone = tuple(c for c in policy.criteria if self._monotone(c))
        self.other = tuple(c for c in policy.criteria if not self._monotone(c))
        self._known: dict[Node, Classes] = {}
        self._levels = np.zeros((0, len(table.columns)), dtype=np.int64)
        self._sizes = np.zeros(0, dtype=np.int64)
        self._nodes: list[Node] = []
        self._room = _KEPT_CLASSES
        self._assigned: tuple[Node, IntArray] | None = None

    def _monotone(self, criterion: Criterion) -> bool:
        counted_once = len(self.sensitive[criterion.column].repeated_cell) == 0
        return not self.may_suppress and (criterion.persistent or (criterion.convex and counted_once))

    def classes(self, node: Node) -> Classes:
        """The classes of a node, from the smallest known set of finer ones."""
        if node in self._known:
            return self._known[node]
        finer = None
        if self._nodes:
            below = np.flatnonzero((self._levels <= np.array(node)).all(axis=1))
            if len(below):
                finer = self._known[self._nodes[below[np.argmin(self._sizes[below])]]]
        result = self.table.classes(node, finer)
        if len(result.first) > self._room:
            return result
        self._room -= len(result.first)
        if finer is None or len(result.first) < len(finer.first):
            self._nodes.append(node)
            self._levels = np.vstack([self._levels, np.array(node)])
            self._sizes = np.append(self._sizes, len(result.first))
        self._known[node] = result
        return result

    def assign(self, node: Node) -> IntArray:
        """(tuples,): the class of each tuple; that of the last node is remembered."""
        if self._assigned is None or self._assigned[0] != node:
            self._assigned = (node, self.table.assign(node))
        return self._assigned[1]

    def passes_monotone(self, node: Node) -> bool:
        """Whether a node satisfies the monotone part of the policy within the suppression limit."""
        return self._verdict(node, self.monotone) is not None

    def verdict(self, node: Node) -> Verdict | None:
        """What is kept of a node, or ``None`` if it does not satisfy the policy within the suppression limit."""
        return self._verdict(node, self.policy.criteria)

    def figures(self, verdict: Verdict) -> dict[str, float]:
        """The worst figure of each criterion among the kept classes."""
        result = {}
        for criterion in self.policy.criteria:
            view = self._view(verdict.classes, verdict.kept, criterion.column)
            figure = worst(criterion, criterion.figures(view))
            if figure is not None:
                result[f"{criterion.name} of {criterion.column}"] = figure
        return result

    def satisfied(self, classes: Classes, kept: BoolArray, reference: Mapping[str, FloatArray]) -> BoolArray:
        """(classes,): the kept classes that satisfy every criterion against a given reference."""
        for criterion in self.policy.criteria:
            if not kept.any():
                break
            view = self._view(classes, kept, criterion.column, reference[criterion.column])
            kept = kept.copy()
            kept[np.flatnonzero(kept)[~criterion.holds(view)]] = False
        return kept

    def _verdict(self, node: Node, criteria: Sequence[Criterion]) -> Verdict | None:
        classes = self.classes(node)
        kept = classes.people >= self.policy.k
        suppressed = self._suppressed(classes, kept)
        if suppressed > self.limit:
            return None
        for criterion in criteria:
            if not criterion.holds(self._view(classes, kept, criterion.column)).all():
                return None
        return Verdict(classes, kept, suppressed)

    def _view(self, classes: Classes, kept: BoolArray, column: str, reference: FloatArray | None = None) -> View:
        number = np.where(kept, np.cumsum(kept) - 1, -1)[self.assign(classes.node)]
        sensitive = self.sensitive[column]
        if reference is None:
            together = sensitive.counts(np.minimum(number, 0), 1)[0]
            reference = together / max(float(together.sum()), 1.0)
        return View(
            counts=sensitive.counts(number, int(kept.sum())),
            people=classes.people[kept].astype(np.float64),
            reference=reference,
            missing=sensitive.missing,
        )

    def _suppressed(self, classes: Classes, kept: BoolArray) -> int:
        if kept.all():
            return 0
        if not len(self.table.repeated_tuple):
            return int(classes.people[~kept].sum())
        inside = kept[self.assign(classes.node)]
        several = len(np.unique(self.table.repeated_unit[inside[self.table.repeated_tuple]]))
        return self.table.people_total - int(self.table.people[inside].sum()) - several


class Lattice:
    """The nodes of a search and what is known of each.

    Args:
        table: the frequency table.
        least: lowest level by column.
        most: highest level by column.

    Raises:
        SearchError: a limit names no column, or leaves no level.
    """

    def __init__(self, table: Table, least: Mapping[str, int], most: Mapping[str, int]) -> None:
        for argument, limits in (("min_level", least), ("max_level", most)):
            for name in limits:
                if name not in table.names:
                    known = ", ".join(f"`{own}`" for own in table.names)
                    raise SearchError(f"`{argument}` must name quasi-identifiers ({known}). Got: `{name}`")
        self.columns: list[list[int]] = []
        for column in table.columns:
            low, high = int(least.get(column.name, 0)), int(most.get(column.name, column.top))
            if not 0 <= low <= high <= column.top:
                raise SearchError(
                    f"`min_level` and `max_level` of `{column.name}` must be between 0 and {column.top}, "
                    f"the least no higher than the most. Got: {low} and {high}"
                )
            self.columns.append(list(range(low, high + 1)))
        self.shape = tuple(len(levels) for levels in self.columns)
        self.nodes = math.prod(self.shape)

    def node(self, number: int) -> Node:
        """The levels of the node with this number; numbers follow the order of the levels."""
        place = []
        for size in reversed(self.shape):
            number, position = divmod(number, size)
            place.append(position)
        return tuple(levels[position] for levels, position in zip(self.columns, reversed(place), strict=True))

    def number(self, node: Node) -> int:
        """The number of a node, which no lattice is too large for."""
        number = 0
        for size, position in zip(self.shape, self.place(node), strict=True):
            number = number * size + position
        return number

    def place(self, node: Node) -> tuple[int, ...]:
        """The position of a node in an array of the lattice's shape."""
        return tuple(level - levels[0] for level, levels in zip(node, self.columns, strict=True))

    def above(self, node: Node) -> tuple[slice, ...]:
        """The node and all above it."""
        return tuple(slice(position, None) for position in self.place(node))

    def below(self, node: Node) -> tuple[slice, ...]:
        """The node and all below it."""
        return tuple(slice(None, position + 1) for position in self.place(node))


def search(
    table: Table,
    policy: Policy,
    *,
    metric: str = "loss",
    weights: Mapping[str, float] | None = None,
    min_level: Mapping[str, int] | None = None,
    max_level: Mapping[str, int] | None = None,
    top: int = 1,
    count: bool = False,
    time_limit: float = 60.0,
    exact_nodes: int = EXACT_NODES,
    progress: Progress | None = None,
) -> Answer:
    """Find the best levels.

    Args:
        table: the frequency table.
        policy: what every class must satisfy.
        metric: what is least at the best node; one of :data:`dbt_veil.utility.METRICS`.
        weights: weight of a column in the metrics of cells, 1 where it is absent.
        min_level: lowest level by column.
        max_level: highest level by column.
        top: number of releases wanted.
        count: decide every node, to tell how many are feasible and which of them are minimal. Without suppression
            that is always told for monotone policies.
        time_limit: seconds after which the search ends with what it has.
        exact_nodes: the largest lattice that is searched exactly.
        progress: is told how far the search is, about once a second.

    Raises:
        SearchError: the table is empty, there are fewer people than k, an argument is wrong, or no node is feasible.
    """
    started = time.monotonic()
    weights = dict(weights or {})
    check(table, policy)
    _check_options(table, metric, weights, top)
    lattice = Lattice(table, min_level or {}, max_level or {})
    judge = Judge(table, policy)
    deadline = started + time_limit
    measure = utility.METRICS[metric](table, weights)
    if lattice.nodes > exact_nodes:
        run: _Exact | _Descent = _Descent(judge, lattice, measure, top, deadline, progress)
    else:
        run = _Exact(judge, lattice, measure, top, count, deadline, progress)
    run.solve()
    if not run.found and not run.exact and isinstance(run, _Exact):
        run = _Descent(judge, lattice, measure, top, time.monotonic() + time_limit / 10, progress)
        run.solve()
    if not run.found:
        raise SearchError(_nothing(judge, lattice, run.exact))
    scribe = _Scribe(judge, weights)
    releases = [scribe.release(lattice.node(number), score) for score, number in run.found]
    return Answer(
        releases=releases,
        nodes=lattice.nodes,
        checked=run.checked,
        measured=run.measured,
        feasible=run.feasible(),
        minimal=run.minimal(),
        exact=run.exact,
        seconds=time.monotonic() - started,
    )


def nearest(
    table: Table, policy: Policy, levels: Mapping[str, int], *, exact_nodes: int = EXACT_NODES, time_limit: float = 60.0
) -> tuple[Release | None, Release | None]:
    """Whether given levels satisfy a policy, and the nearest levels that do.

    Args:
        table: the frequency table.
        policy: the policy.
        levels: level of each column.
        exact_nodes: the largest lattice that is looked through.
        time_limit: seconds after which the look ends.

    Returns:
        The release at these levels and the one whose levels differ by the fewest steps in sum, ties to the least loss;
        ``None`` where there is none. The two are the same when the levels still hold.

    Raises:
        SearchError: as :func:`search`; or a level is missing or beyond its hierarchy.
    """
    check(table, policy)
    judge, scribe = Judge(table, policy), _Scribe(Judge(table, policy), {})
    node = tuple(int(levels.get(name, -1)) for name in table.names)
    for column, level in zip(table.columns, node, strict=True):
        if not 0 <= level <= column.top:
            raise SearchError(f"`levels` must have a level from 0 to {column.top} for `{column.name}`")
    if judge.verdict(node) is not None:
        now = scribe.release(node)
        return now, now
    lattice = Lattice(table, {}, {})
    if lattice.nodes > exact_nodes:
        return None, None
    bounds = utility.Loss(table, {}).lattice(lattice.columns)
    steps = np.zeros(lattice.shape)
    for position, own in enumerate(lattice.columns):
        shape = [1] * len(node)
        shape[position] = len(own)
        steps = steps + np.abs(np.array(own) - node[position]).reshape(shape)
    failed = np.zeros(lattice.shape, dtype=bool)
    deadline = time.monotonic() + time_limit
    for number in np.lexsort((np.round(bounds, DIGITS).ravel(), steps.ravel())).tolist():
        other = lattice.node(number)
        if failed[lattice.place(other)]:
            continue
        if time.monotonic() > deadline:
            break
        if not judge.passes_monotone(other):
            failed[lattice.below(other)] = True
        elif judge.verdict(other) is not None:
            return None, scribe.release(other)
    return None, None


class _Scribe:
    """Describes feasible nodes."""

    def __init__(self, judge: Judge, weights: Mapping[str, float]) -> None:
        self.judge = judge
        self.loss = utility.Loss(judge.table, weights)
        self.squares = utility.Discernibility(judge.table, weights)
        self.mean = utility.AverageClass(judge.table, weights)

    def release(self, node: Node, score: float | None = None) -> Release:
        """The release at a feasible node; its score is the loss where none is given."""
        verdict = self.judge.verdict(node)
        assert verdict is not None
        table, classes, kept = self.judge.table, verdict.classes, verdict.kept
        loss = self.loss.value(classes, kept)
        return Release(
            levels=dict(zip(table.names, node, strict=True)),
            people=table.people_total - verdict.suppressed_people,
            suppressed_people=verdict.suppressed_people,
            suppressed_rows=int(classes.rows[~kept].sum()),
            classes=int(kept.sum()),
            smallest=int(classes.people[kept].min(initial=table.people_total)),
            score=loss if score is None else score,
            loss=loss,
            discernibility=self.squares.value(classes, kept),
            average_class=self.mean.value(classes, kept),
            figures=self.judge.figures(verdict),
        )


class _Exact:
    """The exact search of a lattice that is small enough to keep a mark for each node."""

    def __init__(
        self,
        judge: Judge,
        lattice: Lattice,
        metric: utility.Metric,
        top: int,
        count: bool,
        deadline: float,
        progress: Progress | None,
    ) -> None:
        self.judge, self.lattice, self.metric = judge, lattice, metric
        self.top, self.deadline, self.progress = top, deadline, progress
        # Without suppression the whole lattice is settled with fewer nodes than the part that may hold the best.
        self.count = count or not (judge.may_suppress or judge.other)
        self.state: StateArray = np.full(lattice.shape, _UNKNOWN, dtype=np.int8)
        bounds = metric.lattice(lattice.columns)
        self.from_cells = bounds is not None
        self.bounds = np.zeros(lattice.shape) if bounds is None else np.round(bounds, DIGITS)
        self.labels = _label_counts(judge.table, lattice)
        self.most_labels, self.least_labels = -math.inf, math.inf
        self.found: list[tuple[float, int]] = []
        self.asked: set[Node] = set()
        self.failed = 0
        self.checked = 0
        self.measured = 0
        self.exact = True
        self._told = time.monotonic()

    def solve(self) -> None:
        """Decide the monotone part, then what remains, as far as it may hold a better release."""
        step = self._undecided
        while self.exact:
            number = step()
            if number is None and step == self._undecided:
                step = self._unmeasured
                continue
            if number is None:
                break
            self._ask(self.lattice.node(number))
            if time.monotonic() > self.deadline:
                self.exact = False
            self._tell()

    def feasible(self) -> int | None:
        """Number of feasible nodes, if every node was decided."""
        if not self._all_decided():
            return None
        return int((self.state == _FEASIBLE).sum()) - self.failed

    def minimal(self) -> list[dict[str, int]] | None:
        """Feasible nodes with no feasible node right below them, if every node was decided and all is monotone."""
        if not self._all_decided() or self.judge.other:
            return None
        own = self.state == _FEASIBLE
        least = own.copy()
        for axis in range(own.ndim):
            lower = np.zeros_like(own)
            lower[_slice(own.ndim, axis, slice(1, None))] = own[_slice(own.ndim, axis, slice(None, -1))]
            least &= ~lower
        names = self.judge.table.names
        return [dict(zip(names, self.lattice.node(int(n)), strict=True)) for n in np.flatnonzero(least)]

    def _all_decided(self) -> bool:
        return self.exact and self.count

    def _worth(self) -> BoolArray:
        """The nodes that may still enter the list of the best."""
        if self.count or len(self.found) < self.top:
            return np.ones(self.lattice.shape, dtype=bool)
        return self.bounds <= self.found[-1][0]

    def _undecided(self) -> int | None:
        """The undecided node that can be expected to settle most, whichever way it turns out.

        How many nodes an answer settles is counted; how likely the answer is yes is guessed from the number of label
        combinations, against those of the nodes asked before. The guess costs nothing and decides only the order.
        """
        undecided = (self.state == _UNKNOWN) & self._worth()
        if not undecided.any():
            return None
        above = _counted_up(undecided, reverse=True)
        below = _counted_up(undecided)
        if math.isinf(self.most_labels) and math.isinf(self.least_labels):
            turn = float(np.median(self.labels))
        elif math.isinf(self.most_labels):
            turn = self.least_labels - _SHARPNESS
        elif math.isinf(self.least_labels):
            turn = self.most_labels + _SHARPNESS
        else:
            turn = (self.most_labels + self.least_labels) / 2
        likely = 1 / (1 + np.exp(np.clip((self.labels - turn) / _SHARPNESS, -50, 50)))
        gain = np.minimum(likely * above, (1 - likely) * below)
        return int(np.argmax(np.where(undecided, gain, -1.0)))

    def _unmeasured(self) -> int | None:
        """The feasible node with the least bound that is not measured yet, if it may still be among the best."""
        if self.from_cells and not (self.judge.may_suppress or self.judge.other):
            self._take()
            return None
        waiting = (self.state == _FEASIBLE) & self._worth()
        for node in self.asked:
            waiting[self.lattice.place(node)] = False
        if not waiting.any() or (self.count and not self.judge.other and not self._better(waiting)):
            return None
        return int(np.argmin(np.where(waiting, self.bounds, np.inf)))

    def _better(self, waiting: BoolArray) -> bool:
        return len(self.found) < self.top or bool((self.bounds[waiting] <= self.found[-1][0]).any())

    def _take(self) -> None:
        """Rank by the bounds alone: without suppression they are the metric itself."""
        numbers = np.flatnonzero(self.state == _FEASIBLE)
        scores = self.bounds.ravel()[numbers]
        order = np.lexsort((numbers, scores))[: self.top]
        self.found = [(float(scores[position]), int(numbers[position])) for position in order]
        self.measured += sum(self.lattice.node(number) not in self.asked for _, number in self.found)

    def _ask(self, node: Node) -> None:
        place = self.lattice.place(node)
        self.asked.add(node)
        if self.state[place] == _FEASIBLE and not self.judge.other:
            self.measured += 1
        else:
            self.checked += 1
        if self.state[place] == _UNKNOWN:
            labels = float(self.labels[place])
            if not self.judge.passes_monotone(node):
                self.state[self.lattice.below(node)] = _INFEASIBLE
                self.least_labels = min(self.least_labels, labels)
                self._learn(node)
                return
            self.state[self.lattice.above(node)] = _FEASIBLE
            self.most_labels = max(self.most_labels, labels)
        self._learn(node)
        verdict = self.judge.verdict(node)
        if verdict is None:
            self.failed += 1
            return
        score = _rounded(self.metric.value(verdict.classes, verdict.kept))
        self.found = sorted([*self.found, (score, self.lattice.number(node))])[: self.top]

    def _learn(self, node: Node) -> None:
        """A metric of classes gives a bound for this node and all above it."""
        if not self.from_cells:
            part = self.bounds[self.lattice.above(node)]
            np.maximum(part, _rounded(self.metric.bound(self.judge.classes(node))), out=part)

    def _tell(self) -> None:
        now = time.monotonic()
        if self.progress and now - self._told > 1:
            self._told = now
            left = int((self.state == _UNKNOWN).sum())
            self.progress(f"{self.checked} nodes checked, {left} of {self.lattice.nodes} undecided")


class _Descent:
    """The best-effort search of a larger lattice: steepest descents from the top, then steps aside.

    One descent takes the best feasible step down until there is none; then one descent for each column that lowers
    this column first; then, from the best node, one column is raised and the descent repeated, until that finds
    nothing better. Each step is deterministic; only the time limit may cut the plan short.
    """

    def __init__(
        self,
        judge: Judge,
        lattice: Lattice,
        metric: utility.Metric,
        top: int,
        deadline: float,
        progress: Progress | None,
    ) -> None:
        self.judge, self.lattice, self.metric = judge, lattice, metric
        self.top, self.deadline, self.progress = top, deadline, progress
        self.scores: dict[Node, float | None] = {}
        self.checked = 0
        self.measured = 0
        self.exact = False
        self._told = time.monotonic()

    @property
    def found(self) -> list[tuple[float, int]]:
        """The best releases met, with their numbers."""
        met = [(score, node) for node, score in self.scores.items() if score is not None]
        best = sorted(met)[: self.top]
        return [(score, self.lattice.number(node)) for score, node in best]

    def feasible(self) -> None:
        """Not known."""

    def minimal(self) -> None:
        """Not known."""

    def solve(self) -> None:
        """Follow the plan until it ends or time does."""
        top = tuple(levels[-1] for levels in self.lattice.columns)
        if self._score(top) is None:
            return
        ends = [self._descend(top)]
        for position in range(len(top)):
            ends.append(self._descend(self._lower(top, position)))
        best = min(ends, key=lambda node: (self._score(node), node))
        better = True
        while better and not self._late():
            better = False
            for position, levels in enumerate(self.lattice.columns):
                if best[position] == levels[-1]:
                    continue
                raised = (*best[:position], best[position] + 1, *best[position + 1 :])
                if self._score(raised) is None:
                    continue
                end = self._descend(raised, held=position)
                if (self._score(end), end) < (self._score(best), best):
                    best, better = end, True

    def _descend(self, node: Node, held: int = -1) -> Node:
        while not self._late():
            steps = [
                (*node[:position], level - 1, *node[position + 1 :])
                for position, level in enumerate(node)
                if level > self.lattice.columns[position][0] and position != held
            ]
            scored = [(score, step) for step in steps if (score := self._score(step)) is not None]
            if not scored:
                break
            best, step = min(scored)
            own = self._score(node)
            if self.judge.may_suppress and own is not None and best > own:
                break
            node = step
        return node

    def _lower(self, node: Node, position: int) -> Node:
        """The node with one column as low as it goes, one level at a time."""
        while node[position] > self.lattice.columns[position][0] and not self._late():
            step = (*node[:position], node[position] - 1, *node[position + 1 :])
            if self._score(step) is None:
                break
            node = step
        return node

    def _score(self, node: Node) -> float | None:
        if node not in self.scores:
            self.checked += 1
            verdict = self.judge.verdict(node)
            self.scores[node] = None if verdict is None else _rounded(self.metric.value(verdict.classes, verdict.kept))
            now = time.monotonic()
            if self.progress and now - self._told > 1:
                self._told = now
                self.progress(f"{self.checked} nodes checked of {self.lattice.nodes}, best effort")
        return self.scores[node]

    def _late(self) -> bool:
        return time.monotonic() > self.deadline


def check(table: Table, policy: Policy) -> None:
    """Refuse a question that no node can answer.

    Raises:
        SearchError: the table is empty, has no quasi-identifier, or fewer people than k; or a threshold is wrong.
    """
    if not table.columns:
        raise SearchError("there are no quasi-identifiers: declare at least one column with `role: quasi_identifier`")
    if not len(table.values):
        raise SearchError("the table is empty: there is nobody to protect and nothing to release")
    if policy.k < 1:
        raise SearchError(f"`k` must be at least 1. Got: {policy.k}")
    if table.people_total < policy.k:
        raise SearchError(
            f"`k` must not be above the number of people. Got: {policy.k}, and {table.people_total} people: "
            f"no level can satisfy it"
        )
    if not 0 <= policy.suppress_up_to <= 1:
        raise SearchError(f"`suppress_up_to` must be between 0 and 1. Got: {policy.suppress_up_to}")


def _check_options(table: Table, metric: str, weights: Mapping[str, float], top: int) -> None:
    if metric not in utility.METRICS:
        raise SearchError(f"`metric` must be one of {', '.join(utility.METRICS)}. Got: '{metric}'")
    if top < 1:
        raise SearchError(f"`top` must be at least 1. Got: {top}")
    for name, weight in weights.items():
        if name not in table.names:
            known = ", ".join(f"`{own}`" for own in table.names)
            raise SearchError(f"`weights` must name quasi-identifiers ({known}). Got: `{name}`")
        if not (math.isfinite(weight) and weight >= 0):
            raise SearchError(f"`weights` of `{name}` must be a number of at least 0. Got: {weight}")
    if not sum(weights.get(name, 1.0) for name in table.names) > 0:
        raise SearchError("`weights` must leave at least one column above 0")


def _nothing(judge: Judge, lattice: Lattice, exact: bool) -> str:
    """Why nothing was found, from the node with all columns at their highest level."""
    top = tuple(levels[-1] for levels in lattice.columns)
    classes = judge.classes(top)
    parts = [f"smallest class {int(classes.people.min())} people"]
    for name, figure in judge.figures(Verdict(classes, np.ones(len(classes.people), dtype=bool), 0)).items():
        parts.append(f"{name} {figure:.6g}")
    capped = "" if top == judge.table.top else " that `max_level` allows"
    claim = (
        f"none of the {lattice.nodes} nodes satisfies the policy" if exact else "no node that was tried satisfies it"
    )
    return (
        f"{claim}. With every column at its highest level{capped}: {', '.join(parts)}. "
        f"Raise `suppress_up_to` or `max_level`, or relax the threshold that this misses"
    )


def _label_counts(table: Table, lattice: Lattice) -> FloatArray:
    """The logarithm of the number of label combinations, for each node."""
    total = np.zeros(lattice.shape)
    for position, (column, levels) in enumerate(zip(table.columns, lattice.columns, strict=True)):
        shape = [1] * len(lattice.columns)
        shape[position] = len(levels)
        total = total + np.log([column.sizes[level] for level in levels]).reshape(shape)
    return total


def _rounded(value: float) -> float:
    return round(float(value), DIGITS)


def _counted_up(marked: BoolArray, *, reverse: bool = False) -> npt.NDArray[np.int32]:
    """For each node, the marked nodes that are nowhere above it; or with ``reverse`` nowhere below it.

    The same as a cumulative sum along every axis, and much faster where the axes are short.
    """
    count = marked.astype(np.int32)
    for axis in range(count.ndim):
        layers = np.moveaxis(np.flip(count, axis) if reverse else count, axis, 0)
        for position in range(1, len(layers)):
            layers[position] += layers[position - 1]
    return count


def _slice(dimensions: int, axis: int, part: slice) -> tuple[slice, ...]:
    return tuple(part if own == axis else slice(None) for own in range(dimensions))
