"""Constants: numbers get DuckDB's types (the first of INTEGER, BIGINT, DECIMAL, DOUBLE that fits), intervals too."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from eddyline.bound.bind_names import NameScope
from eddyline.bound.expr import Literal
from eddyline.cql.places import shown
from eddyline.cql.units import LONGEST, MONTHS, amount, parts_of, unit_of

_MOST_DIGITS = 38
_MONTHS_TYPE = pa.month_day_nano_interval()
_DAY = 86_400_000_000
_FORM = "write it as in INTERVAL '5' MINUTE"


def number(scope: NameScope, node: exp.Expr) -> Literal:
    """A number as it is written."""
    written = node.name.replace("_", "")
    if not re.fullmatch(r"(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", written, re.IGNORECASE) or len(written) > 400:
        raise scope.wrong(node, f"{shown(node.name)} is no number; write it as in 1000, 0.5 or 1e6")
    whole, _, fraction = written.partition(".")
    if whole == written and written.isdecimal():
        if len(written.lstrip("0")) > _MOST_DIGITS:
            raise scope.wrong(node, f"{shown(node.name)} has more than {_MOST_DIGITS} digits; write it as in 1e40")
        return _integer(int(written))
    digits = len(whole) + len(fraction)
    if "e" not in written.lower() and digits <= _MOST_DIGITS:
        return Literal(Decimal(written), pa.decimal128(digits, len(fraction)))
    value = float(written)
    if not math.isfinite(value):
        raise scope.wrong(node, f"{shown(node.name)} is too large for any type; the largest DOUBLE is about 1.8e308")
    return Literal(value, pa.float64())


def _integer(value: int) -> Literal:
    if -(2**31) <= value < 2**31:
        return Literal(value, pa.int32())
    if -(2**63) <= value < 2**63:
        return Literal(value, pa.int64())
    return Literal(Decimal(value), pa.decimal128(_MOST_DIGITS, 0))


def negated(literal: Literal) -> Literal | None:
    """The negated constant; None if it is not a number."""
    value = literal.value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    whole = pa.types.is_integer(literal.type) or literal.type == pa.decimal128(_MOST_DIGITS, 0)
    return _integer(-int(value)) if whole else Literal(-value, literal.type)


def interval(scope: NameScope, node: exp.Expr) -> Literal:
    """A length of time. One in months or years is a constant of another type, because it has no length in
    microseconds."""
    months = micros = 0
    for written, unit in _parts(scope, node):
        value = amount(written, unit) if "." not in written else None
        if value is None:
            raise scope.wrong(
                node, "an INTERVAL takes whole numbers; write INTERVAL '90' MINUTE for one hour and a half"
            )
        if unit in MONTHS:
            months += value
        else:
            micros += value
    if abs(micros) > LONGEST or abs(months) > 12 * 10_000:
        raise scope.wrong(node, f"this interval is longer than 10000 years; {_FORM}")
    if not months:
        return Literal(micros, pa.duration("us"))
    days = int(micros / _DAY)
    return Literal(pa.MonthDayNano([months, days, (micros - days * _DAY) * 1000]), _MONTHS_TYPE)


def _parts(scope: NameScope, node: exp.Expr) -> list[tuple[str, str]]:
    value, sign = node.this, ""
    while isinstance(value, exp.Neg | exp.Paren):
        sign = sign if isinstance(value, exp.Paren) else "" if sign else "-"
        value = value.this
    if not isinstance(value, exp.Literal):
        raise scope.wrong(node, f"an INTERVAL takes a constant; {_FORM}")
    unit = node.args.get("unit")
    if unit is None:
        parts = parts_of(value.name)
        if parts is None or sign:
            raise scope.wrong(node, f"{shown(value.name)} is no length of time; {_FORM}")
        return parts
    named = unit_of(unit.name) if isinstance(unit, exp.Var) else None
    if named is None:
        raise scope.wrong(node, f"this INTERVAL has no unit of time that is known here; {_FORM}")
    if not re.fullmatch(r"[-+]?\d+(\.\d*)?", value.name.strip()):
        raise scope.wrong(node, f"{shown(value.name)} is no number of {named}S; {_FORM}")
    signed = value.name.strip()
    return [(signed[1:] if sign and signed.startswith("-") else sign + signed.removeprefix("+"), named)]
