"""`USING nexmark`: the persons, auctions and bids of the Nexmark benchmark."""
