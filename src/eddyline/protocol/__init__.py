"""The batch protocol: a decision, parcels for slots, a turn of every slot, one commit. No file here imports Spark."""
