"""Tables that a Python function answers.

Option `function`: 'module:name'. The function takes a record batch of keys, and returns a record batch (or a table) of
all rows with these keys, which include the columns of the keys. An async function runs on the event loop and must not
block it; a plain function runs in a thread. An exception refuses the keys of this call.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from eddyline.errors import SettingError, said, shown
from eddyline.runtime.access.client import FoundRows, KeysRefused, TableRefused, TryFailed
from eddyline.runtime.access.client_options import ClientKind
from eddyline.runtime.access.fitting import fitted_batch
from eddyline.runtime.access.threads import ConnectedThreads
from eddyline.runtime.options import Options
from eddyline.runtime.running.modules import import_named

_BATCH = 1000


def kind_of(options: Options, schema: pa.Schema, concurrency: int) -> ClientKind:
    """A table of a Python function by its options."""
    written = options.required("function", "my_module:scores")
    module, _, name = written.partition(":")
    if not module or not name:
        raise SettingError(f"option function is 'module:name', not '{written}'", "option function")
    try:
        function = getattr(import_named(module), name, None)
    except SettingError as error:
        raise SettingError(f"option function: {error}", "option function") from None
    except Exception as error:
        raise SettingError(f"option function: {module} cannot be imported ({said(error)})", "option function") from None
    if not callable(function):
        raise SettingError(f"option function: {module} has no function {name}", "option function")
    return ClientKind(lambda: PythonClient(function, schema, concurrency), _BATCH, any_type=True)


class PythonClient:
    """Asks a function."""

    def __init__(self, function: Callable[[pa.RecordBatch], Any], schema: pa.Schema, threads: int) -> None:
        self._function, self._schema = function, schema
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004
        )
        self._threads = ConnectedThreads[None](threads, lambda: None, lambda _: None, lambda _: None)

    async def lookup(self, columns: Sequence[str], keys: pa.RecordBatch) -> FoundRows:
        """These columns of the rows that the function returns."""
        if self._is_async:
            with _refusing():
                found = await self._function(keys)
        else:
            found = await self._threads.run(lambda _: self._called(keys))
        if not isinstance(found, pa.RecordBatch | pa.Table):
            raise TableRefused(f"the function returned {shown(found)}, not a record batch")
        return fitted_batch(found, pa.schema([self._schema.field(name) for name in columns]))

    def _called(self, keys: pa.RecordBatch) -> Any:
        with _refusing():  # in the thread, because a future cannot have a StopIteration
            return self._function(keys)

    def scan(self, columns: Sequence[str]) -> AsyncGenerator[FoundRows, None]:
        """A function is asked for keys only."""
        raise TableRefused("a function is asked for keys only")

    async def close(self) -> None:
        """Ends the threads. A call that does not end keeps its thread."""
        await self._threads.close()


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Errors of the function refuse its keys. A function that exits must not end the event loop."""
    try:
        yield
    except (TryFailed, KeysRefused, TableRefused):
        raise
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        raise KeysRefused(f"the function raised {said(error)}") from None
