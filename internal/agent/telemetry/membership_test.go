package telemetry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
)

func TestMemberships(t *testing.T) {
	proc := t.TempDir()
	for pid, environ := range map[string][]string{
		"7":  {"TRAINYARD_CLUSTER=lab", "TRAINYARD_GROUP=mnist", "TRAINYARD_ROLE=worker", "TRAINYARD_MEMBER=mnist-worker-0", "TRAINYARD_MEMBERS=2"},
		"8":  {"TRAINYARD_MEMBER=of-a-child"},
		"9":  {"TRAINYARD_CLUSTER=lab", "TRAINYARD_GROUP=farm", "TRAINYARD_ROLE=worker"},
		"10": {"PATH=/bin"},
		"11": {"TRAINYARD_MEMBER=another"},
	} {
		mkdir(t, filepath.Join(proc, pid))
		if err := os.WriteFile(filepath.Join(proc, pid, "environ"), []byte(strings.Join(environ, "\x00")+"\x00"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mkdir(t, filepath.Join(proc, "12")) // whose environment can't be read
	worker := Membership{Cluster: "lab", Group: "mnist", Role: "worker", Member: "mnist-worker-0"}
	farm := Membership{Cluster: "lab", Group: "farm", Role: "worker"}
	before := map[string]Membership{"known": worker, "of nothing yet": {}, "ended": farm}
	instances := map[string][]proctree.Process{
		"a member": {{PID: 8, StartTime: 2}, {PID: 7, StartTime: 1}}, "of a pool": {{PID: 9}}, "of nothing": {{PID: 10}},
		"known": {{PID: 11}}, "of nothing yet": {{PID: 9}}, "unreadable": {{PID: 12}}, "gone": {{PID: 13}}, "empty": nil,
	}
	want := map[string]Membership{
		"a member": worker, "of a pool": farm, "of nothing": {}, "known": worker, "of nothing yet": farm, "unreadable": {}, "gone": {}, "empty": {},
	}
	if diff := cmp.Diff(want, memberships(proc, instances, before)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := memberships(filepath.Join(proc, "nowhere"), instances, before); len(got) != 0 {
		t.Errorf("without a process table: %v", got)
	}
}
