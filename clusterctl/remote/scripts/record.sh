# shellcheck shell=sh
# Write down, or remove, which nodes belong to a cluster.
# CLUSTER TEXT: an empty TEXT removes the record.
state=$STATE_HOME/$1
if [ -n "$2" ]; then
    new=$state/cluster.json.new
    mkdir -p "$state" && printf '%s' "$2" >"$new" && mv "$new" "$state/cluster.json" && exit
    rm -f "$new"
    exit 1
else
    rm -f "$state/cluster.json" || exit
    rmdir "$state" 2>/dev/null
    true
fi
