"""Partition groups that leave memory: which results their rows miss, and which groups leave."""
