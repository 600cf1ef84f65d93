"""Which layer goes where: memory, the split, the estimate. Pure."""
