"""Putting one build of llama.cpp on every node: what each needs, fetching, sending, compiling, switching.

Imports model, errors, llama, config, remote, cluster and reports; only cli and ui know it. `needs` and `assets`
are pure.
"""
