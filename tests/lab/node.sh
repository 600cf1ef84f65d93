#!/bin/sh
# First process of a lab node, in fresh mount, PID and UTS namespaces and the node's own network namespace:
# builds a root of its own from the machine's programs, then becomes sshd.
# Arguments: STATE NAME SSHD PUBLIC_CIDR PRIVATE_CIDR [SOURCE TARGET]...   (each SOURCE appears read-only at TARGET)
set -eu
state=$1 name=$2 sshd=$3 public_cidr=$4 private_cidr=$5
shift 5
root=$state/root

mount -t tmpfs -o mode=755 root "$root"
for top in bin sbin lib lib32 lib64 libx32 usr etc; do
    if [ -L "/$top" ]; then
        cp -P "/$top" "$root/$top"
    elif [ -d "/$top" ]; then
        mkdir "$root/$top"
        mount -o bind,ro "/$top" "$root/$top"
    fi
done
mkdir -p "$root/dev/pts" "$root/proc" "$root/sys" "$root/root" "$root/run/sshd" "$root/run/node" "$root/tmp" "$root/opt" "$root/var/tmp"
chmod 1777 "$root/tmp" "$root/var/tmp"

# What the machine's owner installed is not the node's.
[ ! -d "$root/usr/local" ] || mount -t tmpfs -o mode=755 local "$root/usr/local"

# No graphics devices: a node shows its processor only, on every machine.
umask 000
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/zero" c 1 5
mknod -m 666 "$root/dev/random" c 1 8
mknod -m 666 "$root/dev/urandom" c 1 9
mknod -m 666 "$root/dev/tty" c 5 0
umask 022
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"

mount -t proc proc "$root/proc"
# Mounted in its own network namespace, it shows the node's own interfaces.
mount -t sysfs -o ro sysfs "$root/sys"
cat "$root/proc/sys/kernel/random/uuid" >"$state/boot_id"
mount --bind "$state/boot_id" "$root/proc/sys/kernel/random/boot_id"
mount --bind "$state/passwd" "$root/etc/passwd"
mount --bind "$state/shadow" "$root/etc/shadow"
mount --bind "$state/home" "$root/root"
mount --bind "$state" "$root/run/node"
while [ $# -gt 0 ]; do
    mkdir -p "$root$2"
    mount -o bind,ro "$1" "$root$2"
    shift 2
done

hostname "$name"
ip -batch - <<BATCH
link set lo up
address add $public_cidr dev public
address add $private_cidr dev private
link set public up
link set private up
BATCH
for network in public private; do
    echo 20 >/proc/sys/net/ipv4/neigh/$network/retrans_time_ms
    echo 150 >/proc/sys/net/ipv4/neigh/$network/mcast_solicit
done

[ -f "$state/host_key" ] || ssh-keygen -q -t ed25519 -N '' -C "$name" -f "$state/host_key"
exec chroot "$root" "$sshd" -D -e -f /run/node/sshd_config
