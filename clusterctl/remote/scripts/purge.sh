# shellcheck shell=sh
# Remove what a cluster's workers have cached on this node, and print the KiB that it took.
# CLUSTER
directory=$CACHE_HOME/$1
kib_of "$directory"
[ -d "$directory" ] || exit 0
# The directory may be a link to a larger disk: what is in it goes, the link stays. Another worker of this machine
# may be at it too, so that a file is gone before its turn; what is still there after that can't be removed.
for _ in 1 2 3 4 5; do
    problem=$(find "$directory/" -mindepth 1 -delete 2>&1) && break
done
left=$(ls -A "$directory/" 2>&1)
[ ! -d "$directory" ] || [ -z "$left" ] || {
    echo "$problem" >&2
    exit 1
}
rmdir "$directory" "${directory%/*}" 2>/dev/null
true
