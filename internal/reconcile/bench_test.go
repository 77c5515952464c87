package reconcile_test

import (
	"fmt"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// BenchmarkPlan measures a plan without changes: a group is read and decided on again.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			spec := group(2, n-2)
			f := running(b, spec)
			r := reconcile.Reconciler{Engine: f}
			b.ReportAllocs()
			for b.Loop() {
				plan(b, r, f.hosts(), spec)
			}
		})
	}
}

// running returns an engine on which all members of a group run.
func running(b *testing.B, spec domain.Group) *fake {
	b.Helper()
	f := newFake()
	r := reconcile.Reconciler{Engine: f}
	cluster := domain.Cluster{Name: "lab", Hosts: f.hosts()}
	view, err := r.View(b.Context(), cluster, spec)
	if err != nil {
		b.Fatal(err)
	}
	d, problems := reconcile.Decide(view, spec)
	if problems.Err() != nil {
		b.Fatal(problems)
	}
	d.Document.Revision = 1
	set(f, d.Document)
	for i, m := range d.Members {
		f.members[m.Name] = &actor{observed: domain.Observed{
			Name: m.Name, Group: spec.Name, Role: m.Role, Index: m.Index, Host: m.Host, Address: m.Address,
			Hash: d.Layout.Hash(i), Run: 1, State: domain.StateRunning,
		}}
	}
	return f
}

// plan does what refresh and plan of a group do, and fails on any change.
func plan(b *testing.B, r reconcile.Reconciler, hosts map[string]domain.Host, spec domain.Group) {
	b.Helper()
	ctx := b.Context()
	read, err := r.Refresh(ctx, spec.Name)
	if err != nil {
		b.Fatal(err)
	}
	if found := read.Found(); !found.Spec.Equal(spec) || len(found.Members) != len(read.Members) {
		b.Fatalf("found are %d members of %+v", len(found.Members), found.Spec)
	}
	view, err := r.View(ctx, domain.Cluster{Name: "lab", Hosts: hosts}, spec)
	if err != nil {
		b.Fatal(err)
	}
	before := reconcile.Current(view.Traits, view.Inventory.Hosts, view.Groups[spec.Name])
	d, problems, err := r.Decide(ctx, view, spec)
	if err != nil || problems.Err() != nil {
		b.Fatal(problems, err)
	}
	kept := d.Kept(before)
	if _, err := r.Preflight(ctx, d, kept); err != nil {
		b.Fatal(err)
	}
	for _, m := range d.Members {
		if !kept[m.Name] {
			b.Fatalf("%s is not kept", m.Name)
		}
	}
}
