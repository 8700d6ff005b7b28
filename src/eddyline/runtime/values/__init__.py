"""Values from outside as columns of the declared types: one module for each kind of value.

A value means what its source holds, cast to the declared type, exactly; a value that the type cannot hold is refused,
and with it its own row only. `text.py` reads text, `arrow.py` columns of Arrow, `json.py` the values of JSON, and
`python.py` objects of Python. Readers bring values of one of these kinds and convert nothing themselves.
"""
