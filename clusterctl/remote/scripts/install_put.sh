# shellcheck shell=sh
# Put a build beside the others: receive an archive on descriptor 3, unpack it once it is known to be whole and,
# given flags, compile the source in it. Descriptor 3 stays open while somebody waits: its end ends the work.
# ROOT NAME BYTES SHA256 PATH FLAG...
root=$(in_home "$1")
name=$2
bytes=$3
sha256=$4
PATH=$5
shift 5

mkdir -p "$root" || exit 1
work=$(mktemp -d "$root/.new.XXXXXX") || exit 1
program=
watcher=
unheard() { # from here on nothing is said, and no signal comes between
    trap '' HUP INT TERM
    exec >/dev/null 2>&1
}
leave() {
    unheard
    [ -z "$watcher" ] || kill "$watcher"
    rm -rf "$work"
}
stop() {
    unheard
    [ -z "$program" ] || { kill "$program" && wait "$program"; }
    exit 1
}
trap leave EXIT
trap stop HUP INT TERM
# Nobody may be left to hear what is said. What ended of that, as ninja would, could not end its compilers.
trap '' PIPE

attended() { # PROGRAM...
    "$@" 3<&- &
    program=$!
    wait "$program"
    status=$?
    program=
    return "$status"
}

compile() { # FLAG...
    { while read -r _; do :; done <&3 && kill "$$"; } >/dev/null 2>&1 &
    watcher=$!
    generator='Unix Makefiles'
    ! command -v ninja >/dev/null || generator=Ninja
    attended cmake -G "$generator" -S "$work/files" -B "$work/build" "$@" || return 1
    # The worker was called rpc-server before about b9824; a line of make's list begins with dots.
    # shellcheck disable=SC2046 # names of targets hold no blanks
    set -- $(cmake --build "$work/build" --target help | sed 's/^\.\.\. //; s/:.*//' |
        grep -xE 'llama-(server|bench)|(ggml-)?rpc-server' | sort -u)
    # Not through cmake: it would end on a signal without ending what it started.
    case $generator in
    Ninja) attended ninja -C "$work/build" "$@" ;;
    *) attended make -C "$work/build" -j "$(getconf _NPROCESSORS_ONLN)" "$@" ;;
    esac
}

head -c "$bytes" <&3 >"$work/archive" || exit 1
found=$(sha256_of "$work/archive")
if [ "$found" != "$sha256" ]; then
    echo "sha256 is $found, not $sha256"
    exit 4
fi
mkdir "$work/files" && tar -xzf "$work/archive" -C "$work/files" || exit 1
rm "$work/archive"

result=$work/files
if [ $# -gt 0 ]; then
    compile "$@" || exit 1
    result=$work/build/bin
fi
[ -d "$root/$name" ] || mv "$result" "$root/$name"
