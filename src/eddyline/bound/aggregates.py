"""The aggregates of SEMANTICS, each as a mergeable partial state.

For every accumulator, `partial` of all rows equals `merge` of the `partial`s of any split of the rows (for floats:
nearly). Panes depend on this. A state is a few Arrow columns with one row per cell; nothing is ever subtracted. `ids`
has for each row (or each cell that is merged) the number of its cell; every number below `count` occurs at least once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound import collected, exact_sum
from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.expr import Aggregate
from eddyline.bound.group_ids import Ids, group_ids, plain, plain_type, representatives, values_of
from eddyline.errors import InternalError

State = Mapping[str, pa.Array]
Floats = NDArray[np.float64]


class Merging(Protocol):
    """How states of cells are merged."""

    def merge(self, state: State, ids: Ids, count: int) -> State:
        """The states of `count` cells, each merged from the cells that have its number in `ids`."""


class Accumulator(Merging, Protocol):
    """How one aggregate is computed."""

    def partial(self, values: pa.Array | None, ids: Ids, count: int) -> State:
        """The states of `count` cells; `values` is the decoded argument of each row, None for COUNT(*)."""

    def repeated(self, state: State, times: Ids) -> State:
        """The states as if every row of cell i had come times[i] times, at least once."""

    def final(self, state: State, errors: ErrorCount) -> pa.Array:
        """The aggregate's value for each cell; a value that cannot be represented is NULL and counted in `errors`."""


@dataclass(frozen=True)
class Count:
    """COUNT(*) and COUNT(x)."""

    def partial(self, values: pa.Array | None, ids: Ids, count: int) -> State:
        return {"n": _counts(ids if values is None else _present(values, ids)[1], count)}

    def merge(self, state: State, ids: Ids, count: int) -> State:
        return {"n": _added(state["n"], ids, count)}

    def repeated(self, state: State, times: Ids) -> State:
        return {"n": _multiplied(state["n"], times)}

    def final(self, state: State, errors: ErrorCount) -> pa.Array:
        return state["n"]


@dataclass(frozen=True)
class CountDistinct:
    """COUNT(DISTINCT x): the state is the list of a cell's distinct values; merging is dedupe."""

    def partial(self, values: pa.Array | None, ids: Ids, count: int) -> State:
        present, ids = _present(values, ids)
        return self._lists(plain(present), ids, count)

    def merge(self, state: State, ids: Ids, count: int) -> State:
        lists = state["values"]
        return self._lists(lists.flatten(), ids[lists.value_parent_indices().to_numpy()], count)

    def repeated(self, state: State, times: Ids) -> State:
        return state

    def final(self, state: State, errors: ErrorCount) -> pa.Array:
        return state["values"].value_lengths()

    @staticmethod
    def _lists(values: pa.Array, ids: Ids, count: int) -> State:
        pairs = representatives(*group_ids([ids, values], len(ids)))
        pairs = pairs[np.argsort(ids[pairs], kind="stable")]
        ends = np.cumsum(np.bincount(ids[pairs], minlength=count))
        offsets = pa.array(np.concatenate([[0], ends]).astype(np.int64))
        return {"values": pa.LargeListArray.from_arrays(offsets, values.take(pa.array(pairs)))}


@dataclass(frozen=True)
class SumExact:
    """SUM of integers, booleans and decimals: DECIMAL(38, scale), NULL when 38 digits are not enough."""

    type: pa.DataType

    def partial(self, values: pa.Array | None, ids: Ids, count: int) -> State:
        present, ids = _present(values, ids)
        limbs = exact_sum.limbs_of(present)
        return {"n": _counts(ids, count), **_named(exact_sum.add_up(limbs, ids, count))}

    def merge(self, state: State, ids: Ids, count: int) -> State:
        return {"n": _added(state["n"], ids, count), **_named(exact_sum.add_up(_limbs(state), ids, count))}

    def repeated(self, state: State, times: Ids) -> State:
        return {"n": _multiplied(state["n"], times), **_named(exact_sum.times(_limbs(state), times))}

    def final(self, state: State, errors: ErrorCount) -> pa.Array:
        result, overflows = exact_sum.to_decimal(_limbs(state), self.type, _ints(state["n"]) == 0)
        errors.count += overflows
        return result


@dataclass(frozen=True)
class AvgExact:
    """AVG of integers and decimals, from the exact sum: the same in whatever order the rows came."""

    sum: SumExact
    scale: int

    def partial(self, values: pa.Array | None, ids: Ids, count: int) -> State:
        return self.sum.partial(values, ids, count)

    def merge(self, state: State, ids: Ids, count: int) -> State:
        return self.sum.merge(state, ids, count)

    def repeated(self, state: State, times: Ids) -> State:
        return self.sum.repeated(state, times)

    def final(self, state: State, errors: ErrorCount) -> pa.Array:
        n = _ints(state["n"])
        return pa.array(exact_sum.to_float(_limbs(state)) / 10.0**self.scale / np.maximum(n, 1), mask=n == 0)


@dataclass(frozen=True)
class SumFloat:
    """SUM and AVG of floats, in float64."""

    average: bool

    def partial(self, values: pa.Array | None, ids: Ids, count: int) -> State:
        present, ids = _present(values, ids)
        return {"n": _counts(ids, count), "sum": pa.array(_summed(_floats(present), ids, count))}

    def merge(self, state: State, ids: Ids, count: int) -> State:
        return {"n": _added(state["n"], ids, count), "sum": pa.array(_summed(_floats(state["sum"]), ids, count))}

    def repeated(self, state: State, times: Ids) -> State:
        return {"n": _multiplied(state["n"], times), "sum": pa.array(_floats(state["sum"]) * times)}

    def final(self, state: State, errors: ErrorCount) -> pa.Array:
        n, total = _ints(state["n"]), _floats(state["sum"])
        return pa.array(total / np.maximum(n, 1) if self.average else total, mask=n == 0)


@dataclass(frozen=True)
class Variance:
    """VAR_SAMP and STDDEV_SAMP: count, mean and the sum of squared differences from it, merged as Chan et al. do."""

    root: bool

    def partial(self, values: pa.Array | None, ids: Ids, count: int) -> State:
        present, ids = _present(values, ids)
        return self._moments(np.ones(len(ids)), _floats(present), np.zeros(len(ids)), ids, count)

    def merge(self, state: State, ids: Ids, count: int) -> State:
        return self._moments(_floats(state["n"]), _floats(state["mean"]), _floats(state["m2"]), ids, count)

    def repeated(self, state: State, times: Ids) -> State:
        spread = pa.array(_floats(state["m2"]) * times)
        return {"n": _multiplied(state["n"], times), "mean": state["mean"], "m2": spread}

    def final(self, state: State, errors: ErrorCount) -> pa.Array:
        n = _ints(state["n"])
        variance = _floats(state["m2"]) / np.maximum(n - 1, 1)
        return pa.array(np.sqrt(variance) if self.root else variance, mask=n < 2)

    @staticmethod
    def _moments(n: Floats, mean: Floats, m2: Floats, ids: Ids, count: int) -> State:
        """The moments for each id. The mean is taken relative to one of the values: equal ones differ by exactly 0."""
        total = _summed(n, ids, count)
        pivot = np.zeros(count)
        used = n > 0
        pivot[ids[used]] = mean[used]
        with np.errstate(invalid="ignore", over="ignore"):
            centre = pivot + _summed(n * (mean - pivot[ids]), ids, count) / np.maximum(total, 1)
            spread = _summed(m2 + n * (mean - centre[ids]) ** 2, ids, count)
        return {"n": pa.array(total.astype(np.int64)), "mean": pa.array(centre), "m2": pa.array(spread)}


@dataclass(frozen=True)
class Extreme:
    """MIN and MAX of anything that has an order; NULL stands for no value yet."""

    largest: bool
    type: pa.DataType

    def partial(self, values: pa.Array | None, ids: Ids, count: int) -> State:
        if values is None:
            raise InternalError("MIN and MAX need an argument")
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            return {"value": self._number(*_present(values, ids), count)}
        if pa.types.is_temporal(values.type):
            numbers = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
            return {"value": self._number(*_present(numbers, ids), count).view(values.type)}
        return {"value": self._ordered(values, ids, count)}

    def merge(self, state: State, ids: Ids, count: int) -> State:
        return self.partial(state["value"], ids, count)

    def repeated(self, state: State, times: Ids) -> State:
        return state

    def final(self, state: State, errors: ErrorCount) -> pa.Array:
        return state["value"].cast(self.type)

    def _number(self, values: pa.Array, ids: Ids, count: int) -> pa.Array:
        """NaN is the greatest: MAX gives it if there is one, MIN only if there is nothing else."""
        numbers = values.to_numpy()
        if pa.types.is_floating(values.type):
            worst = -np.inf if self.largest else np.nan
        else:
            limits = np.iinfo(numbers.dtype)
            worst = limits.min if self.largest else limits.max
        best = np.full(count, worst, numbers.dtype)
        with np.errstate(invalid="ignore"):  # NumPy warns of NaN, which is intended here
            (np.maximum if self.largest else np.fmin).at(best, ids, numbers)
        return pa.array(best, mask=np.bincount(ids, minlength=count) == 0)

    def _ordered(self, values: pa.Array, ids: Ids, count: int) -> pa.Array:
        function = "max" if self.largest else "min"
        rows = pa.table({"id": ids, "value": values})
        table = rows.group_by("id", use_threads=False).aggregate([("value", function)])
        best = table.take(pa.array(representatives(table["id"].to_numpy(), count))).column(f"value_{function}")
        return pa.concat_arrays(best.chunks) if best.num_chunks else pa.array([], values.type)


def _sum(aggregate: Aggregate) -> Accumulator:
    argument = _argument(aggregate)
    return SumFloat(average=False) if pa.types.is_floating(argument) else SumExact(aggregate.type)


def _avg(aggregate: Aggregate) -> Accumulator:
    argument = _argument(aggregate)
    if pa.types.is_floating(argument):
        return SumFloat(average=True)
    scale = argument.scale if pa.types.is_decimal(argument) else 0
    return AvgExact(SumExact(pa.decimal128(38, scale)), scale)


_TABLE: dict[tuple[str, bool], Callable[[Aggregate], Accumulator]] = {
    ("count", False): lambda _: Count(),
    ("count", True): lambda _: CountDistinct(),
    ("sum", False): _sum,
    ("avg", False): _avg,
    ("var_samp", False): lambda _: Variance(root=False),
    ("stddev_samp", False): lambda _: Variance(root=True),
    ("min", False): lambda aggregate: Extreme(False, aggregate.type),
    ("min", True): lambda aggregate: Extreme(False, aggregate.type),
    ("max", False): lambda aggregate: Extreme(True, aggregate.type),
    ("max", True): lambda aggregate: Extreme(True, aggregate.type),
    **{(name, False): collected.collected for name in collected.NAMES},
}


def accumulator(aggregate: Aggregate) -> Accumulator:
    """How to compute this aggregate."""
    make = _TABLE.get((aggregate.name.lower(), aggregate.distinct))
    if make is None:
        raise InternalError(f"no aggregate {aggregate.name}{' DISTINCT' if aggregate.distinct else ''}")
    return make(aggregate)


def weighed(how: Accumulator, values: pa.Array | None, weights: Ids | None, ids: Ids, count: int) -> State:
    """As `partial`, for rows with weights: a row counts as often as its weight says, once if `weights` is None."""
    if weights is None or isinstance(how, CountDistinct | Extreme):
        return how.partial(values, ids, count)
    each = np.arange(len(ids))
    return how.merge(how.repeated(how.partial(values, each, len(each)), weights), ids, count)


def state_types(aggregate: Aggregate) -> dict[str, pa.DataType]:
    """The types of the columns of its states."""
    values = None if aggregate.arg is None else pa.nulls(1, plain_type(aggregate.arg.type))
    state = accumulator(aggregate).partial(values, np.zeros(1, np.int64), 1)
    return {name: column.type for name, column in state.items()}


def _argument(aggregate: Aggregate) -> pa.DataType:
    if aggregate.arg is None:
        raise InternalError(f"{aggregate.name} needs an argument")
    return plain_type(aggregate.arg.type)


def _present(values: pa.Array | None, ids: Ids) -> tuple[pa.Array, Ids]:
    """The values that are not NULL, and their ids."""
    if values is None:
        raise InternalError("an aggregate needs its argument")
    if not values.null_count:
        return values, ids
    keep = values.is_valid()
    return values.filter(keep), ids[keep.to_numpy(zero_copy_only=False)]


def _counts(ids: Ids, count: int) -> pa.Array:
    return pa.array(np.bincount(ids, minlength=count))


def _added(numbers: pa.Array, ids: Ids, count: int) -> pa.Array:
    total = np.zeros(count, np.int64)
    np.add.at(total, ids, _ints(numbers))
    return pa.array(total)


def _multiplied(numbers: pa.Array, times: Ids) -> pa.Array:
    return pa.array(_ints(numbers) * times)


def _summed(numbers: Floats, ids: Ids, count: int) -> Floats:
    return np.bincount(ids, numbers, count).astype(np.float64, copy=False)  # without rows, bincount gives integers


def _ints(array: pa.Array) -> Ids:
    numbers: Ids = array.to_numpy()
    return numbers


def _floats(array: pa.Array) -> Floats:
    if pa.types.is_decimal(array.type):
        array = pc.cast(array, pa.float64())
    return values_of(array).astype(np.float64)


def _limbs(state: State) -> exact_sum.Limbs:
    return [_ints(state[f"limb{k}"]) for k in range(exact_sum.WIDTH)]


def _named(limbs: exact_sum.Limbs) -> dict[str, pa.Array]:
    return {f"limb{k}": pa.array(limb) for k, limb in enumerate(limbs)}
