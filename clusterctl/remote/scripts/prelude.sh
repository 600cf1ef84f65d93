# shellcheck shell=sh
# Read before every script, with linux.sh or macos.sh behind it: the frame of an answer, and what scripts share.
LC_ALL=C
export LC_ALL
umask 077

# An answer is a row of sections: a line `NAME STATUS BYTES`, then that many bytes and a newline.
section() { # NAME STATUS TEXT
    printf '%s %s %s\n%s\n' "$1" "$2" "${#3}" "$3"
}

# Each holds a directory for every cluster.
# shellcheck disable=SC2034 # scripts read them
STATE_HOME=$HOME/.local/state/clusterctl CACHE_HOME=$HOME/.cache/clusterctl

kib_of() { # DIRECTORY: 0 where there is none
    kib=
    [ ! -d "$1" ] || kib=$(du -sk "$1/" 2>/dev/null | cut -f1)
    echo "${kib:-0}"
}

disk_of() { # PATH, which need not be there yet
    place=$1
    while [ ! -d "$place" ]; do place=${place%/*}; done
    df -Pk "$place/"
}

in_home() { # PATH
    case $1 in
    [~]/*) printf '%s/%s' "$HOME" "${1#??}" ;;
    *) printf '%s' "$1" ;;
    esac
}

# The values of variables are exported: as arguments of `env` they would show in process lists.
is_assignment() { # WORD
    case $1 in /*) false ;; *=*) ;; *) false ;; esac
}

export_all() { # VARIABLE=VALUE...
    for each; do export "${each?}"; done
}

# Becomes the program, and so never returns.
become_bounded() { # SECONDS VARIABLE=VALUE... PROGRAM ARGUMENT...
    limiter=$(command -v timeout) && limiter="$limiter $1" # by its path, for the variables may name another PATH
    shift
    while is_assignment "$1"; do
        export "${1?}"
        shift
    done
    # shellcheck disable=SC2086 # two words, or none where there is no `timeout`
    exec $limiter "$@"
}

bounded() { # SECONDS VARIABLE=VALUE... PROGRAM ARGUMENT...
    (become_bounded "$@")
}

first_line() { # FILE: empty if there is none
    line=
    read -r line 2>/dev/null <"$1"
    echo "$line"
}

machine=$(uname -snm)

# absent | starting | running | unsure | ended. A process is ours only if boot, start time and arguments are those
# of its record. Whatever else has its number now is somebody else's; but where only the arguments differ, or can't
# be told, it may have changed them itself. Nor can it be told whose a group is once its leader is gone.
process_state() { # DIRECTORY
    [ -d "$1" ] || { echo absent; return; }
    [ -f "$1/process" ] || { echo starting; return; }
    { read -r pid && read -r start && read -r boot; } <"$1/process"
    if [ "$boot" != "$(boot_id)" ]; then
        echo ended
    elif ! process_lives "$pid"; then
        if [ "$pid" -gt 1 ] 2>/dev/null && group_lives "$pid"; then echo unsure; else echo ended; fi
    elif [ "$start" != "$(process_start "$pid")" ]; then
        echo ended
    elif [ -s "$1/argv" ] && same_arguments "$pid" "$1/argv"; then
        echo running
    else
        echo unsure
    fi
}

# A program leads a group of its own, so that what a wrapper script has started is reached too.
signal_group() { # SIGNAL PID
    kill "-$1" "-$2" 2>/dev/null || kill "-$1" "$2" 2>/dev/null
}

# Puts where a link leads in the end into `real`: a program's libraries lie there.
find_real_path() { # FILE
    real=$1
    [ ! -L "$1" ] || real=$(readlink -f "$1") || real=$1
}

# Changes when any program or library of the program's does: a thin program keeps its code in libraries, beside it
# or in a `lib` beside its directory. What a script runs may change without it: its own begins with `script-`.
fingerprint() { # PROGRAM
    find_real_path "$1"
    set -- "$real"
    beside=${1%/*} kind='' start=''
    read -r start 2>/dev/null <"$1"
    case $start in '#!'*) kind=script- ;; esac
    for place in "$beside" "$beside"/../lib "$beside"/../lib64 "$beside"/../lib/*-linux-gnu; do
        for file in "$place"/lib*ggml* "$place"/lib*llama* "$place"/lib*mtmd*; do
            [ -f "$file" ] && set -- "$@" "$file"
        done
    done
    # A file's first page holds its build id, which tells builds apart whose sizes and times agree.
    # shellcheck disable=SC2046 # the two numbers of cksum are wanted
    set -- $({ file_stamp "$@" && head -c 4096 "$@"; } 2>/dev/null | cksum)
    echo "$kind$1-$2"
}

system() {
    echo "$machine"
    id -un
    boot_id
    date +%s
    printf '%s\n' "$HOME" "$PATH"
}

# changed | same: whether the program's files are still those it was started from. What a script runs, only the
# process itself can tell.
program_changed() { # DIRECTORY
    case $(program_of "$(first_line "$1/process")" 2>/dev/null) in
    *' (deleted)') echo changed ;;
    *) [ "$(fingerprint "$(first_line "$1/argv")")" = "$(first_line "$1/fingerprint")" ] && echo same || echo changed ;;
    esac
}

# One section per record of this cluster on this node.
records() { # STATE_DIRECTORY
    for directory in "$1"/nodes/*/; do
        directory=${directory%/}
        [ -d "$directory" ] || continue
        section "record:${directory##*/}" 0 "$(
            process_state "$directory"
            first_line "$directory/process"
            first_line "$directory/exit"
            program_changed "$directory"
            cat "$directory/record.json" 2>/dev/null
        )"
    done
}

# Who belongs to the cluster, and who works on it just now: both are kept on its head.
cluster() { # STATE_DIRECTORY
    [ ! -f "$1/cluster.json" ] || section cluster 0 "$(cat "$1/cluster.json")"
    [ ! -d "$1/lock" ] || section lock 0 "$(cat "$1/lock/owner.json" 2>/dev/null)"
}
