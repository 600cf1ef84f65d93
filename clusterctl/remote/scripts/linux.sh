# shellcheck shell=sh
# What scripts need to know of a Linux machine. Many nodes may share one processor, so what the shell can do itself
# starts no program.

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
# shellcheck disable=SC2034 # start.sh reads it
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
    while IFS=: read -r number kinds group; do
        case $number/$kinds in
        0/) limits_along "/sys/fs/cgroup$group" memory.max memory.current inactive_file ;;
        *[/,]memory | *[/,]memory,*)
            set -- memory.limit_in_bytes memory.usage_in_bytes total_inactive_file # version 1
            limits_along "/sys/fs/cgroup/memory$group" "$@"
            ;;
        esac
    done </proc/self/cgroup
} 2>/dev/null
limits_along() { # DIRECTORY LIMIT USED CACHED: names of files, the last one a line of memory.stat
    place=${1%/}
    while [ "$place" != /sys/fs ]; do
        # A limit of version 1 is a number that no machine has where there is none.
        if read -r limit <"$place/$2" && [ "$limit" != max ] && read -r used <"$place/$3"; then
            cached=0 # what the kernel gives up before it ends anybody
            while read -r key size; do [ "$key" != "$4" ] || cached=$size; done <"$place/memory.stat"
            room=$(((limit - used + cached) / 1024))
            [ "$room" -ge 0 ] || room=0
            echo "CgroupAvailable: $room kB"
        fi
        place=${place%/*}
    done
}
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
# Half a list would make a port look free, and ss that may not read anything lists nothing and is content.
sockets() {
    listed=$(ss -tan state listening state established 2>/dev/null) || listed=
    case $listed in *LISTEN* | *ESTAB*) echo "$listed" ;; *) kernel_sockets ;; esac
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
# What ldd does, without its shell; a static program only prints its usage. musl knows no such variable.
libraries_of() {
    for musl in /lib/ld-musl-*.so.1; do
        if [ -e "$musl" ]; then
            ldd "$1"
            return
        fi
    done
    LD_TRACE_LOADED_OBJECTS=1 "$1" --help
}
sha256_of() { sha256sum "$1" | cut -d' ' -f1; }
# A plain `mv` onto a link that leads to a directory would move into the directory.
replace_link() { mv -fT "$1" "$2"; }
runs_from() { # DIRECTORY
    for program in /proc/[0-9]*/exe; do
        case $(readlink "$program") in "$1"/*) return 0 ;; esac
    done
    return 1
}
