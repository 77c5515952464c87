//go:build linux

package process_test

import (
	"fmt"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// BenchmarkApplyAndDestroy creates one group until all its members run, and destroys it.
func BenchmarkApplyAndDestroy(b *testing.B) {
	for _, members := range []int{6, 50, 200} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			e, err := process.Open(domain.ClusterRef{Name: "lab"}, engine.Settings{StateDir: b.TempDir()},
				process.Program{File: acctest.Build(b, acctest.Provider), Version: "dev"})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { acctest.EndCluster(b, e) })
			ctx := b.Context()
			spec, _, err := e.Complete(ctx, domain.Cluster{Name: "lab", Engine: process.Name})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := engine.Put(ctx, e, domain.ClusterDocument{Spec: spec}); err != nil {
				b.Fatal(err)
			}
			r := reconcile.Reconciler{Engine: e}
			job := domain.Group{
				Cluster: "lab", Name: "job", Framework: "none", RestartScope: domain.ScopeMember,
				WaitFor:  domain.WaitRunning,
				Template: domain.Template{Command: []string{"/bin/sleep", "1000"}},
				Roles:    map[string]domain.Role{"worker": {Replicas: &members}},
			}
			for b.Loop() {
				if err := r.Update(ctx, job); err != nil {
					b.Fatal(err)
				}
				if err := r.Destroy(ctx, "job"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
