"""The notebook of the examples, executed by a real kernel: it prints what is saved with it, the table of a run follows
the run, and pictures are pictures. `EDDYLINE_GOLDEN=1` saves the outputs of this execution with it."""

from __future__ import annotations

import json
import os
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.pages import ROOT

_PATH = ROOT / "examples/notebook.ipynb"


@pytest.mark.long
def test_notebook() -> None:
    saved = nbformat.read(_PATH, as_version=4)
    executed = nbformat.read(_PATH, as_version=4)
    NotebookClient(executed, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
    if os.environ.get("EDDYLINE_GOLDEN") == "1":
        for cell in executed.cells:
            cell.metadata.pop("execution", None)
        _PATH.write_text(nbformat.writes(executed, indent=1) + "\n", encoding="utf-8")
        saved = executed
    assert _PATH.stat().st_size < 100_000
    outputs = {cell["id"]: cell["outputs"] for cell in executed.cells if cell["cell_type"] == "code"}
    assert [_stable(cell) for cell in executed.cells] == [_stable(cell) for cell in saved.cells]
    (query,) = outputs["query"]
    assert "<table>" in query["data"]["text/html"]
    (run,) = outputs["drift"]
    shown = run["data"]["text/html"]
    assert "<td>done</td>" in shown and "<td>1,200,000</td>" in shown  # it was shown again until the end
    assert all(f"<th>route of {alias}</th>" in shown for alias in "ops")
    (picture,) = outputs["plot"]
    assert picture["data"]["image/png"].startswith("iVBOR")


def _stable(cell: Any) -> Any:
    """A cell with those of its outputs that are the same whenever it is executed."""
    if cell["cell_type"] != "code":
        return cell["source"]
    texts = [o["text"] for o in cell["outputs"] if o["output_type"] == "stream"]
    tables = [o["data"]["text/plain"] for o in cell["outputs"] if cell["id"] == "delivered"]
    kinds = [sorted(o.get("data", {})) for o in cell["outputs"]]
    return json.dumps([cell["source"], texts, tables, kinds])
