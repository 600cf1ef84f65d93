# Start one program of a node, detached, and leave a record of it.
# CLUSTER NODE RECORD ENV_COUNT VARIABLE=VALUE... PROGRAM ARGUMENT...
# Prints the state, the process number and, if it has ended, the exit status.
directory=$(state_directory "$1")/nodes/$2
record=$3
count=$4
shift 4

state=$(process_state "$directory")
if [ "$state" = running ]; then
    echo "already running"
    exit 3
fi

mkdir -p "$directory" || exit 1
rm -f "$directory/process" "$directory/exit"
printf '%s' "$record" >"$directory/record.json" || exit 1

# The program replaces `env`, so its arguments are what follows the variables.
(
    shift "$count"
    printf '%s\n' "$@"
) >"$directory/argv" || exit 1
fingerprint "$(sed -n 1p "$directory/argv")" >"$directory/fingerprint"

# The supervisor outlives this script only to write down how the program ended.
supervise() {
    env "$@" &
    pid=$!
    printf '%s\n%s\n%s\n' "$pid" "$(process_start "$pid")" "$(boot_id)" >"$directory/process.new"
    mv "$directory/process.new" "$directory/process"
    wait "$pid"
    status=$?
    [ ! -d "$directory" ] || echo "$status" >"$directory/exit"
}
trap '' HUP
(
    # Redirected for good: a redirected function call would keep copies that hold the caller's channel open.
    exec </dev/null >"$directory/log" 2>&1
    supervise "$@"
) &

tries=100
state=starting
while [ "$state" != running ] && [ ! -f "$directory/exit" ] && [ "$tries" -gt 0 ]; do
    sleep 0.05
    state=$(process_state "$directory")
    tries=$((tries - 1))
done
printf '%s\n%s\n%s\n' "$state" "$(sed -n 1p "$directory/process")" "$(cat "$directory/exit" 2>/dev/null)"
