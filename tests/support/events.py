"""Events of a record, made by hand."""

from __future__ import annotations

from typing import Any

RUN: dict[str, Any] = {
    "type": "run",
    "version": 1,
    "t": 0.0,
    "began": "2026-11-18T23:59:50+00:00",
    "eddyline": "0.1.0",
    "engine": "local",
    "query": "SELECT 1",
    "plan": "",
    "settings": {},
    "sources": [{"alias": alias, "name": alias, "kind": "stream", "window": ""} for alias in "abc"],
    "edges": [],
    "slots": 1,
    "groups": 256,
    "pid": 7,
}


def sample(t: float, tuples: int = 0, tree: str = "(a b c)", rows: int = 0) -> dict[str, Any]:
    """A sample in which one step took some tuples."""
    step = {"at": "a", "span": [0], "to": [0, 1], "step": "b by a.k = b.k", "chosen": True, "tuples": tuples,
            "produced": 2 * tuples, "us": 3.0 * tuples}  # fmt: skip
    route = {"source": "a", "steps": ["b by a.k = b.k", "c by b.k = c.k"], "spans": None, "share": 0.9, "rows": rows}
    return {
        "type": "sample", "t": float(t), "rows_in": 1000 * int(t), "rows_out": int(t), "rows_late": 0, "rows_dead": 0,
        "errors": 0, "state_rows": 10, "memory_bytes": 2_000_000, "memory_limit": None, "batches": int(t),
        "batch_seconds": 0.5, "watermark_us": None, "backlog_rows": None, "streams": {}, "routes": [route],
        "steps": [step], "packets": [], "tree": tree, "slots": [], "disk": {"groups": 0, "log_bytes": 0},
    }  # fmt: skip


def decision(t: float, id: int, kind: str, what: str, why: str = "", **more: Any) -> dict[str, Any]:
    """A decision; `more` are further fields."""
    event = {
        "type": "decision",
        "t": t,
        "id": id,
        "kind": kind,
        "at": 1000 * id,
        "slot": None,
        "what": what,
        "why": why,
    }
    return event | {"measured": {}, "expected": {}} | more


def outcome(t: float, of: int, paid: bool | None, what: str) -> dict[str, Any]:
    """What came of a decision."""
    return {"type": "outcome", "t": t, "of": of, "paid": paid, "what": what, "measured": {}}
