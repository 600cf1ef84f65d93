#include <stdio.h>
#include <string.h>

const char *ggml_devices(void);

int main(int count, char **arguments) {
    if (count > 2 && strcmp(arguments[1], "-d") == 0) {
        printf("error: unknown device: %s\navailable devices:\n%s", arguments[2], ggml_devices());
        return 1;
    }
    printf("Usage: %s [options]\n\noptions:\n  -h, --help            show this help message and exit\n"
           "  -H, --host HOST       host to bind to\n  -p, --port PORT       port to bind to\n", arguments[0]);
    return 0;
}
