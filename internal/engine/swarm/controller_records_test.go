package swarm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// kept returns a record after a number of writes.
func kept(t *testing.T, e *Engine, name string, writes int) engine.Record {
	t.Helper()
	record := engine.Record{Name: name, Data: []byte(name)}
	for range writes {
		var err error
		record, err = e.PutRecord(t.Context(), record)
		must(t, err)
	}
	return record
}

// wantRecordObjects checks which config objects are there for records of the cluster.
func wantRecordObjects(t *testing.T, e *Engine, want ...string) {
	t.Helper()
	configs, err := e.recordsOf("")(context.WithoutCancel(t.Context())) // a test's end looks, too
	must(t, err)
	var found []string
	for _, config := range configs {
		found = append(found, fmt.Sprint(slotOf(config).name, " ", revisionOf(config)))
	}
	slices.Sort(found)
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("config objects of records (-want +got):\n%s", diff)
	}
}

// TestRecordsAreApart: no list of what a cluster has carries its records along, nor those of another cluster, and a write of one lists no other.
func TestRecordsAreApart(t *testing.T) {
	t.Parallel()
	e, proxy := stored(t, "kept")
	other, _ := stored(t, "kept2")
	kept(t, e, "history-1", 1)
	kept(t, other, "state", 1)
	proxy.Reset()
	kept(t, e, "state", 1)
	asked := 0
	for _, call := range proxy.Calls() {
		if listing(call) {
			asked++
		}
	}
	if asked != 4 {
		t.Errorf("a write of a record takes %d lists, not the record and its cluster, before and after: %v", asked, proxy.Calls())
	}
	for name, list := range map[string]list[swarm.Config]{"of a plan": e.reads.configs, "of the cluster": e.objects} {
		configs, err := list(t.Context())
		must(t, err)
		if len(configs) == 0 || slices.ContainsFunc(configs, func(c swarm.Config) bool { return slotOf(c).kind == kindRecord }) {
			t.Errorf("the list %s has %v", name, bySlot(configs))
		}
	}
	proxy.Reset()
	records, err := e.Records(t.Context(), "")
	must(t, err)
	if len(records) != 2 || len(proxy.Calls()) != 1 {
		t.Errorf("with calls %v the records are %v", proxy.Calls(), records)
	}
	configs, err := e.recordsOf("sta")(t.Context())
	must(t, err)
	if len(configs) != 1 {
		t.Errorf("the state is looked for among %v", bySlot(configs))
	}
	must(t, e.deleteDocuments(t.Context()))
	wantRecordObjects(t, e)
	wantRecordObjects(t, other, "state 1")
}

// TestRecordsOfLongNames: records are told from each other by more than what their objects' names begin with.
func TestRecordsOfLongNames(t *testing.T) {
	e, _ := stored(t, strings.Repeat("c", domain.MaxNameLength))
	other, _ := stored(t, strings.Repeat("c", domain.MaxNameLength-1)+"d")
	a, b := kept(t, e, "state", 2), kept(t, e, "history-", 1)
	kept(t, other, "state", 1)
	for prefix, want := range map[string]map[string]engine.Record{
		"": {"state": a, "history-": b}, "state": {"state": a}, "history-": {"history-": b}, "x": {},
	} {
		records, err := e.Records(t.Context(), prefix)
		must(t, err)
		if diff := cmp.Diff(want, records); diff != "" {
			t.Errorf("records that begin with %q (-want +got):\n%s", prefix, diff)
		}
	}
	must(t, e.DeleteRecord(t.Context(), "state"))
	wantRecordObjects(t, e, "history- 1")
	wantRecordObjects(t, other, "state 1")
}

// TestDeathOfRecordsWriter has a writer of a record lose its manager at each of its calls: what is read then is the old record or the new one,
// and the next write succeeds on top of it and clears up. A write on top of another revision leaves nothing, wherever it dies.
func TestDeathOfRecordsWriter(t *testing.T) {
	t.Parallel()
	e, proxy := stored(t, "mortalkept")
	other, _ := documentsOf(t, "mortalkept")
	for what, based := range map[string]int{"a write": 2, "a stale write": 1, "a write ahead": 4} {
		for when, action := range map[string]testbed.Action{"before": testbed.Drop(), "after": testbed.DropAnswer()} {
			for k, survived := 1, false; !survived; k++ {
				before := kept(t, other, "state", 2)
				mine := engine.Record{Name: "state", Revision: based, Data: []byte("mine")}
				proxy.Reset()
				proxy.On(testbed.Fault{Nth: k, Onwards: true, Do: action})
				_, err := e.PutRecord(t.Context(), mine)
				survived = len(proxy.Calls()) < k
				proxy.Reset()
				if valid := based == before.Revision; survived && valid {
					must(t, err)
				} else if survived {
					wantConflict(t, err)
				}
				records, err := other.Records(t.Context(), "")
				must(t, err)
				read := records["state"]
				if isOld, isNew := cmp.Equal(read, before), cmp.Equal(read, engine.Record{Name: "state", Revision: 3, Data: mine.Data}); !isOld && (!isNew || based != before.Revision) {
					t.Fatalf("%s that died %s call %d left %+v", what, when, k, records)
				}
				next, err := other.PutRecord(t.Context(), read)
				must(t, err)
				wantRecordObjects(t, other, fmt.Sprint("state ", next.Revision))
				must(t, other.DeleteRecord(t.Context(), "state"))
			}
		}
	}
}

// TestRecordOfDeletedCluster: a record does not outlive its cluster, whenever that is deleted.
func TestRecordOfDeletedCluster(t *testing.T) {
	for name, c := range map[string]struct {
		at      testbed.Fault
		written error
	}{
		"before it was written":         {testbed.Fault{Match: creation, Nth: 1}, engine.ErrNotFound},
		"after it was written":          {testbed.Fault{Match: listing, Nth: 3}, engine.ErrConflict},
		"before the cluster was looked": {testbed.Fault{Match: listing, Nth: 4}, engine.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			e, proxy := stored(t, "keptvanishing")
			other, _ := documentsOf(t, "keptvanishing")
			c.at.Do = before(func() { must(t, other.deleteDocuments(t.Context())) })
			proxy.On(c.at)
			if _, err := e.PutRecord(t.Context(), engine.Record{Name: "state", Data: []byte("a")}); !errors.Is(err, c.written) {
				t.Errorf("%v, not %v", err, c.written)
			}
			wantRecordObjects(t, e)
		})
	}
	// One that is written once the others are gone, while the cluster is still there.
	e, proxy := stored(t, "keptlate")
	other, _ := documentsOf(t, "keptlate")
	proxy.On(testbed.Fault{Match: removal, Nth: 1, Do: before(func() { kept(t, other, "state", 1) })})
	must(t, e.deleteDocuments(t.Context()))
	wantRecordObjects(t, e)
}

func TestCorruptRecords(t *testing.T) {
	e, _ := stored(t, "keptcorrupt")
	kept(t, e, "history-1", 1)
	annotations := slot{"keptcorrupt", kindRecord, "state"}.annotations(1)
	annotations.Labels[labelRevision] = "one"
	leave(t, e, swarm.ConfigSpec{Annotations: annotations, Data: []byte("a")})
	for call, do := range map[string]func() error{
		"Records": func() error { _, err := e.Records(t.Context(), ""); return err },
		"PutRecord": func() error {
			_, err := e.PutRecord(t.Context(), engine.Record{Name: "state", Revision: 1, Data: []byte("b")})
			return err
		},
	} {
		err := do()
		if corrupt, is := errors.AsType[*engine.CorruptError](err); !is || !strings.Contains(corrupt.Where, annotations.Name) {
			t.Errorf("%s: %v", call, err)
		}
	}
	if records, err := e.Records(t.Context(), "history"); err != nil || len(records) != 1 {
		t.Errorf("other records than a corrupt one are %v (%v)", records, err)
	}
}

// TestReportedEvents: of what is written all the time nobody is told, and of a policy everybody.
func TestReportedEvents(t *testing.T) {
	e, _ := stored(t, "reported")
	m, err := e.manager(t.Context())
	must(t, err)
	messages, failures := m.Events(t.Context(), events.ListOptions{Filters: watched})
	_, err = e.PutRecord(t.Context(), engine.Record{Name: "state", Data: []byte("a")})
	must(t, err)
	release, err := e.Lock(t.Context(), jobLock, ada)
	must(t, err)
	must(t, release())
	policy := domain.AutoscalingPolicyDocument{Spec: domain.AutoscalingPolicy{Cluster: "reported", Group: "job", Role: "worker"}}
	_, err = e.PutPolicy(t.Context(), policy)
	must(t, err)
	name := e.policySlot("job/worker").annotations(1).Name
	silent := map[string]bool{}
	for {
		select {
		case message := <-messages:
			about := message.Actor.Attributes["name"]
			switch {
			case about == name:
				if !reported(message) {
					t.Errorf("the event of a policy is not reported: %+v", message)
				}
				if want := map[string]bool{recordName("reported", "state", "1"): true, lockName("reported", jobLock): true}; !cmp.Equal(want, silent) {
					t.Errorf("events of %v were not reported", silent)
				}
				return
			case !reported(message):
				silent[about] = true
			}
		case err := <-failures:
			t.Fatal(err)
		}
	}
}

// TestForeignContents: somebody else's config object that a service of the cluster refers to is looked up, and no other.
func TestForeignContents(t *testing.T) {
	e, proxy := stored(t, "foreigncontent")
	leave(t, e, swarm.ConfigSpec{Annotations: swarm.Annotations{Name: "theirs"}, Data: []byte("epochs: 4\n")})
	theirs, err := e.configNamed(t.Context(), "theirs")
	must(t, err)
	own, err := e.clusterObjects(t.Context())
	must(t, err)
	service := func(cluster string, refs ...string) swarm.Service {
		var s swarm.Service
		s.Spec.Labels = map[string]string{labelCluster: cluster}
		s.Spec.TaskTemplate.ContainerSpec = &swarm.ContainerSpec{}
		for _, id := range refs {
			s.Spec.TaskTemplate.ContainerSpec.Configs = append(s.Spec.TaskTemplate.ContainerSpec.Configs, &swarm.ConfigReference{ConfigID: id})
		}
		return s
	}
	for name, c := range map[string]struct {
		services []swarm.Service
		lists    int
		want     string
	}{
		"ours alone":         {[]swarm.Service{{}, service("foreigncontent", own[0].ID)}, 1, ""},
		"theirs":             {[]swarm.Service{service("foreigncontent", own[0].ID, theirs.ID)}, 2, "epochs: 4\n"},
		"theirs, of another": {[]swarm.Service{service("other", theirs.ID)}, 1, ""},
	} {
		known, err := e.snapshot().known(t.Context(), c.services)
		must(t, err)
		if got := known.content(&swarm.ConfigReference{ConfigID: theirs.ID}); got != c.want {
			t.Errorf("%s: the content is %q", name, got)
		}
		if !bytes.Contains([]byte(known.content(&swarm.ConfigReference{ConfigID: own[0].ID})), []byte("foreigncontent")) {
			t.Errorf("%s: the cluster's own is not known", name)
		}
		proxy.Reset()
		_, err = e.snapshot().known(t.Context(), c.services)
		must(t, err)
		if lists := len(slices.DeleteFunc(proxy.Calls(), func(call testbed.Call) bool { return !listing(call) })); lists != c.lists {
			t.Errorf("%s: %d lists, not %d", name, lists, c.lists)
		}
	}
}

// TestRemoveFilesLeavesDocuments: what goes before the documents takes none of them along.
func TestRemoveFilesLeavesDocuments(t *testing.T) {
	e, _ := stored(t, "files")
	written(t, e, "job", 1)
	_, err := e.PutGPUPool(t.Context(), domain.GPUPoolDocument{Spec: domain.GPUPool{Cluster: "files", Name: "a40"}})
	must(t, err)
	_, err = e.PutPolicy(t.Context(), domain.AutoscalingPolicyDocument{Spec: domain.AutoscalingPolicy{Cluster: "files", Group: "job", Role: "worker"}})
	must(t, err)
	leave(t, e, configObject(domain.MemberSpec{Cluster: "files", Group: "job"}, "hosts", "a\n"))
	must(t, e.removeFiles(t.Context()))
	wantObjects(t, e, "cluster 1", "group job 1", "gpu-pool 1", "policy 1")
}
