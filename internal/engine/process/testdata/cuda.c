/*
 * A CUDA program: it takes the first GPU that it sees and 64 MiB of its memory, says "ready", and waits to be ended. It asks NVIDIA's driver itself, by
 * the library that comes with that, so that nothing of NVIDIA's has to be there to build it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MEMORY (64ul << 20)

static void *find(void *library, const char *function) {
	void *found = dlsym(library, function);
	if (!found) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return found;
}

static void check(const char *function, int result) {
	if (result == 0)
		return;
	fprintf(stderr, "%s failed with error %d of CUDA\n", function, result);
	exit(1);
}

int main(void) {
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (!cuda) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	/* As cuda.h declares them: devices are numbers, a context is a pointer, and so is memory, of 64 bits. */
	int (*init)(unsigned flags) = find(cuda, "cuInit");
	int (*device_get)(int *device, int ordinal) = find(cuda, "cuDeviceGet");
	int (*context_create)(void **context, unsigned flags, int device) = find(cuda, "cuCtxCreate_v2");
	int (*allocate)(unsigned long long *memory, size_t size) = find(cuda, "cuMemAlloc_v2");
	int device;
	void *context;
	unsigned long long memory;
	check("cuInit", init(0));
	check("cuDeviceGet", device_get(&device, 0));
	check("cuCtxCreate", context_create(&context, 0, device));
	check("cuMemAlloc", allocate(&memory, MEMORY));
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
