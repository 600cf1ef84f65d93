const char *ggml_devices(void) {
    return "  CPU: a processor (1024 MiB, 1024 MiB free)\n";
}
