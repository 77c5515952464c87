package reconcile_test

import (
	"context"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func (f *fake) Residents(context.Context) (domain.Residents, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.residents == nil {
		return domain.Residents{Controller: domain.Resident{State: domain.ResidentRunning}}, nil
	}
	next := f.residents[0]
	f.residents = f.residents[min(1, len(f.residents)-1):]
	return next, nil
}
