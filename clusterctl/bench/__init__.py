"""Measuring a cluster that serves: through the head's API, from where its clients are."""
