"""What is done to a cluster: probe, judge, start, watch, tear down."""
