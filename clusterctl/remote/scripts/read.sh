# shellcheck shell=sh
# Print BYTES bytes of a file from OFFSET on.
# FILE OFFSET BYTES
file=$(in_home "$1")
if [ -d "$file" ]; then
    printf '%s is a directory\n' "$file" >&2
    exit 1
fi
if [ ! -f "$file" ] || [ ! -r "$file" ]; then
    printf 'no such file, or not readable: %s\n' "$file" >&2
    exit 1
fi
tail -c "+$(($2 + 1))" "$file" | head -c "$3"
