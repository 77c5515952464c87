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

// unreadPatience is for how long the agent of a host has to say that it can't read GPUs until those that it does not
// find are in trouble: one look may fail, and while a driver is loaded anew all do.
const unreadPatience = 30 * time.Second

// Examine returns the document of a pool with what is wrong with its devices by what was found on the hosts. Of a
// device on a host of which nobody can tell, or whose agent can't for a moment, that is what was wrong with it before;
// and one that has to be reset stays in trouble until there is a sign of that, though the agent of its host may have
// forgotten why.
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

// examine says why a device of a host can't be used, "" where it can, and for which error it has to be reset, nil where
// it need not be.
func examine(uuid string, found domain.HostGPUs, before domain.GPUPoolDocument) (why string, condemned *domain.Condemnation) {
	if known, was := before.Condemned[uuid]; was {
		condemned = &known
	}
	switch i := indexOf(found.GPUs, uuid); {
	case i >= 0:
		return examineFound(found.GPUs[i], found.Boot, condemned)
	case found.Unknown == "":
		return missing, nil // and it comes back as after a reset
	case !found.UnknownSince.IsZero() && found.SampledAt.Sub(found.UnknownSince) >= unreadPatience:
		return found.Unknown, condemned
	}
	return before.Trouble[uuid], condemned
}

// examineFound is examine for a device that was found, and for which error it had to be reset before.
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

// sameHealth reports whether two documents of a pool say the same of what is wrong with its devices.
func sameHealth(a, b domain.GPUPoolDocument) bool {
	return maps.Equal(a.Trouble, b.Trouble) && maps.EqualFunc(a.Condemned, b.Condemned, domain.Condemnation.Equal)
}

func indexOf(gpus []domain.GPU, uuid string) int {
	return slices.IndexFunc(gpus, func(g domain.GPU) bool { return g.UUID == uuid })
}

// KeepPools looks at the GPUs of the hosts, and notes in the documents of the cluster's GPU pools what is wrong with
// their devices. It returns false where there are no pools: then no host is asked.
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

// noteTrouble stores what is wrong with the devices of pools, by what was found on the hosts since the pools were read.
func (r Reconciler) noteTrouble(ctx context.Context, before map[string]domain.GPUPoolDocument, found map[string]domain.HostGPUs) (err error) {
	release, err := r.lock(ctx, allocationLock, "look at the GPU pools")
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
		// One that was changed meanwhile may have devices that nobody looked for, and has been looked at by whoever
		// changed it.
		if sameHealth(examined, pool) || !reflect.DeepEqual(pool, before[name]) {
			continue
		}
		if _, err := engine.Put(ctx, r.Engine, examined); err != nil {
			return fmt.Errorf("GPU pool %q: %w", name, err)
		}
	}
	return nil
}
