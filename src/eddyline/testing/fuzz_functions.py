"""The user functions of random queries, registered by an import: a job names modules, and its tasks import them."""

from eddyline.testing.udfs import register

register()
