#!/bin/sh
# Installs the named Debian packages that are missing. Does so only as root on a machine with apt-get;
# anywhere else it does nothing, and what needs them says so.
set -eu

[ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || exit 0

missing=
for package; do
    state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) || state=unknown
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

# A freshly installed sshd must not begin to serve the machine: the tests start their own.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi

echo "installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get install -qq -y --no-install-recommends $missing >/dev/null
