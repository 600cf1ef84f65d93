# shellcheck shell=sh
# End the program of a record, prove that it is gone, and remove the record. Signals nothing else.
# CLUSTER NODE GRACE_S
# Prints: absent | ended | stopped | killed | stuck
directory=$(state_directory "$1")/nodes/$2
grace=$3

gone_within() { # SECONDS
    tries=$(($1 * 20))
    while [ "$(process_state "$directory")" = running ]; do
        [ "$tries" -gt 0 ] || return 1
        sleep 0.05
        tries=$((tries - 1))
    done
}

# A start that is under way writes its process down within moments; one that broke off never does.
tries=100
while [ "$(process_state "$directory")" = starting ] && [ "$tries" -gt 0 ]; do
    sleep 0.05
    tries=$((tries - 1))
done

case $(process_state "$directory") in
absent)
    echo absent
    exit
    ;;
running)
    pid=$(sed -n 1p "$directory/process")
    kill -TERM "$pid" 2>/dev/null
    kill -CONT "$pid" 2>/dev/null # a stopped process can't act on SIGTERM
    if gone_within "$grace"; then
        echo stopped
    else
        kill -KILL "$pid" 2>/dev/null
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
