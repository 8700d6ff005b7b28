"""Importing this module registers the user functions of random queries: a job names modules, and its tasks import
them."""

from eddyline.testing.udfs import register

register()
