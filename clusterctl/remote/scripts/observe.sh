# shellcheck shell=sh
# What runs of a cluster on this node, read from processes and sockets only.
# CLUSTER WITH_ACTIVITY PORT...: WITH_ACTIVITY is `yes`, or anything else.
state=$STATE_HOME/$1
with_activity=$2
shift 2
section system 0 "$(system)"
sockets=$(sockets)
section sockets 0 "$sockets"
for port; do
    section "holders:$port" 0 "$(holders "$port" "$sockets")"
done
records "$state"
for directory in "$state"/nodes/*/; do
    directory=${directory%/}
    read -r pid 2>/dev/null <"$directory/process" || continue
    section "vitals:${directory##*/}" 0 "$(vitals "$pid")"
    [ "$with_activity" != yes ] || section "activity:${directory##*/}" 0 "$(activity "$pid")"
done
cluster "$state"
