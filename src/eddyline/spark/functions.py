"""How user functions get to Spark's workers.

A function of a module is sent as the module's name, a function of a file (`--udf file.py`) as the file's text
(runtime/running/modules.py). The other functions exist only in the running program, in `__main__` or inside another
function: they are sent by value with the task, like PySpark's own functions.
"""

from __future__ import annotations

import base64
import importlib.util
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

from eddyline.bound.udf import Udf, called, udf
from eddyline.errors import SettingError
from eddyline.protocol.home import Home
from eddyline.runtime.running.spec import Spec, home_of


def module_of(function: Udf) -> str | None:
    """The module from which a function can be imported; None if there is none."""
    module, name = function.function.__module__, function.function.__qualname__
    if module == "__main__" or "<" in name:
        return None
    try:
        return module if importlib.util.find_spec(module) is not None else None
    except (ImportError, ValueError):
        return None


def carried(text: str) -> tuple[list[str], str]:
    """For the user functions of a script: the modules to import, and the functions to send by value, as text."""
    functions = {function: module_of(function) for function in called(text)}
    by_name = sorted({module for module in functions.values() if module is not None})
    return by_name, by_value([function for function, module in functions.items() if module is None])


def by_value(functions: list[Udf]) -> str:
    """Functions serialised as text, to send with a task; empty if there are none."""
    parts: list[tuple[str, pa.DataType, str, Callable[..., Any]]] = []
    for one in functions:
        try:
            cloudpickle.dumps(one.function)  # type: ignore[no-untyped-call]
        except Exception as error:
            raise SettingError(
                f"the user function {one.name} cannot be sent to Spark's workers ({error}); put it into a module"
            ) from None
        parts.append((one.name, one.returns, one.arrays, one.function))
    if not parts:
        return ""
    return base64.b64encode(cloudpickle.dumps(parts)).decode()  # type: ignore[no-untyped-call]


def travelling(spec: str, functions: str) -> str:
    """The text for a task: the spec in one line, and the functions."""
    return f"{spec}\n{functions}"


@lru_cache(maxsize=4)
def home_in_task(text: str) -> tuple[Spec, Home]:
    """The job of a task; registers its user functions."""
    spec, _, functions = text.partition("\n")
    if functions:
        for name, returns, arrays, function in cloudpickle.loads(base64.b64decode(functions)):
            udf(returns=returns, name=name, arrays=arrays)(function)
    return home_of(spec)
