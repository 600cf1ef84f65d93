#include <stdio.h>
#include <string.h>

#ifdef WITH_RPC
#define RPC_OPTION "--rpc SERVERS                           comma-separated list of RPC servers\n"
#else
#define RPC_OPTION ""
#endif

const char *ggml_devices(void);

int main(int count, char **arguments) {
    const char *wanted = count > 1 ? arguments[1] : "";
    if (strcmp(wanted, "--version") == 0)
        fprintf(stderr, "version: 0.6.0-dev (build " NUMBER ", commit " COMMIT ")\n");
    else if (strcmp(wanted, "--list-devices") == 0)
        printf("Available devices:\n%s", ggml_devices());
    else
        printf("-m,    --model FNAME                    model path\n"
               "-c,    --ctx-size N                     size of the prompt context\n" RPC_OPTION);
    return 0;
}
