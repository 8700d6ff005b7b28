"""The dashboard: a page in the browser that shows a run while it goes on, or afterwards from its record.

It knows a run only as a feed of events (`runtime/recording`), so live and recorded runs are the same to it.
"""
