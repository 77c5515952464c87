package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// missing is the trouble of a device that its host no longer has.
const missing = "no longer found"

// unreadPatience is for how long the agent of a host has to say that it can't read GPUs until those that it does not find are in trouble: one
// look may fail, and while a driver is loaded anew all do.
const unreadPatience = 30 * time.Second

// PoolTrouble returns what is wrong with the devices of a pool, by UUID, by what was found on the hosts. Of a device on a host of which nobody
// can tell, or whose agent can't for a moment, that is what was wrong with it before.
func PoolTrouble(pool domain.GPUPoolDocument, found map[string]domain.HostGPUs) map[string]string {
	trouble := map[string]string{}
	for host, devices := range pool.Devices {
		for _, device := range devices {
			if why := deviceTrouble(device, found[host], pool.Trouble[device.UUID]); why != "" {
				trouble[device.UUID] = why
			}
		}
	}
	return trouble
}

// deviceTrouble says why a device of a host can't be used; "" where it can.
func deviceTrouble(device domain.Device, found domain.HostGPUs, before string) string {
	switch i := indexOf(found.GPUs, device.UUID); {
	case i >= 0:
		return usable(found.GPUs[i])
	case found.Unknown == "":
		return missing
	case !found.UnknownSince.IsZero() && found.SampledAt.Sub(found.UnknownSince) >= unreadPatience:
		return found.Unknown
	}
	return before
}

func indexOf(gpus []domain.GPU, uuid string) int {
	return slices.IndexFunc(gpus, func(g domain.GPU) bool { return g.UUID == uuid })
}

// KeepPools looks at the GPUs of the hosts, and notes in the documents of the cluster's GPU pools what is wrong with their devices. It returns
// false where there are no pools: then no host is asked.
func (r Reconciler) KeepPools(ctx context.Context) (pooled bool, err error) {
	before, err := r.Engine.GPUPools(ctx)
	if err != nil || len(before) == 0 {
		return false, err
	}
	found, err := r.Engine.Snapshot().GPUs(ctx)
	if err != nil {
		return true, err
	}
	for _, pool := range before {
		if !maps.Equal(PoolTrouble(pool, found), pool.Trouble) {
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

	pools, err := r.Engine.GPUPools(ctx)
	if err != nil {
		return err
	}
	for name, pool := range pools {
		trouble := PoolTrouble(pool, found)
		// One that was changed meanwhile may have devices that nobody looked for, and has been looked at by whoever changed it.
		if maps.Equal(trouble, pool.Trouble) || !reflect.DeepEqual(pool, before[name]) {
			continue
		}
		pool.Trouble = trouble
		if _, err := r.Engine.PutGPUPool(ctx, pool); err != nil {
			return fmt.Errorf("GPU pool %q: %w", name, err)
		}
	}
	return nil
}
