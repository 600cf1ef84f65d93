# The log of one program: first a line with its size in bytes, then the text.
# CLUSTER NODE OFFSET LINES: from OFFSET on if it is not negative, else the last LINES lines.
log=$(state_directory "$1")/nodes/$2/log
[ -f "$log" ] || exit 3
wc -c <"$log"
if [ "$3" -ge 0 ]; then
    tail -c "+$(($3 + 1))" "$log"
else
    tail -n "$4" "$log"
fi
