# shellcheck shell=sh
# Read before every script: the frame of an answer, and the one table of what differs between systems.
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

# Many nodes may share one processor, so what the shell can do itself starts no program.
machine=$(uname -snm)
case $machine in
Linux*)
    boot_id() { read -r boot_of_now </proc/sys/kernel/random/boot_id && echo "$boot_of_now"; }
    # The program's name, before the last parenthesis, may hold blanks and parentheses of its own.
    process_facts() { { read -r facts <"/proc/$1/stat" && echo "${facts##*) }"; } 2>/dev/null; }
    process_start() { # PID: field 22 of the whole line
        # shellcheck disable=SC2046 # fields are wanted
        set -- $(process_facts "$1")
        [ $# -lt 20 ] || { shift 19 && echo "$1"; }
    }
    # A zombie has ended: only its parent has not looked yet.
    process_lives() { case $(process_facts "$1") in "" | [ZX]*) false ;; esac }
    # dash and busybox have no job control without a terminal.
    lead_group=setsid
    group_lives() { # PID of its leader, who may be gone
        kill -0 "-$1" 2>/dev/null || return 1
        for place in /proc/[0-9]*; do
            { read -r facts <"$place/stat"; } 2>/dev/null || continue
            # shellcheck disable=SC2086 # fields are wanted
            set -- "$1" ${facts##*) }
            case $2/$4 in [!ZX]/"$1") return 0 ;; esac
        done
        return 1
    }
    # All but the program itself: a wrapper script may have become another program, or have its shell before it.
    same_arguments() { # PID FILE
        case $(tr '\0' '\n' <"/proc/$1/cmdline") in *"$(sed '1s/.*//' "$2")") ;; *) false ;; esac
    }
    program_of() { readlink "/proc/$1/exe"; }
    # A process's state, the seconds of a processor that it has used (Linux counts hundredths), the KiB it holds.
    vitals() { # PID
        held=
        while read -r key value _; do [ "$key" != VmRSS: ] || held=$value; done <"/proc/$1/status"
        # shellcheck disable=SC2046 # fields are wanted
        set -- $(process_facts "$1")
        [ $# -lt 13 ] || echo "$1 $(((${12} + ${13}) / 100)).$(((${12} + ${13}) / 10 % 10)) $held"
    } 2>/dev/null
    # Bytes that a process has read, holds and has brought over the network, one figure a line.
    activity() { # PID
        {
            sed -n -e 's/^rchar: //p' -e 's/^read_bytes: //p' "/proc/$1/io"
            awk '/^VmRSS:/ {print $2 * 1024}' "/proc/$1/status"
            ss -Htinp | awk -v owner="pid=$1," '
                !/^[ \t]/ {own = index($0, owner); next}
                own {
                    while (match($0, /bytes_(acked|received):[0-9]+/)) {
                        split(substr($0, RSTART, RLENGTH), pair, ":")
                        print pair[2]
                        $0 = substr($0, RSTART + RLENGTH)
                    }
                }'
        } 2>/dev/null
    }
    memory() {
        while read -r key size unit; do
            case $key in MemTotal: | MemAvailable:) echo "$key $size $unit" ;; esac
            [ "$key" != MemAvailable: ] || break
        done </proc/meminfo
        cgroup_rooms
    }
    # Lines "CgroupAvailable: KIB kB": what every limit of a container or of systemd leaves to what runs here.
    cgroup_rooms() {
        while IFS=: read -r number _ group && [ "$number" != 0 ]; do :; done </proc/self/cgroup
        place=/sys/fs/cgroup${group%/}
        while [ "$place" != /sys/fs ]; do
            if read -r limit <"$place/memory.max" && [ "$limit" != max ] && read -r used <"$place/memory.current"; then
                cached=0 # what the kernel gives up before it ends anybody
                while read -r key size; do [ "$key" != inactive_file ] || cached=$size; done <"$place/memory.stat"
                room=$(((limit - used + cached) / 1024))
                [ "$room" -ge 0 ] || room=0
                echo "CgroupAvailable: $room kB"
            fi
            place=${place%/*}
        done
    } 2>/dev/null
    # Lines "CARD TOTAL USED" in bytes (kernel: gpu/amdgpu/driver-misc).
    amd_cards() {
        for place in /sys/class/drm/card*/device; do
            { read -r total <"$place/mem_info_vram_total" && read -r used <"$place/mem_info_vram_used"; } 2>/dev/null ||
                continue
            place=${place%/device}
            echo "${place##*/} $total $used"
        done
    }
    # What the kernel's drivers say that a process holds of cards: "DRIVER BYTES" of compute on AMD, and the
    # `drm-` lines of every open card (kernel: gpu/drm-usage-stats).
    device_memory() { # PID
        for file in "/sys/class/kfd/kfd/proc/$1"/vram_*; do
            { read -r held <"$file" && echo "kfd $held"; } 2>/dev/null
        done
        cat "/proc/$1"/fdinfo/* 2>/dev/null | grep '^drm-'
        true
    }
    addresses() { ip -4 -o addr show || ifconfig; }
    # Lines "NAME STATE TYPE MBIT DRIVER KIND LOWER,LOWER"; `-` stands for what the kernel does not tell.
    interfaces() {
        for place in /sys/class/net/*/; do
            place=${place%/} state='' type='' speed='' lower=''
            read -r state <"$place/operstate"
            read -r type <"$place/type"
            read -r speed <"$place/speed"
            driver='' kind=''
            [ ! -e "$place/device/driver" ] || driver=$(readlink "$place/device/driver")
            while IFS='=' read -r key value; do
                [ "$key" != DEVTYPE ] || kind=$value
            done <"$place/uevent"
            [ ! -f "$place/tun_flags" ] || kind=tun
            for below in "$place"/lower_*; do
                [ ! -e "$below" ] || lower=$lower,${below##*/lower_}
            done
            driver=${driver##*/} lower=${lower#,}
            echo "${place##*/} ${state:--} ${type:--} ${speed:--} ${driver:--} ${kind:--} ${lower:--}"
        done
    }
    kernel_sockets() { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null; }
    # Half a list would make a port look free.
    sockets() {
        if listed=$(ss -tan state listening state established 2>/dev/null); then echo "$listed"; else kernel_sockets; fi
    }
    holders() { # PORT SOCKETS: lines "PID PROGRAM" of who listens there; SOCKETS is what `sockets` prints
        hex=$(printf ':%04X' "$1")
        case $2 in *":$1 "* | *"$hex "*) ;; *) return ;; esac
        kernel_sockets | while read -r _ here _ state _ _ _ _ _ inode _; do
            case $here/$state in *"$hex/0A") ;; *) continue ;; esac
            # Not `find -lname`, which busybox does not know; and one program for all, as `readlink` is not.
            # shellcheck disable=SC2012 # the links are wanted
            ls -ln /proc/[0-9]*/fd 2>/dev/null | awk -F/ -v link="-> socket:[$inode]" '
                /^\/proc\// {pid = $3}
                index($0, link) {print pid}' | while read -r pid; do
                printf '%s %s\n' "$pid" "$(program_of "$pid")"
            done
        done
    }
    file_stamp() { stat -L -c '%s %Y' "$@"; }
    # What ldd does, without its shell; a static program only prints its usage.
    libraries_of() { LD_TRACE_LOADED_OBJECTS=1 "$1" --help; }
    sha256_of() { sha256sum "$1" | cut -d' ' -f1; }
    # A plain `mv` onto a link that leads to a directory would move into the directory.
    replace_link() { mv -fT "$1" "$2"; }
    runs_from() { # DIRECTORY
        for program in /proc/[0-9]*/exe; do
            case $(readlink "$program") in "$1"/*) return 0 ;; esac
        done
        return 1
    }
    ;;
*)
    boot_id() { sysctl -n kern.bootsessionuuid; } # kern.boottime moves whenever the clock is corrected
    process_start() { # PID: without the blanks that `ps` adds, as `read` gives it back
        # shellcheck disable=SC2046 # words are wanted
        set -- $(ps -o lstart= -p "$1" 2>/dev/null)
        echo "$*"
    }
    process_lives() { case $(ps -o state= -p "$1" 2>/dev/null) in "" | Z*) false ;; esac }
    # By job control: a program of the system's own in between would drop the variables that dyld reads.
    # shellcheck disable=SC2034 # start.sh reads it
    lead_group=
    group_lives() {
        kill -0 "-$1" 2>/dev/null || return 1
        ps -A -o pgid= -o state= | awk -v group="$1" '$1 == group && $2 !~ /^Z/ {lives = 1} END {exit !lives}'
    }
    same_arguments() {
        case $(ps -ww -o args= -p "$1") in *"$(sed '1s/.*//' "$2" | tr '\n' ' ' | sed 's/ $//')") ;; *) false ;; esac
    }
    program_of() { ps -o comm= -p "$1"; }
    vitals() { ps -o state= -o time= -o rss= -p "$1"; }
    activity() { :; }
    memory() { sysctl hw.memsize hw.pagesize && vm_stat; }
    amd_cards() { :; }
    device_memory() { :; }
    addresses() { ifconfig; }
    interfaces() { networksetup -listallhardwareports && ifconfig; }
    sockets() { lsof -nP -iTCP -FpcnT 2>/dev/null; }
    holders() { lsof -nP -iTCP:"$1" -sTCP:LISTEN 2>/dev/null | awk 'NR > 1 {print $2, $1}'; }
    file_stamp() { stat -L -f '%z %m' "$@"; }
    libraries_of() { otool -L "$1"; }
    sha256_of() { shasum -a 256 "$1" | cut -d' ' -f1; }
    replace_link() { mv -fh "$1" "$2"; }
    runs_from() { [ -n "$(lsof -t +D "$1" 2>/dev/null)" ]; }
    ;;
esac

# absent | starting | running | unsure | ended. A process is ours only if boot, start time and arguments are those
# of its record. Whatever else has its number now is somebody else's; but where only the arguments differ, it may
# have changed them itself.
process_state() { # DIRECTORY
    [ -d "$1" ] || { echo absent; return; }
    [ -f "$1/process" ] || { echo starting; return; }
    { read -r pid && read -r start && read -r boot; } <"$1/process"
    if [ "$boot" != "$(boot_id)" ] || ! process_lives "$pid" || [ "$start" != "$(process_start "$pid")" ]; then
        echo ended
    elif same_arguments "$pid" "$1/argv"; then
        echo running
    else
        echo unsure
    fi
}

# A program leads a group of its own, so that what a wrapper script has started is reached too.
signal_group() { # SIGNAL PID
    kill "-$1" "-$2" 2>/dev/null || kill "-$1" "$2" 2>/dev/null
}

# Changes when any program or library beside the program does: a thin program keeps its code in libraries.
fingerprint() { # PROGRAM
    beside=${1%/*}
    set -- "$1"
    for file in "$beside"/lib*ggml* "$beside"/lib*llama* "$beside"/lib*mtmd*; do
        [ -f "$file" ] && set -- "$@" "$file"
    done
    # A file's first page holds its build id, which tells builds apart whose sizes and times agree.
    # shellcheck disable=SC2046 # the two numbers of cksum are wanted
    set -- $({ file_stamp "$@" && head -c 4096 "$@"; } 2>/dev/null | cksum)
    echo "$1-$2"
}

system() {
    echo "$machine"
    id -un
    boot_id
    date +%s
    printf '%s\n' "$HOME" "$PATH"
}

# changed | same: whether the program's files are still those it was started from.
program_changed() { # DIRECTORY
    program=$(first_line "$1/argv")
    [ "$(fingerprint "$program")" = "$(first_line "$1/fingerprint")" ] && echo same || echo changed
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
