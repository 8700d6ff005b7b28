"""The optimizer: finds the plan that a slot should run within a CPU and a memory limit, and the way to change to it.

A `Workload` says what was measured, `StepCosts` what steps cost on this machine; a `CostModel` of both prices a tree.
The algorithms of dissertation 002 are a file each: mjoin_ordering, state_selection, min_state, state_removal,
exhaustive; strategies.py combines them, dominating.py keeps what no other plan beats in both resources. move.py chooses
how to change the plan and migration_costs.py prices the change. Nothing here touches the running engine: a plan is
proposed, and others decide.
"""
