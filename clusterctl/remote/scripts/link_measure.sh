# shellcheck shell=sh
# Take a sample of every link from this node: lines "NODE ROUND_TRIP_MS MBIT_S", or "NODE - REASON".
# SECONDS, then NODE ADDRESS PORT for each
command -v perl >/dev/null 2>&1 || exit 3
perl - "$@" <<'PERL'
use strict;
use Socket;
use Time::HiRes qw(time alarm);
my $seconds = shift @ARGV;
my $silence;
$SIG{ALRM} = sub { die $silence };
while (my ($node, $address, $port) = splice(@ARGV, 0, 3)) {
    my $result = eval { sample($address, $port) };
    alarm 0;
    print "$node ", $result || "- " . ($@ || "unknown\n");
}
sub sample {
    my ($address, $port) = @_;
    $silence = "no answer\n";
    alarm $seconds;
    my ($server, $round_trip);
    # The quickest of all tells the way without its hiccups.
    for (1 .. 5) {
        ($server, my $took) = dial($address, $port);
        $silence = "connected, but nothing came\n";
        $round_trip = $took if !defined $round_trip || $took < $round_trip;
    }
    my ($bytes, $start) = (0, time);
    while (time < $start + 1) {
        my $got = sysread($server, my $block, 262144);
        last unless $got;
        $bytes += $got;
    }
    die $silence unless $bytes;
    return sprintf("%.3f %.3f\n", $round_trip * 1e3, $bytes * 8 / (time - $start) / 1e6);
}
sub dial {
    my ($address, $port) = @_;
    socket(my $server, PF_INET, SOCK_STREAM, 0) or die "socket: $!\n";
    my $began = time;
    connect($server, sockaddr_in($port, inet_aton($address))) or die "$!\n";
    return ($server, time - $began);
}
PERL
