# shellcheck shell=sh
# The cluster's lock on its head: a directory, so that making it is atomic; a lease, so that nobody blocks for ever.
# ACTION CLUSTER TOKEN LEASE_S OWNER
# Prints the age of the lock in seconds and its owner where it is another's; exits 0 only if ACTION was done.
action=$1
state=$STATE_HOME/$2
token=$3
lease=$4
owner=$5
lock=$state/lock

written_at() { # PATH...: of the first that is there
    for place; do
        [ ! -e "$place" ] || { file_stamp "$place" 2>/dev/null | cut -d' ' -f2 && return; }
    done
}

# Told by the clock that stamps files: where the home directory is a file server's, that is not the node's own.
now() {
    probe=$state/now.$token
    stamp=$(touch "$probe" && written_at "$probe")
    rm -f "$probe"
    rmdir "$state" 2>/dev/null # its holder may have given the lock back meanwhile
    echo "${stamp:-$(date +%s)}"
}

age() { # seconds since the holder last said that it lives; before it first does so, since the lock was made
    beat=$(written_at "$lock/beat" "$lock")
    [ -n "$beat" ] || { echo "$lease"; return; }
    passed=$(($(now) - beat))
    # The clock was set back: count anew from now, or a dead holder would block for as long.
    [ "$passed" -ge 0 ] || { touch "$lock/beat" && passed=0; }
    echo "$passed"
}

take() {
    mkdir -p "$state" && mkdir "$lock" || return 1
    printf '%s' "$token" >"$lock/token" && printf '%s' "$owner" >"$lock/owner.json" && touch "$lock/beat" && return
    drop
    return 1
}

mine() { [ "$(cat "$lock/token" 2>/dev/null)" = "$token" ]; }

show() {
    printf '%s\n' "$(age)"
    cat "$lock/owner.json" 2>/dev/null
}

drop() {
    mv "$lock" "$lock.$token" 2>/dev/null && rm -rf "$lock.$token"
}

# Of two who find a lock expired only one may replace it, and must look again: the other may have done so.
take_expired() {
    guard=$state/takeover
    begun=$(written_at "$guard")
    [ -z "$begun" ] || [ $(($(now) - begun)) -lt "$lease" ] || rmdir "$guard"
    mkdir "$guard" 2>/dev/null || return 1
    [ "$(age)" -lt "$lease" ] || { drop; take; }
    taken=$?
    rmdir "$guard"
    [ "$taken" -eq 0 ] && mine
}

case $action in
acquire)
    # Its own, which it could not give back because its connection broke.
    if mine && touch "$lock/beat"; then exit; fi
    # One that is given back or taken over just now is there at one moment and not at the next.
    for _ in 1 2 3 4 5; do
        take && exit
        [ ! -d "$lock" ] || break
    done
    [ -d "$lock" ] || exit 1 # it can't be made, and `mkdir` has said why
    if [ "$(age)" -ge "$lease" ] && take_expired; then exit; fi
    show
    exit 3
    ;;
beat)
    if mine && touch "$lock/beat"; then exit; fi
    [ ! -d "$lock" ] || show
    exit 3
    ;;
release)
    mine || exit 3
    drop
    rmdir "$state" 2>/dev/null
    true
    ;;
break)
    [ -d "$lock" ] || exit 3
    show
    drop || [ ! -d "$lock" ] || exit 1
    rmdir "$state" 2>/dev/null
    true
    ;;
esac
