# shellcheck shell=sh
# End the program of a record, prove that it is gone, and remove the record. Signals nothing else.
# CLUSTER NODE GRACE_S
# Prints: absent | ended | stopped | killed; or, of what stays on record, stuck | unsure PID | outlived PID: what may
# not be ours, and what has outlived the process that started it, so that nobody can tell.
directory=$STATE_HOME/$1/nodes/$2
grace=$3

is_there() { # a process whose memory is being taken apart has no arguments any more
    case $(process_state "$directory") in running | unsure) ;; *) false ;; esac
}

gone_within() { # SECONDS
    tries=$(($1 * 20))
    while is_there; do
        [ "$tries" -gt 0 ] || return 1
        sleep 0.05
        tries=$((tries - 1))
    done
}

# A start that is under way writes its process down within moments; one that broke off never does. What a process had
# started mostly ends right after it.
tries=100
state=starting
pid=
while [ "$tries" -gt 0 ]; do
    state=$(process_state "$directory")
    pid=$(first_line "$directory/process")
    case $state in starting | unsure) ;; *) break ;; esac
    [ "$state" = starting ] || process_lives "$pid" || tries=$((tries - 9))
    sleep 0.05
    tries=$((tries - 1))
done

case $state in
absent)
    echo absent
    exit
    ;;
unsure)
    process_lives "$pid" || state=outlived
    echo "$state $pid"
    exit 1
    ;;
running)
    signal_group TERM "$pid"
    signal_group CONT "$pid" # a stopped process can't act on SIGTERM
    if gone_within "$grace"; then
        echo stopped
    else
        signal_group KILL "$pid"
        if gone_within 5; then
            echo killed
        else
            echo stuck
            exit 1
        fi
    fi
    # The supervisor writes the exit status last; the record goes only after it.
    tries=40
    while [ ! -f "$directory/exit" ] && [ "$tries" -gt 0 ]; do
        sleep 0.05
        tries=$((tries - 1))
    done
    ;;
*) echo ended ;;
esac
rm -rf "$directory"
rmdir "${directory%/*}" 2>/dev/null
rmdir "${directory%/nodes/*}" 2>/dev/null
true
