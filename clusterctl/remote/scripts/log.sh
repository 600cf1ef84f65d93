# shellcheck shell=sh
# The log of one program: first a line with the bytes written to it so far, then the text up to there.
# CLUSTER NODE OFFSET LINES: from byte OFFSET on if it is not negative, else the last LINES lines.
# What `start` has cut off stands in log.old; log.start says how many bytes were written before those in log.
directory=$STATE_HOME/$1/nodes/$2
offset=$3
[ -f "$directory/log" ] || exit 3

start=$(cat "$directory/log.start" 2>/dev/null)
start=${start:-0}
size=$(($(wc -c <"$directory/log"))) # without the blanks that some wc print
written=$((start + size))
echo "$written"

whole() {
    cat "$directory/log.old" 2>/dev/null
    head -c "$size" "$directory/log"
}

if [ "$offset" -lt 0 ]; then
    whole | tail -n "$4"
elif [ "$offset" -ge "$start" ] && [ "$offset" -le "$written" ]; then
    tail -c "+$((offset - start + 1))" "$directory/log" | head -c "$((written - offset))"
else
    # A log that is shorter than it was is another program's, and all of it is new.
    kept=$(wc -c <"$directory/log.old" 2>/dev/null)
    skipped=$((offset - start + ${kept:-0}))
    [ "$offset" -lt "$start" ] && [ "$skipped" -gt 0 ] || skipped=0
    whole | tail -c "+$((skipped + 1))"
fi
