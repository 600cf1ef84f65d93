# shellcheck shell=sh
# Read before every script: the frame of an answer, and the one table of what differs between systems.
LC_ALL=C
export LC_ALL
umask 077

# An answer is a row of sections: a line `NAME STATUS BYTES`, then that many bytes and a newline.
section() { # NAME STATUS TEXT
    printf '%s %s %s\n%s\n' "$1" "$2" "${#3}" "$3"
}

state_directory() { # CLUSTER
    printf '%s/.local/state/clusterctl/%s' "$HOME" "$1"
}

in_home() { # PATH
    case $1 in
    [~]/*) printf '%s/%s' "$HOME" "${1#??}" ;;
    *) printf '%s' "$1" ;;
    esac
}

bounded() { # SECONDS PROGRAM...
    if command -v timeout >/dev/null 2>&1; then timeout "$@"; else shift && "$@"; fi
}

case $(uname -s) in
Linux)
    boot_id() { cat /proc/sys/kernel/random/boot_id; }
    # Field 22 of stat; the program name before it may hold blanks and parentheses.
    process_start() { sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
    # A zombie has ended: only its parent has not looked yet.
    process_lives() { case $(sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null) in "" | [ZX]*) false ;; esac }
    # Through a pipe, since files of /proc claim to be empty and `cmp` believes them.
    same_arguments() { tr '\0' '\n' <"/proc/$1/cmdline" | cmp -s - "$2"; } # PID FILE
    program_of() { readlink "/proc/$1/exe"; }
    memory() { cat /proc/meminfo; }
    addresses() { ip -4 -o addr show || ifconfig; }
    # Lines "NAME STATE TYPE MBIT DRIVER KIND LOWER,LOWER"; `-` stands for what the kernel does not tell.
    interfaces() {
        for place in /sys/class/net/*/; do
            place=${place%/} state='' type='' speed='' lower=''
            read -r state <"$place/operstate"
            read -r type <"$place/type"
            read -r speed <"$place/speed"
            driver=$(readlink "$place/device/driver")
            kind=$(sed -n 's/^DEVTYPE=//p' "$place/uevent")
            [ ! -f "$place/tun_flags" ] || kind=tun
            for below in "$place"/lower_*; do
                [ ! -e "$below" ] || lower=$lower,${below##*/lower_}
            done
            driver=${driver##*/} lower=${lower#,}
            echo "${place##*/} ${state:--} ${type:--} ${speed:--} ${driver:--} ${kind:--} ${lower:--}"
        done
    }
    sockets() { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null; }
    holders() { # PORT: lines "PID PROGRAM" of who listens there
        hex=$(printf ':%04X' "$1")
        cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | while read -r _ here _ state _ _ _ _ _ inode _; do
            case $here/$state in *"$hex/0A") ;; *) continue ;; esac
            find /proc/[0-9]*/fd -lname "socket:\[$inode\]" 2>/dev/null | cut -d/ -f3 | while read -r pid; do
                printf '%s %s\n' "$pid" "$(program_of "$pid")"
            done
        done
    }
    file_stamp() { stat -L -c '%s %Y' "$@"; }
    libraries_of() { ldd "$1"; }
    ;;
*)
    boot_id() { sysctl -n kern.boottime; }
    process_start() { ps -o lstart= -p "$1" 2>/dev/null; }
    process_lives() { case $(ps -o state= -p "$1" 2>/dev/null) in "" | Z*) false ;; esac }
    same_arguments() { test "$(ps -ww -o args= -p "$1")" = "$(tr '\n' ' ' <"$2" | sed 's/ $//')"; }
    program_of() { ps -o comm= -p "$1"; }
    memory() { sysctl hw.memsize hw.pagesize && vm_stat; }
    addresses() { ifconfig; }
    interfaces() { networksetup -listallhardwareports && ifconfig; }
    sockets() { lsof -nP -iTCP -FpcnT 2>/dev/null; }
    holders() { lsof -nP -iTCP:"$1" -sTCP:LISTEN 2>/dev/null | awk 'NR > 1 {print $2, $1}'; }
    file_stamp() { stat -L -f '%z %m' "$@"; }
    libraries_of() { otool -L "$1"; }
    ;;
esac

# absent | starting | running | ended. A process is ours only if boot, start time and arguments are those of
# its record; whatever else has its number now is somebody else's.
process_state() { # DIRECTORY
    [ -d "$1" ] || { echo absent; return; }
    [ -f "$1/process" ] || { echo starting; return; }
    { read -r pid && read -r start && read -r boot; } <"$1/process"
    if [ "$boot" = "$(boot_id)" ] && process_lives "$pid" &&
        [ "$start" = "$(process_start "$pid")" ] && same_arguments "$pid" "$1/argv"; then
        echo running
    else
        echo ended
    fi
}

# Changes when any program or library beside the program does: a thin program keeps its code in libraries.
fingerprint() { # PROGRAM
    beside=${1%/*}
    set -- "$1"
    for file in "$beside"/lib*ggml* "$beside"/lib*llama* "$beside"/lib*mtmd*; do
        [ -f "$file" ] && set -- "$@" "$file"
    done
    file_stamp "$@" | cksum | tr ' ' '-'
}

system() {
    uname -s
    uname -m
    hostname
    id -un
    boot_id
    date +%s
    printf '%s\n' "$HOME" "$PATH"
}

# changed | same: whether the program's files are still those it was started from.
program_changed() { # DIRECTORY
    program=$(sed -n 1p "$1/argv" 2>/dev/null)
    [ "$(fingerprint "$program")" = "$(cat "$1/fingerprint" 2>/dev/null)" ] && echo same || echo changed
}

# One section per record of this cluster on this node.
records() { # STATE_DIRECTORY
    for directory in "$1"/nodes/*/; do
        directory=${directory%/}
        [ -f "$directory/record.json" ] || continue
        section "record:${directory##*/}" 0 "$(
            process_state "$directory"
            sed -n 1p "$directory/process" 2>/dev/null || echo
            cat "$directory/exit" 2>/dev/null || echo
            program_changed "$directory"
            cat "$directory/record.json"
        )"
    done
}
