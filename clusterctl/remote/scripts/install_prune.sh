# shellcheck shell=sh
# Remove every build but the current one, the one before it, and those that a process still runs from.
# ROOT
# Prints the names of what it removed.
root=$(cd "$(in_home "$1")" && pwd -P) || exit 1
current=$(readlink "$root/current")
previous=$(readlink "$root/previous")

for build in "$root"/*; do
    if [ -h "$build" ] || [ ! -d "$build" ]; then continue; fi
    case ${build##*/} in "$current" | "$previous") continue ;; esac
    runs_from "$build" || { rm -rf "$build" && echo "${build##*/}"; }
done
# What a machine that lost its power left of an upload.
find "$root" -maxdepth 1 -name '.new.*' -mtime +1 -exec rm -rf {} +
