"""Events and results as text: rich on a terminal, plain lines elsewhere."""
