# shellcheck shell=sh
# The same of a Mac, which has no /proc.

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
