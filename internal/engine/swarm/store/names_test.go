package store

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/swarm"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/spec"
)

// longestName is the Swarm's maximum length of a config object's name.
const longestName = 64

// TestItemName: the prefix of an object's name alone shows whether plans read the item and whether it is watched.
func TestItemName(t *testing.T) {
	long := strings.Repeat("a", domain.MaxNameLength)
	prefixes := map[string]domain.Kind{
		"trainyard.":            {Planned: true, Watched: true},
		"trainyard-quiet.":      {Planned: true},
		"trainyard-kept.":       {Watched: true},
		"trainyard-kept-quiet.": {},
	}
	planned := spec.PlannedPrefixes()
	for prefix, kind := range prefixes {
		if slices.Contains(planned, prefix) != kind.Planned {
			t.Errorf("plans list what begins with %q", planned)
		}
		for _, cluster := range []string{
			"lab", "lock", "kept-quiet", "lab-quiet", long[:29], long[:30], long[:31], long,
		} {
			for _, kind.Name = range []string{"note", "lock-note", "a-quiet", long} {
				for _, item := range []string{"7", "worker-quiet", "job/worker", long, long + "/" + long} {
					key := engine.Key{Kind: kind, Name: item}
					name := storeOf(cluster).Annotations(key, 12).Name
					if !strings.HasPrefix(name, prefix+cluster[:3]) || len(name) > longestName ||
						name == storeOf(cluster).Annotations(key, 13).Name {
						t.Errorf("the object is named %q", name)
					}
					if spec.IsQuiet(name) == kind.Watched {
						t.Errorf("it is quiet that %q changes: %t", name, !kind.Watched)
					}
					for other := range prefixes {
						if other != prefix && strings.HasPrefix(name, other) {
							t.Errorf("what begins with %q is looked for, and %q is found", other, name)
						}
					}
				}
			}
		}
	}
	for name, quiet := range map[string]bool{
		spec.LockName("lab", "group mnist"): true, spec.LockName(long, "group mnist"): true,
		spec.ObjectName("lab", spec.KindFile, "mnist", "a-quiet"): false, "": false, "theirs-quiet.1": false,
		"theirs": false,
	} {
		if spec.IsQuiet(name) != quiet {
			t.Errorf("it is quiet that %q changes: %t", name, !quiet)
		}
	}
}

// storeOf returns the store of a cluster with these config objects, which supports only the reads of a plan.
func storeOf(cluster string, configs ...swarm.Config) Items {
	return NewItems(dockerapi.Swarm{Cluster: cluster, Reads: dockerapi.Reads{
		Configs: func(context.Context) ([]swarm.Config, error) { return configs, nil },
	}})
}
