# shellcheck shell=sh
# What a machine has of what an installation needs. Over SSH the PATH is short, so the usual places are added.
# ROOT TOOL...
root=$(in_home "$1")
shift
PATH=$PATH:/usr/local/bin:/usr/local/cuda/bin:/opt/rocm/bin:/opt/homebrew/bin

section system 0 "$(system)"
section current 0 "$(readlink "$root/current")"
section previous 0 "$(readlink "$root/previous")"
section builds 0 "$(find "$root" -maxdepth 1 -type d 2>/dev/null | sed 's/^.*\///')"
section tools 0 "$(for tool; do command -v "$tool" >/dev/null && echo "$tool"; done)"
section gpu_targets 0 "$(bounded 10 rocminfo 2>/dev/null | sed -n 's/^ *Name: *\(gfx[0-9a-f]*\) *$/\1/p' | sort -u)"
section hip_compiler 0 "$(bounded 10 hipconfig --hipclangpath 2>/dev/null)"
