# shellcheck shell=sh
# CLUSTER: prints the KiB that its workers have cached on this node, and what `df` says of its disk.
cache=$CACHE_HOME/$1
kib_of "$cache" && disk_of "$cache"
