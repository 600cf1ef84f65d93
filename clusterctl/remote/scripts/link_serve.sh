# Serve one sample of a link: send BYTES zeros to whoever connects first, for at most SECONDS.
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
listen($server, 1) or die "listen: $!\n";
accept(my $client, $server) or die "accept: $!\n";
my $block = "\0" x 65536;
while ($bytes > 0) {
    my $sent = syswrite($client, $block, $bytes < 65536 ? $bytes : 65536) or last;
    $bytes -= $sent;
}
PERL
