"""`USING generate`: made-up streams with rates, key domains, selectivities, disorder and scripted drift."""
