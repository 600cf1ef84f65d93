"""clusterctl: llama.cpp RPC clusters of unlike machines, over SSH and nothing else."""

__version__ = "0.1.0"
