# shellcheck shell=sh
# Run a program to its end, with variables before it, for at most 25 seconds.
# VARIABLE=VALUE... PROGRAM ARGUMENT...
bounded 25 "$@" 2>&1
