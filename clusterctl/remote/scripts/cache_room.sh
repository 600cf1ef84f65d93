# shellcheck shell=sh
# CLUSTER: prints the KiB that its workers have cached on this node, and the KiB free beside them.
cache=$(cache_directory "$1")
kib_of "$cache" && kib_free_at "$cache"
