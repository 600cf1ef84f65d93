# What runs of a cluster on this node, read from processes and sockets only.
# CLUSTER PORT...
state=$(state_directory "$1")
shift
section system 0 "$(system)"
section sockets 0 "$(sockets)"
for port; do
    section "holders:$port" 0 "$(holders "$port")"
done
records "$state"
[ ! -f "$state/cluster.json" ] || section cluster 0 "$(cat "$state/cluster.json")"
[ ! -d "$state/lock" ] || section lock 0 "$(cat "$state/lock/owner.json" 2>/dev/null)"
