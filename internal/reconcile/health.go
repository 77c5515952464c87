package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// missing is the trouble of a device that its host no longer has.
const missing = "no longer found"

// unreadPatience is how long an agent must have failed to read GPUs before devices that it does not list are in
// trouble: a single read may fail, and all fail while a driver is reloaded.
const unreadPatience = 30 * time.Second

// Examine returns the document of a pool with the trouble of its devices, from what was found on the hosts. If a host
// can't be read, or its agent has failed for a moment only, the trouble stays as it was. A device that needs a reset
// stays in trouble until there is a sign of one, even if the agent has forgotten why.
func Examine(pool domain.GPUPoolDocument, found map[string]domain.HostGPUs) domain.GPUPoolDocument {
	before := pool
	pool.Trouble, pool.Condemned = map[string]string{}, map[string]domain.Condemnation{}
	for host, devices := range pool.Devices {
		for _, device := range devices {
			why, condemned := examine(device.UUID, found[host], before)
			if why != "" {
				pool.Trouble[device.UUID] = why
			}
			if condemned != nil {
				pool.Condemned[device.UUID] = *condemned
			}
		}
	}
	return pool
}

// examine returns the reason why a device can't be used, or "", and the error for which it has to be reset, or nil.
func examine(
	uuid string, found domain.HostGPUs, before domain.GPUPoolDocument,
) (why string, condemned *domain.Condemnation) {
	if known, was := before.Condemned[uuid]; was {
		condemned = &known
	}
	switch i := indexOf(found.GPUs, uuid); {
	case i >= 0:
		return examineFound(found.GPUs[i], found.Boot, condemned)
	case found.Unknown == "":
		return missing, nil // it comes back as after a reset
	case !found.UnknownSince.IsZero() && found.SampledAt.Sub(found.UnknownSince) >= unreadPatience:
		return found.Unknown, condemned
	}
	return before.Trouble[uuid], condemned
}

// examineFound is examine for a device that was found; before is the error for which it had to be reset so far.
func examineFound(g domain.GPU, boot string, before *domain.Condemnation) (why string, condemned *domain.Condemnation) {
	why = usable(g)
	if g.Condemned != nil {
		before = new(*g.Condemned)
		before.Boot = boot
	}
	if before == nil {
		return why, nil
	}
	next, holds := before.After(g, boot)
	switch {
	case !holds:
		return why, nil
	case g.Condemned == nil:
		why = strings.TrimSuffix(domain.XIDTrouble(next.XID)+"; "+why, "; ")
	}
	return why, &next
}

// sameHealth reports whether two documents of a pool agree on what is wrong with its devices.
func sameHealth(a, b domain.GPUPoolDocument) bool {
	return maps.Equal(a.Trouble, b.Trouble) && maps.EqualFunc(a.Condemned, b.Condemned, domain.Condemnation.Equal)
}

func indexOf(gpus []domain.GPU, uuid string) int {
	return slices.IndexFunc(gpus, func(g domain.GPU) bool { return g.UUID == uuid })
}

// KeepPools examines the hosts' GPUs and records in the documents of the GPU pools what is wrong with them. It returns
// false if there are no pools, and asks no host then.
func (r Reconciler) KeepPools(ctx context.Context) (pooled bool, err error) {
	before, err := engine.List[domain.GPUPoolDocument](ctx, r.Engine)
	if err != nil || len(before) == 0 {
		return false, err
	}
	found, err := r.Engine.Snapshot().GPUs(ctx)
	if err != nil {
		return true, err
	}
	for _, pool := range before {
		if !sameHealth(Examine(pool, found), pool) {
			return true, r.noteTrouble(ctx, before, found)
		}
	}
	return true, nil
}

// noteTrouble stores what is wrong with the devices of pools, from what was found on the hosts
// since the pools were read.
func (r Reconciler) noteTrouble(
	ctx context.Context, before map[string]domain.GPUPoolDocument, found map[string]domain.HostGPUs,
) (err error) {
	release, err := r.lock(ctx, allocationLock, "check of the GPU pools")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()

	pools, err := engine.List[domain.GPUPoolDocument](ctx, r.Engine)
	if err != nil {
		return err
	}
	for name, pool := range pools {
		examined := Examine(pool, found)
		// A pool that changed meanwhile may have devices that were not looked for, and was
		// examined by whoever changed it.
		if sameHealth(examined, pool) || !reflect.DeepEqual(pool, before[name]) {
			continue
		}
		if _, err := engine.Put(ctx, r.Engine, examined); err != nil {
			return fmt.Errorf("GPU pool %q: %w", name, err)
		}
	}
	return nil
}
