"""The record of a run: what was measured, what was decided and what came of it, as events (docs/recording.md)."""
