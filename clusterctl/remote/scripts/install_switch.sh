# shellcheck shell=sh
# Point `current` and `previous` at builds, each in one step; an empty name removes the link.
# ROOT CURRENT PREVIOUS
root=$(in_home "$1")

point() { # LINK NAME
    if [ -z "$2" ]; then
        rm -f "$root/$1"
        return
    fi
    [ -d "$root/$2" ] || {
        echo "$root/$2 is gone" >&2
        return 1
    }
    rm -f "$root/.$1"
    ln -s "$2" "$root/.$1" && replace_link "$root/.$1" "$root/$1"
}

point previous "$3" && point current "$2"
