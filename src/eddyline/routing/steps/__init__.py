"""The steps that packets take: probe a SteM, pass a selection, be built into an intermediate SteM, stay in a window."""
