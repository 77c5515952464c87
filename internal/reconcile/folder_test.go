package reconcile_test

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// TestFolderOf: a member in a container only has its mounted folders on the host; a plain program also
// has a folder of its own.
func TestFolderOf(t *testing.T) {
	spec := group(1, 1, func(g *domain.Group) {
		r := g.Roles["worker"]
		r.Image = "trainer:1"
		r.Mounts = []domain.Mount{
			{Source: "/mnt/nas", Target: "/data"}, {Type: domain.MountVolume, Source: "cache", Target: "/cache"},
		}
		g.Roles["worker"] = r
	})
	f := newFake()
	f.traits.Supports = engine.Features{Images: true}
	f.traits.WorkDir = func(member string) string { return "/own/" + member }
	r := reconcile.Reconciler{Engine: f}
	must(t, r.Update(within(t), spec))
	for _, test := range []struct{ member, at, path, says string }{
		{"mnist-ps-0", "", "/own/mnist-ps-0", ""},
		{"mnist-ps-0", "out", "/own/mnist-ps-0/out", ""},
		{"mnist-ps-0", "/var/log", "/var/log", ""},
		{"mnist-worker-0", "/data/lr", "/mnt/nas/lr", ""},
		{
			"mnist-worker-0", "out", "",
			`member "mnist-worker-0" runs in a container and has no folder of its own on engine "fake"`,
		},
		{
			"mnist-worker-0", "/var/log", "",
			`"/var/log" is not a folder of its host: name a folder in a mount of type "bind"`,
		},
		{"mnist-worker-0", "/cache/a", "", `"/cache/a" is not a folder of its host`},
	} {
		folder, err := r.FolderOf(t.Context(), test.member, test.at)
		switch {
		case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
			t.Errorf("%s of %s: got %v, want what says %q", test.at, test.member, err, test.says)
		case test.says == "" && (err != nil || folder.OnHost() != test.path || folder.Host == ""):
			t.Errorf("%s of %s is %+v, %v, want %s", test.at, test.member, folder, err, test.path)
		}
	}
}
