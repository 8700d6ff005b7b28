"""The optimizer: finds the plan that a slot should run within a CPU and a memory limit, and the way to change to it.

A `Workload` holds what was measured, and `StepCosts` what steps cost on this machine; a `CostModel` of both prices any
tree. Each algorithm of dissertation 002 has a file: mjoin_ordering, state_selection, min_state, state_removal,
exhaustive. strategies.py combines them, and dominating.py keeps the plans that no other plan beats in both resources.
move.py chooses how to change the plan, and migration_costs.py prices the change. No file here touches the running
engine: the optimizer proposes a plan, and its caller changes to it.
"""
