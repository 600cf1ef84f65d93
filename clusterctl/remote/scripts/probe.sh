# shellcheck shell=sh
# All facts of a node in one round trip.
# ROLE is head, worker, or survey for a node that has none yet: then both programs are asked.
# KNOWN are the fingerprints of programs whose options are known: they are not asked for them again.
# CLUSTER ROLE BIN_DIR KNOWN PORT_COUNT PORT... FILE_COUNT FILE... VARIABLE=VALUE...
state=$STATE_HOME/$1
cache=$CACHE_HOME/$1
role=$2
bin_dir=$(in_home "$3")
known=$4
shift 4

ports=
count=$1
shift
while [ "$count" -gt 0 ]; do
    ports="$ports $1"
    shift
    count=$((count - 1))
done

stamps() { # COUNT FILE...: lines "BYTES MODIFIED FILE" or "missing FILE"
    count=$1
    while [ "$count" -gt 0 ]; do
        shift
        file=$(in_home "$1")
        printf '%s %s\n' "$(file_stamp "$file" 2>/dev/null || echo missing)" "$file"
        count=$((count - 1))
    done
}
files=$(stamps "$@")
shift $(($1 + 1))

leave() { # a signal that comes now would reach `rm`, too
    trap '' HUP INT PIPE TERM
    exit 1
}
is_over=
trap 'is_over=yes' HUP INT PIPE TERM
work=$(mktemp -d "${TMPDIR:-/tmp}/clusterctl.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
# Who listened may be gone, too.
trap leave HUP INT PIPE TERM
[ -z "$is_over" ] || leave

# The non-interactive PATH of SSH is short, so the places where people build and unpack are looked at too.
if [ -n "$bin_dir" ]; then
    places=$bin_dir:$bin_dir/bin:$bin_dir/build/bin
else
    # What `clusterctl install` put there comes first: it was put there to be used.
    places=$HOME/.local/share/clusterctl/llama.cpp/current:$PATH
    for root in "$HOME" /opt /usr/local /opt/homebrew; do
        places=$places:$root/llama.cpp/build/bin:$root/llama.cpp/bin:$root/llama.cpp:$root/bin
    done
    places=$places:$HOME/.local/bin
fi

find_program() { # NAME: puts the first executable of that name into `found`
    found=
    IFS=:
    for place in $places; do
        [ -x "$place/$1" ] && [ -f "$place/$1" ] && found=$place/$1 && break
    done
    unset IFS
}

asked=
ask() { # NAME PROGRAM ARGUMENT...: in the background, for programs may take seconds to greet their GPUs
    name=$1
    shift
    become_bounded 25 "$@" >"$work/$name" 2>&1 &
    asked="$asked $name:$!"
}

program_section() { # PROGRAM FINGERPRINT
    find_real_path "$1"
    # shellcheck disable=SC2154 # it has just been put there
    section "program:$1" 0 "$2
$real"
}

code_sections() { # PREFIX PROGRAM FINGERPRINT VARIABLE=VALUE...
    prefix=$1 program=$2
    # A script is no code of llama.cpp, and its libraries are those of its shell.
    case $3 in script-*) return ;; esac
    shift 3
    libraries=$(export_all "$@" && libraries_of "$program" 2>&1)
    section "${prefix}libraries" $? "$libraries"
    base=
    while read -r library arrow file _; do
        case $library$arrow$file in libggml-base*"=>/"*) base=$file ;; esac
    done <<LIBRARIES
$libraries
LIBRARIES
    # The library carries its commit as a plain string among other runs of hexadecimal digits.
    section "${prefix}commits" 0 "$(grep -m 4000 -aoE '[0-9a-f]{7,}(-dirty)?' "${base:-$program}")"
}

# Lines "BYTES MODIFIED FILE" of model files in the places where people and programs keep them.
models() {
    set --
    for root in /models /srv/models /opt/models /data/models /mnt/models "$HOME/models" "$HOME/.lmstudio/models" \
        "$HOME/.cache/llama.cpp" "$HOME/Library/Caches/llama.cpp" "$HOME/.cache/huggingface/hub"; do
        [ -d "$root" ] && set -- "$@" "$root"
    done
    [ $# -gt 0 ] || return 0
    bounded 10 find -L "$@" -maxdepth 5 -type f -name '*.gguf' 2>/dev/null | head -n 200 | while read -r file; do
        printf '%s %s\n' "$(file_stamp "$file" 2>/dev/null)" "$file"
    done
}

find_program llama-server
server=$found
find_program llama
unified=$found
head=${server:-$unified}
find_program ggml-rpc-server
worker_new=$found
find_program rpc-server
worker_old=$found
worker=${worker_new:-$worker_old}

# Of the program that the node will run; what else is there is only told of.
head_print='' worker_print=''
[ -z "$head" ] || [ "$role" = worker ] || head_print=$(fingerprint "$head")
[ -z "$worker" ] || [ "$role" = head ] || worker_print=$(fingerprint "$worker")

is_known() { # FINGERPRINT
    case " $known " in *" $1 "*) ;; *) false ;; esac
}

if [ -n "$worker" ] && [ "$role" != head ]; then
    # An unknown device makes a worker list what it has and leave without binding anything.
    ask worker_devices "$@" "$worker" -d no-such-device
    is_known "$worker_print" || ask worker_help "$@" "$worker" --help
fi
if [ -n "$head" ]; then
    ask version "$@" "$head" --version
    if [ "$role" != worker ]; then
        serve=
        [ -n "$server" ] || serve=serve
        # shellcheck disable=SC2086 # a word, or none
        {
            ask devices "$@" "$head" $serve --list-devices
            is_known "$head_print" || ask help "$@" "$head" $serve --help
        }
    fi
fi

section system 0 "$(system)"
section memory 0 "$(memory 2>&1)"
section addresses 0 "$(addresses 2>&1)"
section interfaces 0 "$(interfaces 2>/dev/null)"
sockets=$(sockets)
section sockets 0 "$sockets"
for port in $ports; do
    section "holders:$port" 0 "$(holders "$port" "$sockets")"
done
[ "$role" = head ] || section cache 0 "$(kib_of "$cache" && disk_of "$cache")"
section files 0 "$files"
[ -z "$head" ] || program_section "$head" "$head_print"
[ -z "$worker" ] || program_section "$worker" "$worker_print"
if [ -n "$worker_new" ] && [ -n "$worker_old" ]; then
    program_section "$worker_old" ""
fi
[ -z "$head" ] || [ "$role" = worker ] || code_sections "" "$head" "$head_print" "$@"
[ -z "$worker" ] || [ "$role" = head ] || code_sections worker_ "$worker" "$worker_print" "$@"
if [ "$role" = survey ]; then
    section models 0 "$(models)"
    section ssh 0 "${SSH_CONNECTION:-}"
fi
records "$state"
cluster "$state"

for each in $asked; do
    name=${each%:*}
    wait "${each#*:}"
    status=$?
    section "$name" "$status" "$(cat "$work/$name")"
done
trap '' HUP INT PIPE TERM # what comes now would reach `rm`
