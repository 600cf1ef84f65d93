# shellcheck shell=sh
# Take a sample of every link from this node: lines "NODE ROUND_TRIP_MS MBIT_S", or "NODE - REASON".
# SECONDS, then NODE ADDRESS PORT for each
command -v perl >/dev/null 2>&1 || exit 3
perl - "$@" <<'PERL'
use strict;
use Errno qw(ECONNREFUSED);
use Socket;
use Time::HiRes qw(time sleep alarm);
my $seconds = shift @ARGV;
$SIG{ALRM} = sub { die "no answer\n" };
while (my ($node, $address, $port) = splice(@ARGV, 0, 3)) {
    my $result = eval { sample($address, $port) };
    alarm 0;
    print "$node ", $result || "- " . ($@ || "unknown\n");
}
sub sample {
    my ($address, $port) = @_;
    my $deadline = time + $seconds;
    alarm $seconds;
    my ($server, $round_trip);
    # The first waits until the other side is there; the quickest of all tells the way without its hiccups.
    for (1 .. 5) {
        ($server, my $took) = dial($address, $port, $deadline);
        $round_trip = $took if !defined $round_trip || $took < $round_trip;
    }
    my ($bytes, $start) = (0, time);
    while (time < $start + 1) {
        my $got = sysread($server, my $block, 262144);
        last unless $got;
        $bytes += $got;
    }
    my $took = time - $start;
    return sprintf("%.3f %.0f\n", $round_trip * 1e3, $took > 0 ? $bytes * 8 / $took / 1e6 : 0);
}
sub dial {
    my ($address, $port, $deadline) = @_;
    while (1) {
        socket(my $server, PF_INET, SOCK_STREAM, 0) or die "socket: $!\n";
        my $began = time;
        return ($server, time - $began) if connect($server, sockaddr_in($port, inet_aton($address)));
        # A refusal tells that the way is open.
        die "$!\n" if $! != ECONNREFUSED || time > $deadline;
        sleep 0.01;
    }
}
PERL
