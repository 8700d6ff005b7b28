"""The optimiser: pure algorithms that look for plan shapes within a CPU and a memory limit.

A `Workload` says what was measured, `Costs` what things cost on this machine; a `Model` of both prices any tree. The
algorithms of dissertation 002 are a file each: mjoin_ordering, state_selection, min_state, state_removal, exhaustive;
strategies.py combines them, dominating.py keeps what no other plan beats in both resources. Nothing here touches the
running engine: a plan is proposed, and others decide.
"""
