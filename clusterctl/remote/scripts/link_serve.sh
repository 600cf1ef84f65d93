# shellcheck shell=sh
# Serve one sample of a link: send BYTES zeros to whoever takes them all, for at most SECONDS.
# ADDRESS PORT BYTES SECONDS
command -v perl >/dev/null 2>&1 || exit 3
perl - "$@" <<'PERL'
use strict;
use Socket;
my ($address, $port, $bytes, $seconds) = @ARGV;
alarm $seconds;
socket(my $server, PF_INET, SOCK_STREAM, 0) or die "socket: $!\n";
setsockopt($server, SOL_SOCKET, SO_REUSEADDR, pack("l", 1));
bind($server, sockaddr_in($port, inet_aton($address))) or die "bind: $!\n";
listen($server, 8) or die "listen: $!\n";
my $block = "\0" x 65536;
$SIG{PIPE} = "IGNORE";
# Connections that only time the way are closed at once; the one that stays gets all of it.
while (accept(my $client, $server)) {
    my $left = $bytes;
    while ($left > 0) {
        my $sent = syswrite($client, $block, $left < 65536 ? $left : 65536) or last;
        $left -= $sent;
    }
    last unless $left;
}
PERL
