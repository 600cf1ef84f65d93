"""YAML text to checked values: the inventory (where) and the recipe (what)."""
