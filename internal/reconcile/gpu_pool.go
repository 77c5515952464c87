package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// PoolView is what was read of a cluster before a decision about a GPU pool.
type PoolView struct {
	// Hosts are the cluster's hosts by name; GPUs is what was found on them.
	Hosts map[string]domain.Host
	GPUs  map[string]domain.HostGPUs
	// Pools are the documents of the cluster's pools by name.
	Pools map[string]domain.GPUPoolDocument
}

// ResolvePool returns the next document of a pool, with its devices, based on the revision that it names. A device of
// the pool stays in it while it is in trouble or not found; the document records that.
func ResolvePool(view PoolView, spec domain.GPUPool) (domain.GPUPoolDocument, domain.Problems) {
	problems := spec.Validate()
	if problems.Err() != nil {
		return domain.GPUPoolDocument{}, problems
	}
	previous := view.Pools[spec.Name]
	r := resolver{view: view, spec: spec, known: map[string]domain.Device{}, devices: map[string][]domain.Device{}}
	for host, devices := range previous.Devices {
		for _, device := range devices {
			r.known[host+"/"+device.UUID] = device
		}
	}
	if spec.Devices != nil {
		r.named()
	} else {
		r.chosen(previous)
	}
	r.checkOthers()
	r.checkSlots()
	problems = append(problems, r.problems...)
	doc := domain.GPUPoolDocument{
		Header: previous.Header, Spec: spec, Devices: r.devices, Trouble: previous.Trouble,
		Condemned: previous.Condemned,
	}
	return Examine(doc, view.GPUs), problems
}

// resolver finds the devices of a pool.
type resolver struct {
	view PoolView
	spec domain.GPUPool
	// known are the devices that the pool had, by "host/UUID".
	known    map[string]domain.Device
	devices  map[string][]domain.Device
	problems domain.Problems
}

// named finds the devices that the specification lists.
func (r *resolver) named() {
	for _, host := range r.spec.HostNames() {
		at := domain.Path{"devices", domain.Key(host)}
		if _, found := r.view.Hosts[host]; !found {
			r.problems.Add(at, "Unknown host", "cluster %q has no host %q; its hosts are %s", r.spec.Cluster, host,
				strings.Join(slices.Sorted(maps.Keys(r.view.Hosts)), ", "))
			continue
		}
		for i, uuid := range r.spec.Devices[host] {
			if device, ok := r.find(host, uuid, at.At(i)); ok {
				r.devices[host] = append(r.devices[host], device)
			}
		}
	}
}

// find returns a device of a host as found now, or else as it was known before.
func (r *resolver) find(host, uuid string, at domain.Path) (domain.Device, bool) {
	before, had := r.known[host+"/"+uuid]
	there := r.view.GPUs[host]
	i := indexOf(there.GPUs, uuid)
	switch {
	case i >= 0 && (had || usable(there.GPUs[i]) == ""):
		return asFound(there.GPUs[i], before), true
	case had:
		return before, true
	case i >= 0:
		r.problems.Add(at, "GPU can't be used", "%s of host %q can't be in a pool: %s", uuid, host,
			usable(there.GPUs[i]))
	case there.Unknown != "":
		r.problems.Add(at, "GPUs unknown", "unknown whether host %q has %s: %s", host, uuid, there.Unknown)
	default:
		r.problems.Add(at, "No such GPU", "host %q has no GPU %s; %s", host, uuid, r.whatIsThere(host, uuid))
	}
	return domain.Device{}, false
}

// asFound returns a device as found; values that can't be read are taken from before.
func asFound(g domain.GPU, before domain.Device) domain.Device {
	now := g.Device
	now.Model, now.MemoryMiB, now.NUMANode = cmp.Or(now.Model, before.Model), cmp.Or(now.MemoryMiB, before.MemoryMiB),
		cmp.Or(now.NUMANode, before.NUMANode)
	if now.Links == nil && (g.Unknown != "" || g.Trouble != "") { // else it has none
		now.Links = before.Links
	}
	return now
}

// usable returns the reason why a device can't be in a pool, or "".
func usable(g domain.GPU) string {
	if g.MIG != nil && *g.MIG {
		return "it is partitioned by MIG, and pools take whole GPUs; disable MIG (nvidia-smi -mig 0), or leave it out"
	}
	return g.Trouble
}

// whatIsThere describes where a missing device is, or which devices the host has instead.
func (r *resolver) whatIsThere(host, uuid string) string {
	for _, other := range slices.Sorted(maps.Keys(r.view.GPUs)) {
		if slices.ContainsFunc(r.view.GPUs[other].GPUs, func(g domain.GPU) bool { return g.UUID == uuid }) {
			return fmt.Sprintf("it is in host %q", other)
		}
	}
	var there []string
	for _, g := range r.view.GPUs[host].GPUs {
		there = append(there, fmt.Sprintf("%s (%s)", g.UUID, g.Model))
	}
	if len(there) == 0 {
		return "it has none"
	}
	return "it has " + strings.Join(there, ", ")
}

// chosen selects devices by the selector: those that the pool had come first, then others by index.
func (r *resolver) chosen(previous domain.GPUPoolDocument) {
	selector, seen := *r.spec.Select, map[string]bool{}
	for i, host := range selector.Hosts {
		if _, found := r.view.Hosts[host]; !found {
			r.problems.Add(domain.Path{"select", "hosts", i}, "Unknown host",
				"cluster %q has no host %q; its hosts are %s", r.spec.Cluster, host,
				strings.Join(slices.Sorted(maps.Keys(r.view.Hosts)), ", "))
		}
	}
	var unknown, leftOut []string
	for _, host := range slices.Sorted(maps.Keys(r.view.Hosts)) {
		labels, there := r.view.Hosts[host].Labels, r.view.GPUs[host]
		var fit []domain.Device
		for _, device := range previous.Devices[host] {
			if i := indexOf(there.GPUs, device.UUID); i >= 0 {
				device = asFound(there.GPUs[i], device)
			}
			if selector.Matches(host, labels, device) {
				fit = append(fit, device)
				seen[device.UUID] = true
			}
		}
		for _, g := range there.GPUs {
			why := selector.Mismatches(host, labels, g.Device)
			if trouble := usable(g); trouble != "" {
				why = append(why, trouble)
			}
			if len(why) == 0 && !seen[g.UUID] {
				fit = append(fit, g.Device)
				seen[g.UUID] = true // hosts on the same machine share its devices
			}
			leftOut = append(leftOut, fmt.Sprintf("host %s: %s (%s, %d MiB): %s", host, g.UUID, g.Model, g.MemoryMiB,
				strings.Join(append(why, r.elsewhere(g.UUID)...), ", and ")))
		}
		full := selector.MaxPerHost > 0 && len(fit) >= selector.MaxPerHost
		if there.Unknown != "" && !full && selector.MatchesHost(host, labels) {
			unknown = append(unknown, fmt.Sprintf("host %s: %s", host, there.Unknown))
		}
		if full {
			fit = fit[:selector.MaxPerHost]
		}
		if len(fit) > 0 {
			r.devices[host] = fit
		}
	}
	switch {
	case len(r.problems) > 0:
	case len(unknown) > 0 && len(r.devices) == 0:
		r.problems.Add(domain.Path{"select"}, "GPUs unknown", "the hosts' GPUs are unknown: %s",
			strings.Join(unknown, "; "))
	case len(r.devices) == 0:
		r.problems.Add(domain.Path{"select"}, "No GPU selected", "no GPU of cluster %q matches select; %s",
			r.spec.Cluster, cmp.Or(strings.Join(leftOut, "; "), "its hosts have none"))
	case len(unknown) > 0:
		r.problems.Warn(domain.Path{"select"}, "GPUs unknown", "the GPUs of some hosts are unknown, so they are not "+
			"in the pool: %s. An apply waits %s for them; its selection then stays until the specification changes. "+
			"Fix these hosts, and then select again by naming all hosts of the pool in select.hosts; or name only "+
			"the others there, to do without these",
			strings.Join(unknown, "; "), gpusPatience)
	}
}

// elsewhere names the other pool that a device is in; empty if there is none.
func (r *resolver) elsewhere(uuid string) []string {
	for _, name := range slices.Sorted(maps.Keys(r.view.Pools)) {
		if name != r.spec.Name && r.view.Pools[name].Has(uuid) {
			return []string{fmt.Sprintf("it is in pool %q", name)}
		}
	}
	return nil
}

// checkOthers adds a problem for each device that is in another pool, too.
func (r *resolver) checkOthers() {
	for _, name := range slices.Sorted(maps.Keys(r.view.Pools)) {
		if name == r.spec.Name {
			continue
		}
		for _, host := range slices.Sorted(maps.Keys(r.view.Pools[name].Devices)) {
			for _, device := range r.view.Pools[name].Devices[host] {
				for own, devices := range r.devices {
					if slices.ContainsFunc(devices, func(d domain.Device) bool { return d.UUID == device.UUID }) {
						r.problems.Add(r.at(own, device.UUID), "Pools overlap",
							"%s of host %q is in pools %q and %q; a device can be in one pool only", device.UUID, own,
							name, r.spec.Name)
					}
				}
			}
		}
	}
}

// at returns the path in the specification that a device comes from.
func (r *resolver) at(host, uuid string) domain.Path {
	if i := slices.Index(r.spec.Devices[host], uuid); i >= 0 {
		return domain.Path{"devices", domain.Key(host), i}
	}
	return domain.Path{"select"}
}

// checkSlots adds a problem for each device that is too small for a single slot.
func (r *resolver) checkSlots() {
	for _, host := range slices.Sorted(maps.Keys(r.devices)) {
		for _, device := range r.devices[host] {
			if r.spec.SlotsOf(device) == 0 {
				r.problems.Add(domain.Path{"memory_mib_per_slot"}, "Slot larger than the device",
					"a slot of %d MiB does not fit into %s of host %q, which has %d MiB, %g %% of it in reserve",

					r.spec.MemoryMiBPerSlot, device.UUID, host, device.MemoryMiB, 100*r.spec.Reserve())
			}
		}
	}
}

// PoolInUseError means that a pool can't be removed because groups or sweeps use its devices.
type PoolInUseError struct {
	Cluster, Pool string
	// Groups and Sweeps are the names of those.
	Groups, Sweeps []string
}

// Error says what to do about it.
func (e *PoolInUseError) Error() string {
	return fmt.Sprintf("GPU pool %q of cluster %q is in use by %s: destroy those first, or have them use another pool",
		e.Pool, e.Cluster, domain.EnumerateUsers(e.Groups, e.Sweeps))
}

// gpusPatience is how long an apply waits for hosts to report their GPUs: their agents may have just been started.
const (
	gpusPatience = 30 * time.Second
	gpusRetry    = 500 * time.Millisecond
)

// PoolView reads what a decision about a pool needs to know.
func (r Reconciler) PoolView(ctx context.Context, cluster domain.Cluster) (view PoolView, err error) {
	view.Hosts = cluster.Hosts
	if view.Pools, err = engine.List[domain.GPUPoolDocument](ctx, r.Engine); err != nil {
		return view, err
	}
	view.GPUs, err = r.Engine.GPUs(ctx)
	return view, err
}

// PutPool applies a pool, and returns its warnings. If created is set, an existing pool is an error unless it has the
// same specification. If the plan showed the selected devices, the pool gets exactly those or PutPool fails. It waits
// up to [gpusPatience] for hosts that have not reported their GPUs.
func (r Reconciler) PutPool(
	ctx context.Context, spec domain.GPUPool, created bool, shown map[string][]string,
) (domain.Problems, error) {
	for start := time.Now(); ; {
		patient := time.Since(start) < gpusPatience
		warnings, unknown, err := r.tryPool(ctx, spec, created, shown, patient)
		if !unknown || !patient {
			return warnings, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(gpusRetry):
		}
	}
}

// tryPool is one attempt of PutPool. The result unknown means that the error may be due to hosts that have not reported
// their GPUs; if patient, those are an error even if the pool could do without them.
func (r Reconciler) tryPool(
	ctx context.Context, spec domain.GPUPool, created bool, shown map[string][]string, patient bool,
) (warnings domain.Problems, unknown bool, err error) {
	// Asking the hosts may be slow, so it is done before the allocation lock is taken.
	found, err := r.Engine.GPUs(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("cluster %q: %w", spec.Cluster, err)
	}
	release, err := r.lock(ctx, allocationLock, "change of GPU pool "+spec.Name)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, release()) }()

	cluster, err := engine.Cluster(ctx, r.Engine)
	if err != nil {
		return nil, false, fmt.Errorf("cluster %q: %w", spec.Cluster, err)
	}
	view := PoolView{Hosts: cluster.Spec.Hosts, GPUs: map[string]domain.HostGPUs{}}
	for host := range view.Hosts {
		gpus, asked := found[host]
		if !asked {
			gpus.Unknown = "it has just joined the cluster"
		}
		view.GPUs[host] = gpus
	}
	if view.Pools, err = engine.List[domain.GPUPoolDocument](ctx, r.Engine); err != nil {
		return nil, false, err
	}
	if existing, found := view.Pools[spec.Name]; found && created && !existing.Spec.Equal(spec) {
		return nil, false, fmt.Errorf("cluster %q already has a GPU pool %q with another specification; choose "+
			"another name, or import it: terraform import <address> %s",
			spec.Cluster, spec.Name, r.Engine.Traits().ImportFrom+domain.GroupID(spec.Cluster, spec.Name))
	}
	doc, problems := ResolvePool(view, spec)
	if err := problems.Err(); err != nil {
		return nil, slices.ContainsFunc(slices.Collect(maps.Values(view.GPUs)),
			func(found domain.HostGPUs) bool { return found.Unknown != "" }), err
	}
	if patient && len(problems) > 0 {
		return nil, true, fmt.Errorf("GPU pool %q could not be resolved in time: %s", spec.Name, problems.Error())
	}
	if found := doc.UUIDs(); shown != nil && !maps.EqualFunc(shown, found, slices.Equal) {
		return nil, false, fmt.Errorf("the GPUs that GPU pool %q selects have changed since the plan: it showed %v, "+
			"and now there are %v. Nothing was changed; plan and apply again", spec.Name, shown, found)
	}
	_, err = engine.Put(ctx, r.Engine, doc)
	return problems, false, err
}

// Pool returns the document of a pool, or [engine.ErrNotFound].
func (r Reconciler) Pool(ctx context.Context, name string) (domain.GPUPoolDocument, error) {
	pools, err := engine.List[domain.GPUPoolDocument](ctx, r.Engine)
	if err != nil {
		return domain.GPUPoolDocument{}, err
	}
	doc, found := pools[name]
	if !found {
		return doc, fmt.Errorf("GPU pool %q: %w", name, engine.ErrNotFound)
	}
	return doc, nil
}

// DeletePool removes a pool unless a group or sweep uses it. It does nothing if the pool is gone.
func (r Reconciler) DeletePool(ctx context.Context, cluster, name string) (err error) {
	release, err := r.lock(ctx, allocationLock, "removal of GPU pool "+name)
	if errors.Is(err, engine.ErrNotFound) {
		return nil // the pool is gone with the cluster
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()

	groups, err := engine.List[domain.GroupDocument](ctx, r.Engine)
	if err != nil {
		return err
	}
	sweeps, err := engine.List[domain.SweepDocument](ctx, r.Engine)
	if err != nil {
		return err
	}
	if inGroups, inSweeps := groupsOf(groups, name), sweepsOf(sweeps, name); len(inGroups)+len(inSweeps) > 0 {
		return &PoolInUseError{cluster, name, inGroups, inSweeps}
	}
	return engine.Delete[domain.GPUPoolDocument](ctx, r.Engine, name)
}

// groupsOf returns the names of the groups that use devices of a pool, sorted.
func groupsOf(groups map[string]domain.GroupDocument, pool string) []string {
	var users []string
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		for _, role := range groups[name].Spec.Roles {
			if role.GPUs != nil && role.GPUs.Pool == pool {
				users = append(users, name)
				break
			}
		}
	}
	return users
}

// sweepsOf returns the names of the sweeps that use devices of a pool, sorted.
func sweepsOf(sweeps map[string]domain.SweepDocument, pool string) []string {
	var users []string
	for _, name := range slices.Sorted(maps.Keys(sweeps)) {
		if gpus := sweeps[name].Spec.GPUs; gpus != nil && gpus.Pool == pool {
			users = append(users, name)
		}
	}
	return users
}
