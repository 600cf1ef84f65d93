# shellcheck shell=sh
# Remove what a cluster's workers have cached on this node, and print the KiB that it took.
# CLUSTER
directory=$(cache_directory "$1")
kib_of "$directory"
[ -d "$directory" ] || exit 0
# The directory may be a link to a larger disk: what is in it goes, the link stays.
find "$directory/" -mindepth 1 -delete || exit 1
rmdir "$directory" "${directory%/*}" 2>/dev/null
true
