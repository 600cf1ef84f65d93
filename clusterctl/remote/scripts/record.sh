# shellcheck shell=sh
# Write down, or remove, which nodes belong to a cluster.
# CLUSTER TEXT: an empty TEXT removes the record.
state=$(state_directory "$1")
if [ -n "$2" ]; then
    mkdir -p "$state" && printf '%s' "$2" >"$state/cluster.json.new" && mv "$state/cluster.json.new" "$state/cluster.json"
else
    rm -f "$state/cluster.json"
    rmdir "$state" 2>/dev/null
    true
fi
