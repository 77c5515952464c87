package nvml

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestRealGPU reads the GPUs of this host, where there are any.
func TestRealGPU(t *testing.T) {
	if !alone(t) {
		return
	}
	r, err := Open(t.Context(), Settings{})
	if err != nil {
		t.Skip(err)
	}
	gpus, err := r.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, gpu := range gpus {
		t.Logf("%+v", gpu)
		if gpu.Trouble == "" && (gpu.MemoryMiB <= 0 || gpu.Model == "" || gpu.PCIBusID == "" || gpu.TemperatureC == nil) {
			t.Errorf("GPU %d is read as %+v", gpu.Index, gpu)
		}
		var problems domain.Problems
		if domain.CheckUUID(&problems, nil, gpu.UUID); len(problems) > 0 {
			t.Error(problems)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
