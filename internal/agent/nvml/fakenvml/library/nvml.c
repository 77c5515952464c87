/*
 * A libnvidia-ml.so.1 without GPUs. It answers what the file says that FAKE_NVML names, which it reads again whenever that has another
 * time of change; control.go writes it. A line is a word and its values: those before the first "device" are about the library itself,
 * those after a "device" about that one. The last one is "end": without it, the file is still being written.
 */
#define _GNU_SOURCE
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "nvml.h"

#define MAX_DEVICES 16
#define MAX_ITEMS 64
#define MIB (1ull << 20)
#define HANG -1

struct fault {
	char function[64];
	int code; /* of nvmlReturn_t, or HANG */
};

struct faults {
	struct fault list[MAX_ITEMS];
	int count;
};

struct user {
	unsigned pid;
	long long mib; /* below 0 where it is not known */
	bool graphics;
};

struct gpu {
	char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE], name[NVML_DEVICE_NAME_V2_BUFFER_SIZE], pci[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
	unsigned long long total, reserved, used; /* in MiB */
	unsigned utilisation, memory_utilisation, celsius, milliwatts, limit;
	bool ecc, mig, rows_failed, lost;
	unsigned long long ecc_errors;
	int numa; /* below 0 where there is none */
	int recovery; /* below 0 where it is not supported */
	char links[NVML_NVLINK_MAX_LINKS][NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE]; /* "-" where a link is down */
	int link_count;
	struct user users[MAX_ITEMS];
	int user_count;
	int xids[MAX_ITEMS], xid_count;
	struct faults faults;
};

/* What the file says. */
static struct told {
	bool whole;
	struct timespec changed; /* 1970 in images */
	struct faults faults;
	struct gpu gpus[MAX_DEVICES];
	int count;
} told;

/* The handles that callers get. */
struct nvmlDevice_st {
	int index;
} handles[MAX_DEVICES];

struct nvmlEventSet_st {
	bool recorded[MAX_DEVICES];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards all that is static */
static int initialised;
static int delivered[MAX_DEVICES]; /* XIDs of each device */

static void pause_for(long milliseconds) {
	nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000}, NULL);
}

static void read_line(struct told *t, const char *line) {
	struct gpu *g = t->count > 0 ? &t->gpus[t->count - 1] : NULL;
	struct faults *faults = g ? &g->faults : &t->faults;
	char word[32];
	int at = 0;
	if (sscanf(line, "%31s %n", word, &at) != 1)
		return;
	const char *values = line + at;
#define IS(name) (strcmp(word, name) == 0)
	if (IS("end")) {
		t->whole = true;
	} else if (IS("fault") && faults->count < MAX_ITEMS) {
		struct fault *f = &faults->list[faults->count++];
		sscanf(values, "%63s %d", f->function, &f->code);
	} else if (IS("device") && t->count < MAX_DEVICES) {
		g = &t->gpus[t->count++];
		sscanf(values, "%95s", g->uuid);
		g->numa = g->recovery = -1;
	} else if (!g) {
		return;
	} else if (IS("name")) {
		sscanf(values, "%95[^\n]", g->name);
	} else if (IS("pci")) {
		sscanf(values, "%31s", g->pci);
	} else if (IS("memory")) {
		sscanf(values, "%llu %llu %llu", &g->total, &g->reserved, &g->used);
	} else if (IS("utilisation")) {
		sscanf(values, "%u %u", &g->utilisation, &g->memory_utilisation);
	} else if (IS("temperature")) {
		sscanf(values, "%u", &g->celsius);
	} else if (IS("power")) {
		sscanf(values, "%u %u", &g->milliwatts, &g->limit);
	} else if (IS("ecc")) {
		g->ecc = sscanf(values, "%llu", &g->ecc_errors) == 1;
	} else if (IS("mig")) {
		g->mig = true;
	} else if (IS("numa")) {
		sscanf(values, "%d", &g->numa);
	} else if (IS("link") && g->link_count < NVML_NVLINK_MAX_LINKS) {
		sscanf(values, "%31s", g->links[g->link_count++]);
	} else if (IS("process") && g->user_count < MAX_ITEMS) {
		struct user *u = &g->users[g->user_count++];
		int graphics = 0;
		sscanf(values, "%u %lld %d", &u->pid, &u->mib, &graphics);
		u->graphics = graphics;
	} else if (IS("xid") && g->xid_count < MAX_ITEMS) {
		sscanf(values, "%d", &g->xids[g->xid_count++]);
	} else if (IS("rows_failed")) {
		g->rows_failed = true;
	} else if (IS("recovery")) {
		sscanf(values, "%d", &g->recovery);
	} else if (IS("lost")) {
		g->lost = true;
	}
}

/* Reads the file where it has changed. Without one there are no devices; while another one is being written, there are those of the last. */
static void refresh(void) {
	static struct told next;
	const char *path = getenv("FAKE_NVML");
	struct stat s;
	if (path && told.whole && stat(path, &s) == 0 && memcmp(&s.st_mtim, &told.changed, sizeof s.st_mtim) == 0)
		return;
	FILE *file = path ? fopen(path, "r") : NULL;
	if (!file)
		return;
	memset(&next, 0, sizeof next);
	if (fstat(fileno(file), &s) == 0)
		next.changed = s.st_mtim;
	char line[256];
	while (fgets(line, sizeof line, file))
		read_line(&next, line);
	if (next.whole)
		told = next;
	fclose(file);
}

/* Returns the fault of a function, which goes by its name with or without its version, or 0. */
static int fault_of(const struct faults *faults, const char *function) {
	for (int i = 0; i < faults->count; i++) {
		size_t n = strlen(faults->list[i].function);
		if (strncmp(faults->list[i].function, function, n) == 0 && (function[n] == 0 || strncmp(function + n, "_v", 2) == 0))
			return faults->list[i].code;
	}
	return 0;
}

/* Waits as long as a function is to hang, of the library or of a device that is no less than 0; then copies the device. */
static nvmlReturn_t enter(const char *function, int index, struct gpu *copy) {
	for (;; pause_for(5)) {
		pthread_mutex_lock(&mutex);
		refresh();
		int fault = fault_of(&told.faults, function);
		bool there = index < told.count;
		if (index >= 0 && there) {
			*copy = told.gpus[index];
			fault = fault ? fault : fault_of(&copy->faults, function);
		}
		bool up = initialised > 0 || strncmp(function, "nvmlInit", 8) == 0;
		pthread_mutex_unlock(&mutex);
		if (fault == HANG)
			continue;
		if (!up)
			return NVML_ERROR_UNINITIALIZED;
		if (fault)
			return fault;
		if (!there)
			return NVML_ERROR_INVALID_ARGUMENT;
		return index >= 0 && copy->lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
	}
}

/* Begins a function of the library, or of a device. */
#define ENTER(index)                                        \
	struct gpu gpu;                                         \
	nvmlReturn_t entered = enter(__func__, index, &gpu);    \
	if (entered != NVML_SUCCESS)                            \
		return entered
#define LIBRARY ENTER(-1)
#define DEVICE ENTER(device.handle->index)

nvmlReturn_t nvmlInit_v2(void) {
	LIBRARY;
	pthread_mutex_lock(&mutex);
	if (initialised++ == 0)
		memset(delivered, 0, sizeof delivered);
	pthread_mutex_unlock(&mutex);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void) {
	LIBRARY;
	pthread_mutex_lock(&mutex);
	initialised--;
	pthread_mutex_unlock(&mutex);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
	LIBRARY;
	pthread_mutex_lock(&mutex);
	*count = told.count;
	pthread_mutex_unlock(&mutex);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
	ENTER((int)index);
	handles[index].index = index;
	device->handle = &handles[index];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length) {
	DEVICE;
	snprintf(uuid, length, "%s", gpu.uuid);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
	DEVICE;
	snprintf(name, length, "%s", gpu.name);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
	DEVICE;
	memset(pci, 0, sizeof *pci);
	snprintf(pci->busId, sizeof pci->busId, "%s", gpu.pci);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
	DEVICE;
	memory->total = gpu.total * MIB;
	memory->used = (gpu.reserved + gpu.used) * MIB;
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
	DEVICE;
	if (memory->version != nvmlMemory_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	memory->total = gpu.total * MIB;
	memory->reserved = gpu.reserved * MIB;
	memory->used = gpu.used * MIB;
	memory->free = memory->total - memory->reserved - memory->used;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilisation) {
	DEVICE;
	utilisation->gpu = gpu.utilisation;
	utilisation->memory = gpu.memory_utilisation;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned *celsius) {
	DEVICE;
	*celsius = gpu.celsius;
	return sensor == NVML_TEMPERATURE_GPU ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts) {
	DEVICE;
	*milliwatts = gpu.milliwatts;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned *milliwatts) {
	DEVICE;
	*milliwatts = gpu.limit;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending) {
	DEVICE;
	*current = *pending = gpu.ecc ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, unsigned long long *errors) {
	DEVICE;
	if (!gpu.ecc)
		return NVML_ERROR_NOT_SUPPORTED;
	*errors = type == NVML_MEMORY_ERROR_TYPE_UNCORRECTED && counter == NVML_VOLATILE_ECC ? gpu.ecc_errors : 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
	DEVICE;
	*current = *pending = gpu.mig ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned size, unsigned long *nodes, nvmlAffinityScope_t scope) {
	DEVICE;
	const int bits = 8 * sizeof *nodes;
	if (scope != NVML_AFFINITY_SCOPE_NODE || gpu.numa >= (int)size * bits)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (gpu.numa < 0)
		return NVML_ERROR_NOT_SUPPORTED;
	memset(nodes, 0, size * sizeof *nodes);
	nodes[gpu.numa / bits] = 1ul << (gpu.numa % bits);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, nvmlEnableState_t *active) {
	DEVICE;
	if (gpu.link_count == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	if ((int)link >= gpu.link_count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*active = strcmp(gpu.links[link], "-") != 0 ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *pci) {
	DEVICE;
	if ((int)link >= gpu.link_count || strcmp(gpu.links[link], "-") == 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	memset(pci, 0, sizeof *pci);
	memcpy(pci->busId, gpu.links[link], sizeof pci->busId);
	return NVML_SUCCESS;
}

/* What is no device is a switch. */
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned link, nvmlIntNvLinkDeviceType_t *type) {
	DEVICE;
	if ((int)link >= gpu.link_count || strcmp(gpu.links[link], "-") == 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	*type = NVML_NVLINK_DEVICE_TYPE_SWITCH;
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < told.count; i++)
		if (strcmp(told.gpus[i].pci, gpu.links[link]) == 0)
			*type = NVML_NVLINK_DEVICE_TYPE_GPU;
	pthread_mutex_unlock(&mutex);
	return NVML_SUCCESS;
}

/* Copies the processes of one kind, as many as there is room for. */
static nvmlReturn_t list_users(const struct gpu *gpu, bool graphics, unsigned *room, nvmlProcessInfo_t *infos) {
	unsigned count = 0;
	for (int i = 0; i < gpu->user_count; i++) {
		const struct user *u = &gpu->users[i];
		if (u->graphics != graphics)
			continue;
		if (count < *room)
			infos[count] = (nvmlProcessInfo_t){
				.pid = u->pid,
				.usedGpuMemory = u->mib < 0 ? (unsigned long long)NVML_VALUE_NOT_AVAILABLE : u->mib * MIB,
				.gpuInstanceId = ~0u,
				.computeInstanceId = ~0u,
			};
		count++;
	}
	bool enough = count <= *room;
	*room = count;
	return enough ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos) {
	DEVICE;
	return list_users(&gpu, false, count, infos);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos) {
	DEVICE;
	return list_users(&gpu, true, count, infos);
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
	DEVICE;
	*corrected = *uncorrected = *pending = 0;
	*failed = gpu.rows_failed;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
	DEVICE;
	for (int i = 0; i < count; i++) {
		bool known = values[i].fieldId == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION && gpu.recovery >= 0;
		values[i].nvmlReturn = known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
		values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
		values[i].value.uiVal = gpu.recovery;
	}
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
	LIBRARY;
	set->handle = calloc(1, sizeof *set->handle);
	return set->handle ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
	LIBRARY;
	free(set.handle);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
	DEVICE;
	if (!(types & nvmlEventTypeXidCriticalError))
		return NVML_ERROR_INVALID_ARGUMENT;
	pthread_mutex_lock(&mutex);
	set.handle->recorded[device.handle->index] = true;
	pthread_mutex_unlock(&mutex);
	return NVML_SUCCESS;
}

/* Delivers the next XID of a recorded device. */
static bool next_xid(nvmlEventSet_t set, nvmlEventData_t *data) {
	for (int i = 0; i < told.count; i++) {
		if (!set.handle->recorded[i] || delivered[i] >= told.gpus[i].xid_count)
			continue;
		*data = (nvmlEventData_t){
			.device = {&handles[i]},
			.eventType = nvmlEventTypeXidCriticalError,
			.eventData = told.gpus[i].xids[delivered[i]++],
			.gpuInstanceId = ~0u,
			.computeInstanceId = ~0u,
		};
		return true;
	}
	return false;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned milliseconds) {
	const unsigned step = 100; /* what the benchmark of the agent counts, too */
	for (unsigned waited = 0;; waited += step) {
		LIBRARY;
		pthread_mutex_lock(&mutex);
		bool found = next_xid(set, data);
		pthread_mutex_unlock(&mutex);
		if (found)
			return NVML_SUCCESS;
		if (waited >= milliseconds)
			return NVML_ERROR_TIMEOUT;
		pause_for(step);
	}
}
