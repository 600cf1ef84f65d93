"""What developers run beside the product: artifacts, packages, the demo."""
