package reconcile_test

import (
	"context"
	"maps"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func (f *fake) GPUPools(context.Context) (map[string]domain.GPUPoolDocument, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return maps.Clone(f.pools), nil
}

func (f *fake) PutGPUPool(_ context.Context, doc domain.GPUPoolDocument) (domain.GPUPoolDocument, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.pools[doc.Spec.Name].Revision != doc.Revision {
		return doc, engine.ErrConflict
	}
	doc.Revision++
	f.pools[doc.Spec.Name] = doc
	return doc, nil
}

func (f *fake) DeleteGPUPool(_ context.Context, pool string) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.pools, pool)
	return nil
}

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
