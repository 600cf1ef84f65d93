"""Commands as values, and the transports that carry them to a node."""
