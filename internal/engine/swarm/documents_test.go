package swarm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func TestDocuments(t *testing.T) {
	e, _ := documentsOf(t, "docs")
	ctx := t.Context()
	_, err := e.Cluster(ctx)
	wantNotFound(t, err)
	must(t, e.deleteDocuments(ctx))
	_, err = e.PutGroup(ctx, groupOf(e, "job"))
	wantNotFound(t, err)
	wantObjects(t, e)

	spec := domain.Cluster{Name: "docs", Engine: Name, Hosts: map[string]domain.Host{"gpu1": {Capacity: domain.Capacity{CPUs: 1, MemoryMiB: 1}}}}
	first, err := e.PutCluster(ctx, domain.ClusterDocument{Spec: spec})
	must(t, err)
	want := domain.ClusterDocument{Version: domain.DocumentVersion, Revision: 1, Spec: spec}
	read, err := e.Cluster(ctx)
	must(t, err)
	if diff := cmp.Diff([]domain.ClusterDocument{want, want}, []domain.ClusterDocument{first, read}); diff != "" {
		t.Errorf("the cluster as written and as read (-want +got):\n%s", diff)
	}
	_, err = e.PutCluster(ctx, domain.ClusterDocument{Spec: spec})
	wantConflict(t, err)
	second, err := e.PutCluster(ctx, first)
	must(t, err)
	_, err = e.PutCluster(ctx, first)
	wantConflict(t, err)
	_, err = e.PutCluster(ctx, domain.ClusterDocument{Revision: second.Revision + 1, Spec: spec})
	wantConflict(t, err)

	_, err = e.Group(ctx, "job")
	wantNotFound(t, err)
	job := written(t, e, "job", 3)
	written(t, e, "other", 1)
	other, _ := stored(t, "docs2")
	written(t, other, "job", 1)
	groups, err := e.Groups(ctx)
	must(t, err)
	if len(groups) != 2 || groups["job"].Revision != 3 || groups["other"].Revision != 1 {
		t.Errorf("the groups are %+v", groups)
	}
	if read, err := e.Group(ctx, "job"); err != nil || !cmp.Equal(job, read) {
		t.Errorf("the group was written as %+v and read as %+v (%v)", job, read, err)
	}
	wantObjects(t, e, "cluster 2", "group job 3", "group other 1")

	must(t, e.DeleteGroup(ctx, "job"))
	must(t, e.DeleteGroup(ctx, "job"))
	_, err = e.Group(ctx, "job")
	wantNotFound(t, err)
	wantObjects(t, e, "cluster 2", "group other 1")
	must(t, e.deleteDocuments(ctx))
	_, err = e.Cluster(ctx)
	wantNotFound(t, err)
	wantObjects(t, other, "cluster 1", "group job 1")
}

// TestConcurrentWriters: of several writers on top of one revision one wins, round by round.
func TestConcurrentWriters(t *testing.T) {
	e, _ := stored(t, "writers")
	doc := groupOf(e, "job")
	for round := range 5 {
		results := make([]domain.GroupDocument, 10)
		errs := make([]error, len(results))
		var writers sync.WaitGroup
		for i := range results {
			writers.Go(func() {
				mine := doc
				mine.MinRun = i
				results[i], errs[i] = e.PutGroup(t.Context(), mine)
			})
		}
		writers.Wait()
		wins := 0
		for i, err := range errs {
			if err == nil {
				wins++
				doc = results[i]
				continue
			}
			wantConflict(t, err)
		}
		if wins != 1 {
			t.Fatalf("in round %d, %d of %d writers won", round+1, wins, len(results))
		}
		if read, err := e.Group(t.Context(), "job"); err != nil || !cmp.Equal(doc, read) {
			t.Fatalf("in round %d, %+v won and %+v was read (%v)", round+1, doc, read, err)
		}
		wantObjects(t, e, "cluster 1", fmt.Sprintf("group job %d", round+1))
	}
}

// TestWritesInBetween has another run write or delete at each moment of a write.
func TestWritesInBetween(t *testing.T) {
	for name, test := range map[string]struct {
		at      testbed.Fault
		other   func(t *testing.T, e *Engine, doc domain.GroupDocument)
		want    error
		objects []string
	}{
		"another write before ours": {
			testbed.Fault{Match: creation, Nth: 1},
			func(t *testing.T, e *Engine, doc domain.GroupDocument) {
				_, err := e.PutGroup(t.Context(), doc)
				must(t, err)
			},
			engine.ErrConflict, []string{"cluster 1", "group job 3"},
		},
		// The name of our revision is free again.
		"two writes before ours": {
			testbed.Fault{Match: creation, Nth: 1},
			func(t *testing.T, e *Engine, doc domain.GroupDocument) {
				for range 2 {
					var err error
					doc, err = e.PutGroup(t.Context(), doc)
					must(t, err)
				}
			},
			engine.ErrConflict, []string{"cluster 1", "group job 4"},
		},
		"deletion before ours": {
			testbed.Fault{Match: creation, Nth: 1},
			func(t *testing.T, e *Engine, _ domain.GroupDocument) { must(t, e.DeleteGroup(t.Context(), "job")) },
			engine.ErrConflict, []string{"cluster 1"},
		},
		"deletion after ours": {
			testbed.Fault{Match: listing, Nth: 2},
			func(t *testing.T, e *Engine, _ domain.GroupDocument) { must(t, e.DeleteGroup(t.Context(), "job")) },
			engine.ErrConflict, []string{"cluster 1"},
		},
		"deletion of the cluster before ours": {
			testbed.Fault{Match: creation, Nth: 1},
			func(t *testing.T, e *Engine, _ domain.GroupDocument) { must(t, e.deleteDocuments(t.Context())) },
			engine.ErrNotFound, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, proxy := stored(t, "between")
			other, _ := documentsOf(t, "between")
			doc := written(t, e, "job", 2)
			proxy.Reset()
			test.at.Do = before(func() { test.other(t, other, doc) })
			proxy.On(test.at)
			if _, err := e.PutGroup(t.Context(), doc); !errors.Is(err, test.want) {
				t.Errorf("%v, not %v", err, test.want)
			}
			wantObjects(t, e, test.objects...)
		})
	}
}

// TestStaleWritesNothing: what is based on another revision than the stored one is refused before anything is written, even by a
// writer that would die next.
func TestStaleWritesNothing(t *testing.T) {
	e, proxy := stored(t, "stale")
	doc := written(t, e, "job", 3)
	proxy.Reset()
	for _, revision := range []int{0, doc.Revision - 1, doc.Revision + 1} {
		stale := doc
		stale.Revision = revision
		_, err := e.PutGroup(t.Context(), stale)
		wantConflict(t, err)
	}
	deleted := groupOf(e, "deleted")
	deleted.Revision = 2
	_, err := e.PutGroup(t.Context(), deleted)
	wantConflict(t, err)
	if calls := proxy.Calls(); slices.ContainsFunc(calls, creation) {
		t.Errorf("the calls were %v", calls)
	}
}

// TestNewGroupOfDeletedCluster: a group that is new when its cluster is deleted does not outlive it.
func TestNewGroupOfDeletedCluster(t *testing.T) {
	e, proxy := stored(t, "vanishing")
	other, _ := documentsOf(t, "vanishing")
	proxy.On(testbed.Fault{Match: creation, Nth: 1, Do: before(func() { must(t, other.deleteDocuments(t.Context())) })})
	_, err := e.PutGroup(t.Context(), groupOf(e, "job"))
	wantNotFound(t, err)
	wantObjects(t, e)
}

// TestDeletionMeetsWrites: what is written while a document is deleted is deleted, too.
func TestDeletionMeetsWrites(t *testing.T) {
	for name, c := range map[string]struct {
		remove func(*testing.T, *Engine) error
		// again is the number of the list by which it is looked whether anything is left.
		again int
	}{
		"group":   {func(t *testing.T, e *Engine) error { return e.DeleteGroup(t.Context(), "job") }, 4},
		"cluster": {func(t *testing.T, e *Engine) error { return e.deleteDocuments(t.Context()) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			e, proxy := stored(t, "meeting")
			other, _ := documentsOf(t, "meeting")
			written(t, e, "job", 1)
			proxy.Reset()
			proxy.On(testbed.Fault{Match: listing, Nth: c.again, Do: before(func() { written(t, other, "job", 1) })})
			must(t, c.remove(t, e))
			_, err := e.Group(t.Context(), "job")
			wantNotFound(t, err)
		})
	}
}

// TestDeathOfWriter has a writer, or whoever deletes, lose its manager at each of its calls: what is read then is the old
// document or the new one, and the next write succeeds on top of it and clears up.
func TestDeathOfWriter(t *testing.T) {
	t.Parallel()
	e, proxy := stored(t, "mortal")
	other, _ := documentsOf(t, "mortal")
	for _, act := range []struct {
		name string
		do   func(domain.GroupDocument) error
	}{
		{"put", func(doc domain.GroupDocument) error { _, err := e.PutGroup(t.Context(), doc); return err }},
		{"delete", func(domain.GroupDocument) error { return e.DeleteGroup(t.Context(), "job") }},
	} {
		for _, loss := range []struct {
			name string
			do   testbed.Action
		}{{"before", testbed.Drop()}, {"after", testbed.DropAnswer()}} {
			deaths := 0
			for k, survived := 1, false; !survived; k++ {
				doc := written(t, other, "job", 2)
				// What a writer left that died before it cleared up: the document is the higher one.
				leaveRevision(t, other, "job", 1)
				proxy.Reset()
				proxy.On(testbed.Fault{Nth: k, Onwards: true, Do: loss.do})
				err := act.do(doc)
				survived = len(proxy.Calls()) < k
				proxy.Reset()
				if survived {
					must(t, err)
				} else {
					deaths++
				}
				read, err := other.Group(t.Context(), "job")
				switch {
				case errors.Is(err, engine.ErrNotFound) && act.name == "delete":
					read = groupOf(e, "job")
				case err != nil:
					t.Fatalf("a %s that died %s call %d: %v", act.name, loss.name, k, err)
				case read.Revision < doc.Revision:
					t.Fatalf("a %s that died %s call %d brought back revision %d", act.name, loss.name, k, read.Revision)
				}
				next, err := other.PutGroup(t.Context(), read)
				must(t, err)
				wantObjects(t, other, "cluster 1", fmt.Sprintf("group job %d", next.Revision))
				must(t, other.DeleteGroup(t.Context(), "job"))
			}
			if deaths < 3 {
				t.Errorf("a %s died %s %d calls, which are not all it takes", act.name, loss.name, deaths)
			}
		}
	}
}

func TestCorruptDocuments(t *testing.T) {
	e, _ := stored(t, "corrupt")
	for name, spec := range map[string]struct{ revision, data, reason string }{
		"no JSON":        {"1", `{"version":1,`, "unexpected end"},
		"other type":     {"1", `{"version":1,"revision":1,"counts":3}`, "counts"},
		"version":        {"1", `{"version":99,"revision":1}`, "version 99, and this build reads version 1"},
		"revision":       {"1", `{"version":1,"revision":2}`, "holds revision 2, and its label says 1"},
		"revision label": {"one", `{"version":1,"revision":1}`, `"one"`},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := e.groupSlot("job").annotations(1)
			annotations.Labels[labelRevision] = spec.revision
			leave(t, e, swarm.ConfigSpec{Annotations: annotations, Data: []byte(spec.data)})
			for call, do := range map[string]func() error{
				"Group":  func() error { _, err := e.Group(t.Context(), "job"); return err },
				"Groups": func() error { _, err := e.Groups(t.Context()); return err },
				"PutGroup": func() error {
					_, err := e.PutGroup(t.Context(), domain.GroupDocument{Revision: 1, Spec: groupOf(e, "job").Spec})
					return err
				},
			} {
				err := do()
				corrupt, is := errors.AsType[*engine.CorruptError](err)
				if !is || !strings.Contains(corrupt.Where, annotations.Name) || !strings.Contains(err.Error(), spec.reason) {
					t.Errorf("%s: %v", call, err)
				}
			}
			if _, err := e.Group(t.Context(), "other"); !errors.Is(err, engine.ErrNotFound) {
				t.Errorf("another group: %v", err)
			}
			wantObjects(t, e, "cluster 1", "group job "+spec.revision)
		})
	}

	cluster, _ := documentsOf(t, "corrupt2")
	leave(t, cluster, swarm.ConfigSpec{Annotations: cluster.clusterSlot().annotations(1), Data: []byte("no")})
	if _, err := cluster.Cluster(t.Context()); !strings.Contains(fmt.Sprint(err), "config object trainyard.corrupt2.cluster.1 is corrupt") {
		t.Errorf("a cluster's document that is none: %v", err)
	}
}

// TestDocumentSize: what the engine lets pass the Swarm takes, and what is too large is told so before anything is written.
func TestDocumentSize(t *testing.T) {
	e, _ := stored(t, "large")
	doc := groupOf(e, "job")
	doc.Spec.Template.Env = map[string]string{"TEXT": strings.Repeat("x", maxDocument-1000)}
	doc, err := e.PutGroup(t.Context(), doc)
	must(t, err)
	if read, err := e.Group(t.Context(), "job"); err != nil || !cmp.Equal(doc, read) {
		t.Errorf("a large document is not read as it was written: %v", err)
	}
	doc.Spec.Template.Env["TEXT"] = strings.Repeat("x", maxDocument)
	if _, err := e.PutGroup(t.Context(), doc); !strings.Contains(fmt.Sprint(err), "a Swarm stores at most 1000000") {
		t.Errorf("a document that is too large: %v", err)
	}
	wantObjects(t, e, "cluster 1", "group job 1")
}

// TestForeignName: somebody's config object of our name is no conflict, which would go away, and is left alone.
func TestForeignName(t *testing.T) {
	e, _ := stored(t, "foreign")
	name := e.groupSlot("job").annotations(1).Name
	leave(t, e, swarm.ConfigSpec{Annotations: swarm.Annotations{Name: strings.ToUpper(name)}, Data: []byte("theirs")})
	_, err := e.PutGroup(t.Context(), groupOf(e, "job"))
	if errors.Is(err, engine.ErrConflict) || !strings.Contains(fmt.Sprint(err), name) {
		t.Errorf("a name that is taken: %v", err)
	}
	must(t, e.deleteDocuments(t.Context()))
	if theirs, err := e.configNamed(t.Context(), name); err != nil || theirs == nil || string(theirs.Spec.Data) != "theirs" {
		t.Errorf("somebody's config object is %+v (%v)", theirs, err)
	}
}

func TestLongNames(t *testing.T) {
	e, _ := stored(t, strings.Repeat("c", domain.MaxNameLength))
	other, _ := stored(t, strings.Repeat("c", domain.MaxNameLength-1)+"d")
	a, b := strings.Repeat("g", domain.MaxNameLength), strings.Repeat("g", domain.MaxNameLength-1)+"h"
	written(t, e, a, 2)
	written(t, e, b, 3)
	written(t, other, a, 1)
	groups, err := e.Groups(t.Context())
	must(t, err)
	if len(groups) != 2 || groups[a].Revision != 2 || groups[b].Revision != 3 {
		t.Errorf("the groups are %+v", groups)
	}
	must(t, e.DeleteGroup(t.Context(), a))
	wantObjects(t, e, "cluster 1", "group "+b+" 3")
	wantObjects(t, other, "cluster 1", "group "+a+" 1")
}

// TestFailedReads: a manager that fails is no deletion.
func TestFailedReads(t *testing.T) {
	e, proxy := stored(t, "failing")
	written(t, e, "job", 1)
	for name, action := range map[string]testbed.Action{"an error": testbed.Fail("no quorum"), "no answer": testbed.Drop()} {
		proxy.Reset()
		proxy.On(testbed.Fault{Nth: 1, Onwards: true, Do: action})
		for call, do := range map[string]func() error{
			"Cluster":         func() error { _, err := e.Cluster(t.Context()); return err },
			"Group":           func() error { _, err := e.Group(t.Context(), "job"); return err },
			"Groups":          func() error { _, err := e.Groups(t.Context()); return err },
			"PutCluster":      func() error { _, err := e.PutCluster(t.Context(), domain.ClusterDocument{}); return err },
			"DeleteGroup":     func() error { return e.DeleteGroup(t.Context(), "job") },
			"deleteDocuments": func() error { return e.deleteDocuments(t.Context()) },
			"Lock":            func() error { _, err := e.Lock(t.Context(), "group job", engine.Holder{}); return err },
		} {
			err := do()
			_, locked := errors.AsType[*engine.LockedError](err)
			if err == nil || locked || errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrConflict) {
				t.Errorf("%s with %s: %v", call, name, err)
			}
		}
	}
	proxy.Reset()
	wantObjects(t, e, "cluster 1", "group job 1")
}

// TestSnapshotOfDocuments: a plan takes one list for all documents, and, as there are groups, asks for what they consist of ahead.
func TestSnapshotOfDocuments(t *testing.T) {
	e, proxy := stored(t, "snapshot")
	written(t, e, "job", 1)
	snapshot := e.Snapshot()
	proxy.Reset()
	for range 2 {
		_, clusterErr := snapshot.Cluster(t.Context())
		_, groupErr := snapshot.Group(t.Context(), "job")
		_, groupsErr := snapshot.Groups(t.Context())
		must(t, errors.Join(clusterErr, groupErr, groupsErr))
	}
	observed, err := snapshot.Observe(t.Context(), "job")
	must(t, err)
	if len(observed) > 0 {
		t.Errorf("a group without members has %v", observed)
	}
	asked := map[string]int{}
	for _, call := range proxy.Calls() {
		asked[call.Path]++
	}
	if want := map[string]int{"/configs": 1, "/services": 1, "/tasks": 1, "/nodes": 1}; !maps.Equal(asked, want) {
		t.Errorf("the calls were %v", asked)
	}
	// Its writes are not based on what it remembers.
	doc := written(t, e, "new", 1)
	_, err = snapshot.PutGroup(t.Context(), doc)
	must(t, err)
}
