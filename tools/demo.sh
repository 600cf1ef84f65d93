#!/bin/sh
# make demo: a real llama.cpp RPC cluster on this one machine: a head, two workers, a small model, one question.
#
# llama.cpp and the model are fetched (about 160 MB), except what the environment names:
#   CLUSTERCTL_LLAMA   the directory of your own llama-server and ggml-rpc-server (needed on macOS)
#   CLUSTERCTL_MODEL   the GGUF file of your own model
set -eu
cd "$(dirname "$0")/.."

started=$(date +%s)
make --silent .venv/product
if [ -z "${CLUSTERCTL_LLAMA:-}" ]; then
    tools/install-packages.sh libgomp1
    CLUSTERCTL_LLAMA=$(.venv/bin/python tools/fetch.py b10434) || {
        echo 'Build llama.cpp with -DGGML_RPC=ON, then name its programs:' >&2
        echo '  CLUSTERCTL_LLAMA=/path/to/llama.cpp/build/bin make demo' >&2
        exit 1
    }
fi
CLUSTERCTL_MODEL=${CLUSTERCTL_MODEL:-$(.venv/bin/python tools/fetch.py model)}
export CLUSTERCTL_LLAMA CLUSTERCTL_MODEL

clusterctl() {
    set -- .venv/bin/clusterctl -i inventory/local-demo.yaml -r recipes/smollm2-demo.yaml "$@"
    printf '\n$ %s\n' "$*" >&2
    "$@"
}

leave() {
    status=$?
    trap - EXIT INT TERM
    clusterctl down --yes || status=$?
    exit "$status"
}

clusterctl check
clusterctl plan
# From here on something may run: whatever happens, take it down. A shell waits for the running command first.
trap leave EXIT
trap 'exit 130' INT TERM
clusterctl up
state=$(clusterctl status --json)
.venv/bin/python tools/ask.py "$state" 'In one sentence: what is a computer cluster?'
printf '\nFrom nothing to the answer: %s seconds.\n' "$(($(date +%s) - started))"
clusterctl status
trap - EXIT INT TERM
clusterctl down --yes

cat <<'NEXT'

Now with your own machines:
  .venv/bin/clusterctl init HOST...         look at them over SSH and write an inventory
  .venv/bin/clusterctl -i INVENTORY check   compare their builds, devices, memory and network
Then copy a recipe of recipes/, name your model in it, and go on with plan and up.
NEXT
