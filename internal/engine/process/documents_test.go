package process_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stored returns an engine with the document of a cluster, and its state directory.
func stored(t *testing.T) (opened, statedir.Dir) {
	t.Helper()
	e := open(t)
	_, err := e.PutCluster(t.Context(), domain.ClusterDocument{Spec: domain.Cluster{Name: "lab", Engine: "process"}})
	must(t, err)
	return e, statedir.Dir{Root: e.dir, Cluster: "lab"}
}

var workers = domain.AutoscalingPolicyDocument{Spec: domain.AutoscalingPolicy{Cluster: "lab", Group: "job", Role: "worker", Max: 4}}

// TestCorruptPoliciesAndRecords: what can't be read is an error, is not written over, and does not hide what can.
func TestCorruptPoliciesAndRecords(t *testing.T) {
	e, files := stored(t)
	_, err := e.PutPolicy(t.Context(), workers)
	must(t, err)
	_, err = e.PutRecord(t.Context(), engine.Record{Name: "state", Data: []byte("a")})
	must(t, err)
	for name, c := range map[string]struct {
		file   string
		read   func() error
		change func() error
	}{
		"policy": {
			files.Document(statedir.Policies, "job.worker"),
			func() error { _, err := e.Policies(t.Context()); return err },
			func() error { _, err := e.PutPolicy(t.Context(), workers); return err },
		},
		"record": {
			files.Document(statedir.Records, "state"),
			func() error { _, err := e.Records(t.Context(), "st"); return err },
			func() error {
				_, err := e.PutRecord(t.Context(), engine.Record{Name: "state", Data: []byte("b")})
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, c.read())
			for content, reason := range map[string]string{`{"version":`: "unexpected end", `{"version":99,"revision":1}`: "it has version 99"} {
				must(t, os.WriteFile(c.file, []byte(content), 0o600))
				for what, do := range map[string]func() error{"read": c.read, "change": c.change} {
					err := do()
					if _, corrupt := errors.AsType[*engine.CorruptError](err); !corrupt || !strings.Contains(err.Error(), c.file) || !strings.Contains(err.Error(), reason) {
						t.Errorf("%s of %s: %v", what, content, err)
					}
				}
			}
		})
	}
	if records, err := e.Records(t.Context(), "history"); err != nil || len(records) != 0 {
		t.Errorf("other records than a corrupt one are %v (%v)", records, err)
	}
}

// TestOlderStateDirectory: what an earlier version made lacks folders.
func TestOlderStateDirectory(t *testing.T) {
	e, files := stored(t)
	for _, folder := range []string{statedir.GPUPools, statedir.Policies, statedir.Records} {
		must(t, os.Remove(files.Path(folder)))
	}
	policies, policiesErr := e.Policies(t.Context())
	records, recordsErr := e.Records(t.Context(), "")
	if err := errors.Join(policiesErr, recordsErr); err != nil || len(policies) != 0 || len(records) != 0 {
		t.Errorf("there are policies %v and records %v (%v)", policies, records, err)
	}
	must(t, e.DeletePolicy(t.Context(), workers.Spec.Key()))
	must(t, e.DeleteRecord(t.Context(), "state"))
	_, err := e.PutRecord(t.Context(), engine.Record{Name: "state", Data: []byte("a")})
	must(t, err)

	events, err := e.Watch(t.Context())
	must(t, err)
	_, err = e.PutPolicy(t.Context(), workers)
	must(t, err)
	select {
	case _, open := <-events:
		if !open {
			t.Error("the stream of events ended")
		}
	case <-time.After(patience.Limit):
		t.Error("nothing told of a policy")
	}
}

// TestWatchOfNoCluster: to watch makes no cluster.
func TestWatchOfNoCluster(t *testing.T) {
	e := open(t)
	if _, err := e.Watch(t.Context()); err == nil {
		t.Error("a cluster that is not there is watched")
	}
	if _, err := os.Stat(statedir.Dir{Root: e.dir, Cluster: "lab"}.Path()); !os.IsNotExist(err) {
		t.Errorf("its folder: %v", err)
	}
}
