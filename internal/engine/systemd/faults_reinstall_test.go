//go:build linux

package systemd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// reinstalled installs a host's system anew, with the same keys for SSH.
var reinstalled = fault{"reinstallation", func(f faulty, h *testbed.Host) error {
	// The controller must not come back before the end.
	_, err := h.Run(f.bounded(), fmt.Sprintf(`
		sed -i '/ trainyard cluster /d' /root/.ssh/authorized_keys /home/*/.ssh/authorized_keys
		pkill -KILL -f ' [r]elay$'; systemctl stop 'trainyard@*'; systemctl stop 'trainyard-*'
		rm -rf %s %s %[3]s/*trainyard@* %[3]s/*/*trainyard@*; systemctl daemon-reload; true`,
		layout.Home, startsFile, layout.Units))
	return err
}}

// TestHostReinstalled: a host that was reinstalled is set up again by an apply of the cluster, and its members by those
// of their groups. Until then, nothing is taken for deleted. If it was the store host, another one has to be promoted
// before.
func TestHostReinstalled(t *testing.T) {
	f := newFaulty(t)
	g := f.group("job", everyHost, "wait")
	f.update(g)
	f.running("job", 3)

	f.suffers(2, reinstalled)
	f.Engine = f.open(0, f.provider)
	members := f.observed(f.Engine, "job")
	if o := members["job-on3-0"]; len(members) != 3 || o.HostTrouble == "" {
		t.Errorf("the members are %v", members)
	}
	err := reconcile.Reconciler{Engine: f.Engine}.Update(f.bounded(), g)
	if err == nil || !strings.Contains(err.Error(), "host host3: nothing of the cluster is left there") {
		t.Errorf("an apply of a group on it: %v", err)
	}
	f.form(f.spec)
	f.update(g)
	f.startedOnce(g)

	f.suffers(0, reinstalled)
	second := f.open(1, f.provider)
	f.readable(second, "host1", 1)
	for what, err := range map[string]error{
		"an apply of the cluster":  formed(f.bounded(), second, f.spec),
		"a destroy of the group":   reconcile.Reconciler{Engine: second}.Destroy(f.bounded(), "job"),
		"a destroy of the cluster": second.Dissolve(f.bounded()),
	} {
		if err == nil || !strings.Contains(err.Error(), "terraform-provider-trainyard promote ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	f.runs(f.refused(second), "promote")
	f.Engine = f.open(1, f.provider)
	f.form(f.spec)
	f.update(g)
	f.startedOnce(g)
	if store := f.ledger(2).Store; store != "host1" {
		t.Errorf("the store is on %s", store)
	}
	if o := f.observed(f.Engine, "job")["job-on1-0"]; o.State != domain.StateRunning {
		t.Errorf("%+v", o)
	}
	f.finish()
}
