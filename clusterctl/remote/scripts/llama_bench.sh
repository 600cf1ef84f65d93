# shellcheck shell=sh
# Run llama-bench to its end.
# SECONDS VARIABLE=VALUE... PROGRAM ARGUMENT...
bounded "$@"
