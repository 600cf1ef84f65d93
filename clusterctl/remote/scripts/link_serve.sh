# shellcheck shell=sh
# Serve samples of a link: send BYTES zeros to whoever connects, until descriptor 3 ends, for at most SECONDS.
# Says "listening" first, or why it can't.
# ADDRESS PORT BYTES SECONDS
if ! command -v perl >/dev/null 2>&1; then
    echo "the worker has no perl to serve a sample with"
    exit 3
fi
perl - "$@" 3<&- <<'PERL' &
use strict;
use Socket;
my ($address, $port, $bytes, $seconds) = @ARGV;
alarm $seconds;
socket(my $server, PF_INET, SOCK_STREAM, 0) or die "socket: $!\n";
setsockopt($server, SOL_SOCKET, SO_REUSEADDR, pack("l", 1));
bind($server, sockaddr_in($port, inet_aton($address))) or die "bind: $!\n";
listen($server, 8) or die "listen: $!\n";
syswrite(STDOUT, "listening\n");
my $block = "\0" x 65536;
$SIG{PIPE} = "IGNORE";
# Connections that only time the way are closed at once; the one that stays gets all of it.
while (accept(my $client, $server)) {
    my $left = $bytes;
    while ($left > 0) {
        my $sent = syswrite($client, $block, $left < 65536 ? $left : 65536) or last;
        $left -= $sent;
    }
}
PERL
server=$!
cat <&3 >/dev/null
kill "$server" 2>/dev/null
wait
