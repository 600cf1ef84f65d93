# shellcheck shell=sh
# Memory of this node and of its cards, and what each program of a cluster holds of it. Starts no llama.cpp.
# CLUSTER
state=$STATE_HOME/$1
section memory 0 "$(memory 2>&1)"
if command -v nvidia-smi >/dev/null 2>&1; then
    section nvidia_cards 0 "$(nvidia-smi --query-gpu=name,memory.total,memory.free --format=csv 2>/dev/null)"
    section nvidia_programs 0 "$(nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv 2>/dev/null)"
fi
section amd_cards 0 "$(amd_cards)"
for directory in "$state"/nodes/*/; do
    read -r pid 2>/dev/null <"$directory/process" || continue
    section "device_memory:$pid" 0 "$(device_memory "$pid")"
done
