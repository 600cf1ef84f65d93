"""What is known of llama.cpp: builds, devices, flags, files, wire, logs. Pure."""
