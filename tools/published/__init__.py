"""Published experiments: their machines and models as recorded facts, and what a plan says of them."""
