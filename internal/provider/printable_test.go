package provider

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/providertest"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// Text from members, agents and hosts is safe to print in the diagnostics of every call.
func TestDiagnosticsArePrintable(t *testing.T) {
	planGroupOf := func(r role) func(tf terraform) []*tfprotov6.Diagnostic {
		return func(tf terraform) []*tfprotov6.Diagnostic {
			_, diagnostics := tf.plan("trainyard_group", tf.group("new", r), nil)
			return diagnostics
		}
	}
	planGroup := planGroupOf(role{replicas: 1, port: 9000})
	applyCluster := func(tf terraform) []*tfprotov6.Diagnostic {
		config := tf.config("trainyard_cluster", map[string]tftypes.Value{"name": providertest.Text("lab")})
		planned, diagnostics := tf.plan("trainyard_cluster", config, nil)
		fatalOn(t, nil, diagnostics)
		_, diagnostics = tf.applyCluster(config, nil, planned)
		return diagnostics
	}
	ways := map[string]struct {
		stub func(text string) *providertest.Stub
		call func(tf terraform) []*tfprotov6.Diagnostic
	}{
		"an engine's error": {func(s string) *providertest.Stub {
			return &providertest.Stub{Fails: providertest.Failures{"Get cluster": errors.New(s)}}
		}, planGroup},
		"a failed member's log": {func(s string) *providertest.Stub {
			return &providertest.Stub{Fails: providertest.Failures{"Get cluster": &reconcile.MemberError{
				Member: domain.Observed{Name: "a-w-0"}, Cause: s, Log: []string{s, s},
			}}}
		}, planGroup},
		"who holds a lock": {func(s string) *providertest.Stub {
			return &providertest.Stub{Fails: providertest.Failures{
				"Get cluster": &engine.LockedError{Lock: "group a", Holder: engine.Holder{Who: s}},
			}}
		}, planGroup},
		"a problem of a host": {func(s string) *providertest.Stub {
			return providertest.Set(&providertest.Stub{
				Problems: domain.Problems{{Path: domain.Path{"roles", domain.Key(s)}, Summary: s, Detail: s}},
			}, providertest.LabOf("local"))
		}, planGroup},
		"a warning": {func(s string) *providertest.Stub {
			return providertest.Set(&providertest.Stub{
				Problems: domain.Problems{{Summary: s, Detail: s, Warning: true}},
			}, providertest.LabOf("local"))
		}, planGroup},
		"a host's name": {func(s string) *providertest.Stub {
			return providertest.Set(&providertest.Stub{}, providertest.LabOf(s))
		}, planGroupOf(role{replicas: 1, port: 9000, cpus: 64})},
		"why an agent fails": {func(s string) *providertest.Stub {
			return providertest.Set(&providertest.Stub{
				Running: domain.Residents{
					Controller: domain.Resident{State: domain.ResidentFailing, Host: s, Error: s},
				},
			}, providertest.LabOf("local"))
		}, planGroup},
		"an error of an apply": {func(s string) *providertest.Stub {
			return &providertest.Stub{Fails: providertest.Failures{"Put cluster": errors.New(s)}}
		}, applyCluster},
	}
	rapid.Check(t, func(r *rapid.T) {
		way := ways[rapid.SampledFrom(slices.Sorted(maps.Keys(ways))).Draw(r, "way")]
		mentioned := false
		for _, d := range way.call(newTerraform(t, way.stub(acctest.Hostile().Draw(r, "text")))) {
			mentioned = mentioned || strings.Contains(d.Summary+d.Detail, acctest.HostileMark)
			for _, text := range []string{d.Summary, d.Detail} {
				if text != printable.Text(text) {
					r.Errorf("%q can't be printed", text)
				}
			}
		}
		if !mentioned {
			r.Errorf("no diagnostic mentions it")
		}
	})
}
