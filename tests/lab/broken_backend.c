/* A backend that returns wrong numbers and no error: preloaded into a worker, it flips the sign of every
 * SPOIL_EVERY-th number that is read from its devices. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

typedef void (*tensor_get)(const void *tensor, void *data, size_t offset, size_t size);

void ggml_backend_tensor_get(const void *tensor, void *data, size_t offset, size_t size) {
    ((tensor_get)dlsym(RTLD_NEXT, "ggml_backend_tensor_get"))(tensor, data, offset, size);
    const size_t every = strtoul(getenv("SPOIL_EVERY"), NULL, 10);
    float *values = data;
    for (size_t i = 0; i < size / sizeof(float); i += every) values[i] = -values[i];
}
