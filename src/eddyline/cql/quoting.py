"""Names of columns as a script writes them: in double quotes unless they are plain words."""

from __future__ import annotations

from eddyline.errors import ScriptError


def quoted(column: str) -> str:
    """A column as SQL names it.

    >>> quoted("km"), quoted("Ride No")
    ('km', '"Ride No"')
    """
    from sqlglot import exp  # worker processes import this file without the grammar

    from eddyline.cql.dialect import parse_expression
    from eddyline.cql.tokens import tokenize

    within = column.replace('"', '""')
    try:
        plain = parse_expression(column, tokenize(column))
    except (ScriptError, IndexError):  # not SQL, or empty
        return f'"{within}"'
    return column if isinstance(plain, exp.Column) and plain.name == column else f'"{within}"'
