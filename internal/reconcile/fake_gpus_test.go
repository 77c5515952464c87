package reconcile_test

import (
	"context"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func (f *fake) GPUs(context.Context) (map[string]domain.HostGPUs, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.gpus) == 0 {
		return nil, nil
	}
	found := f.gpus[0]
	if len(f.gpus) > 1 {
		f.gpus = f.gpus[1:]
	}
	return found, nil
}
