package enginetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func testDocuments(t *testing.T, h Harness) {
	e := h.Open(t, h.lab)
	ctx := t.Context()
	if _, err := e.Cluster(ctx); !errors.Is(err, engine.ErrNotFound) {
		t.Fatalf("a cluster that is not there: %v, not ErrNotFound", err)
	}
	must(t, e.DeleteCluster(ctx))

	spec := domain.Cluster{Name: h.lab, Engine: e.Traits().Name, Hosts: map[string]domain.Host{"local": {Address: "127.0.0.1", Capacity: domain.Capacity{CPUs: 1, MemoryMiB: 1}}}}
	first, err := e.PutCluster(ctx, domain.ClusterDocument{Spec: spec})
	must(t, err)
	if first.Revision != 1 {
		t.Errorf("the first write made revision %d", first.Revision)
	}
	if _, err := e.PutCluster(ctx, domain.ClusterDocument{Spec: spec}); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("a write that expects nothing, over a document: %v, not ErrConflict", err)
	}

	if _, err := e.Group(ctx, h.group); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a group that is not there: %v, not ErrNotFound", err)
	}
	doc, err := e.PutGroup(ctx, domain.GroupDocument{Spec: domain.Group{Cluster: h.lab, Name: h.group}, Counts: map[string]int{"worker": 2}})
	must(t, err)
	stored, err := e.Group(ctx, h.group)
	must(t, err)
	if stored.Revision != doc.Revision || stored.Counts["worker"] != 2 || stored.Version != domain.DocumentVersion {
		t.Errorf("stored %+v, read %+v", doc, stored)
	}
	groups, err := e.Groups(ctx)
	must(t, err)
	if len(groups) != 1 || groups[h.group].Revision != doc.Revision {
		t.Errorf("the groups are %+v", groups)
	}

	oneWins(t, func() error {
		_, err := e.PutGroup(ctx, doc)
		return err
	})

	testPools(t, h, e)

	must(t, e.DeleteGroup(ctx, h.group))
	must(t, e.DeleteGroup(ctx, h.group))
	if _, err := e.Group(ctx, h.group); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a deleted group: %v, not ErrNotFound", err)
	}
	must(t, e.DeleteCluster(ctx))
	if _, err := e.Cluster(ctx); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a deleted cluster: %v, not ErrNotFound", err)
	}
}

// oneWins shows that of several writers on top of one revision one wins.
func oneWins(t *testing.T, put func() error) {
	t.Helper()
	var wins, conflicts int
	var mutex sync.Mutex
	var writers sync.WaitGroup
	for range 10 {
		writers.Go(func() {
			err := put()
			mutex.Lock()
			defer mutex.Unlock()
			switch {
			case err == nil:
				wins++
			case errors.Is(err, engine.ErrConflict):
				conflicts++
			default:
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if wins != 1 || conflicts != 9 {
		t.Errorf("of 10 writers on top of one revision %d won and %d got a conflict", wins, conflicts)
	}
}

// testPools shows that documents of GPU pools are kept beside those of groups, even of one name.
func testPools(t *testing.T, h Harness, e engine.Engine) {
	t.Helper()
	ctx := t.Context()
	pools, err := e.GPUPools(ctx)
	must(t, err)
	if len(pools) != 0 {
		t.Errorf("before there are any, the pools are %+v", pools)
	}
	device := domain.Device{UUID: "GPU-1", Model: "Tesla V100-SXM2-32GB", MemoryMiB: 32768}
	doc, err := e.PutGPUPool(ctx, domain.GPUPoolDocument{
		Spec:    domain.GPUPool{Cluster: h.lab, Name: h.group, Devices: map[string][]string{"gpu1": {"GPU-1"}}},
		Devices: map[string][]domain.Device{"gpu1": {device}},
	})
	must(t, err)
	pools, err = e.GPUPools(ctx)
	must(t, err)
	if diff := cmp.Diff(map[string]domain.GPUPoolDocument{h.group: doc}, pools); diff != "" || doc.Revision != 1 || doc.Version != domain.DocumentVersion {
		t.Errorf("the pools, stored as %+v (-stored +read):\n%s", doc, diff)
	}
	if _, err := e.PutGPUPool(ctx, domain.GPUPoolDocument{Spec: doc.Spec}); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("a write that expects nothing, over a pool: %v, not ErrConflict", err)
	}
	groups, err := e.Groups(ctx)
	must(t, err)
	if len(groups) != 1 {
		t.Errorf("beside a pool, the groups are %+v", groups)
	}
	must(t, e.DeleteGPUPool(ctx, h.group))
	must(t, e.DeleteGPUPool(ctx, h.group))
	pools, err = e.GPUPools(ctx)
	must(t, err)
	if _, err := e.Group(ctx, h.group); err != nil || len(pools) != 0 {
		t.Errorf("after the end of a pool the pools are %+v, and the group of its name: %v", pools, err)
	}
}

func testLocks(t *testing.T, h Harness) {
	e := h.cluster(t)
	ctx := t.Context()
	holder := engine.Holder{Who: "ada@engine", Process: 4711, Operation: "apply of group job"}
	release, err := e.Lock(ctx, "group job", holder)
	must(t, err)
	_, err = e.Lock(ctx, "group job", engine.Holder{Who: "bob"})
	var locked *engine.LockedError
	if !errors.As(err, &locked) || locked.Holder.Who != holder.Who || locked.Holder.Process != holder.Process {
		t.Errorf("a lock that is held: %v", err)
	}
	other, err := e.Lock(ctx, "group other", engine.Holder{Who: "bob"})
	must(t, err)
	must(t, other())
	must(t, release())

	// Somebody who holds a lock for long is told when he does no more.
	held, release, err := engine.Hold(ctx, e, "group job", holder)
	must(t, err)
	_, err = e.Lock(ctx, "group job", engine.Holder{Who: "bob"})
	if !errors.As(err, &locked) || held.Err() != nil {
		t.Errorf("a lock that is held: %v; what its holder does: %v", err, context.Cause(held))
	}
	must(t, release())
	if held.Err() == nil {
		t.Error("what the holder of a lock does goes on after its release")
	}
	again, err := e.Lock(ctx, "group job", engine.Holder{Who: "bob"})
	must(t, err)
	must(t, again())
}
