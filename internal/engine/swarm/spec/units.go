package spec

// Docker gives CPUs in billionths, and memory in bytes.
const (
	NanoCPUs = 1e9
	MiB      = 1 << 20
)
