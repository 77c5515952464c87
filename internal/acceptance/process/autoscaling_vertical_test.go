//go:build linux

package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/limits"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// verticalLab is a lab whose workers hold memory, with a policy that recommends their requests.
type verticalLab struct {
	*followLab
	load *acceptance.Load
}

func newVerticalLab(t *testing.T) verticalLab {
	t.Helper()
	return verticalLab{newFollowLab(t), acceptance.NewLoad(t)}
}

// holding is the group "job" of workers that hold the load, with these attributes.
func (l verticalLab) holding(attributes string) string {
	return group("job", fmt.Sprintf("command = [local.member, %q]\n  roles = { worker = { on_scale = \"none\"\n %s } }",
		"hold:"+l.load.File, attributes))
}

// recommended waits until the history has an entry that recommends memory in this range, and returns that
// recommendation.
func (l verticalLab) recommended(what string, least, most float64) autoscale.EntryVertical {
	l.Helper()
	var found autoscale.EntryVertical
	l.awaitHistory(what, func(e autoscale.Entry) bool {
		for _, v := range e.Vertical {
			if v.Name == autoscale.ResourceMemoryMiB && v.Target != nil && *v.Target >= least && *v.Target <= most {
				found = v
				return true
			}
		}
		return false
	})
	return found
}

// A policy with only vertical leaves the count alone, and recommends what members use, with a margin and within its
// bounds, even after a change of controller. The recommendation is in the history and explained, and does not change
// plans.
func TestAccVerticalRecommend(t *testing.T) {
	l := newVerticalLab(t)
	l.load.Set(200)
	vertical := func(most int) string {
		return follows(fmt.Sprintf(
			"min = 1\n  max = 3\n  vertical = { cpus = { min = 0.25, max = 4 }, memory_mib = { min = 16, max = %d } }",
			most,
		))
	}
	l.apply(theCluster, l.holding("resources = { memory_mib = 1000 }"), vertical(4000))
	// A member uses a few MiB in addition to what it holds.
	first := l.recommended("what members hold", 200*1.15, 300*1.15)
	if *first.Requested != 1000 || *first.Lower > *first.Target || *first.Upper < *first.Target ||
		!strings.Contains(first.Why, "% of the days, the largest member uses at most ") {
		t.Errorf("the recommendation is %+v", first)
	}
	l.load.Set(0)
	l.must(l.engine().StopController(t.Context()))
	l.apply(theCluster, l.holding("resources = { memory_mib = 1000 }"), vertical(220))
	bounded := l.recommended("a bound, by the peak that the controller before had seen", 220, 220)
	if !strings.Contains(bounded.Why, "which is above max (220)") {
		t.Errorf("the recommendation is %+v", bounded)
	}
	output, err := exec.CommandContext(t.Context(), l.program().File, "autoscale", "explain", "job/worker",
		"--endpoint", l.workspace.StateDir).CombinedOutput()
	l.must(err)
	for _, want := range []string{
		"vertical cpus        –", "vertical memory_mib  1000", "recommends 220 (220 to 220)", "stays 1",
	} {
		if !strings.Contains(string(output), want) {
			t.Errorf("explain does not say %q:\n%s", want, output)
		}
	}
	l.expectCounts(1)
	l.workspace.ExpectNoChange("after all of it")
}

// limit returns a running member's memory limit in MiB according to the kernel; 0 while it doesn't run.
func (l verticalLab) limit(member string) int64 {
	l.Helper()
	state := l.state(member)
	group, err := limits.Open(member + "-" + state.Instance)
	if err != nil {
		return 0 // it has just ended
	}
	for _, file := range group.JoinFiles() {
		for _, name := range []string{"memory.limit_in_bytes", "memory.max"} {
			text, err := os.ReadFile(filepath.Join(filepath.Dir(file), name))
			if bytes, failed := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && failed == nil {
				return bytes >> 20
			}
		}
	}
	return 0
}

// next returns the memory limit in MiB of a member's next start.
func (l verticalLab) next(member string) int64 {
	l.Helper()
	spec, err := statedir.Read[domain.MemberSpec](l.files.Document(statedir.Specs, member))
	l.must(err)
	return spec.Resources.Limits.MemoryMiB
}

// awaitLimit waits until a member runs with a memory limit in this range, and returns the limit.
func (l verticalLab) awaitLimit(member string, least, most int64) (found int64) {
	l.Helper()
	acctest.Eventually(l, fmt.Sprintf("%s to be allowed %d to %d MiB", member, least, most), func() bool {
		found = l.limit(member)
		return l.state(member).State == domain.StateRunning && found >= least && found <= most
	})
	return found
}

// awaitNext waits until the memory limit of the first member's next start is in this range.
func (l verticalLab) awaitNext(least, most int64) {
	l.Helper()
	acctest.Eventually(l, fmt.Sprintf("the first member to be allowed %d to %d MiB next", least, most), func() bool {
		next := l.next("job-worker-0")
		return next >= least && next <= most
	})
}

// Members that start request what is recommended: those that the engine restarts by itself, and those that are added.
// This restarts no member, does not change plans, survives other changes of the group, yields to a newly declared
// value, and ends with the policy.
func TestAccVerticalAtStart(t *testing.T) {
	if ok, why := limits.Available(); !ok {
		t.Skip("no limits: " + why)
	}
	l := newVerticalLab(t)
	l.load.Set(200)
	policy := func(count int, attributes string) string {
		return follows(fmt.Sprintf(
			"min = %d\n  max = 3\n  vertical = { memory_mib = { min = 16, max = 4000 }, apply = \"restart\"\n %s }",
			count, attributes,
		))
	}
	const declared = "resources = { memory_mib = 1000 }"
	l.apply(theCluster, l.holding(declared), policy(1, `learn_for = "3s"`))
	l.awaitNext(230, 345)
	l.workspace.ExpectNoChange("with another size")
	if limit, restarts := l.limit("job-worker-0"), l.state("job-worker-0").Restarts; limit != 1000 || restarts != 0 {
		t.Errorf("the member that runs is allowed %d MiB, and was restarted %d times", limit, restarts)
	}
	l.kill("job-worker-0")
	sized := l.awaitLimit("job-worker-0", 230, 345)
	l.awaitHistory("the size", func(e autoscale.Entry) bool {
		return strings.Contains(e.Resized, "members started from now on request ")
	})

	l.apply(theCluster, l.holding(declared), policy(2, `learn_for = "3s"`))
	l.awaitWorkers(2)
	l.awaitLimit("job-worker-1", sized, sized)
	before := l.state("job-worker-0").Instance
	// From here on the policy leaves the size alone. Otherwise it could change it between the changes of one apply,
	// with what it has learned before.
	l.apply(theCluster, l.holding(declared+"\n env = { CHANGED = \"1\" }"), policy(2, `learn_for = "720h"`))
	if l.state("job-worker-0").Instance == before || l.awaitLimit("job-worker-0", sized, sized) != sized {
		t.Error("a change of the group does not start members with their size")
	}
	// Members start with a newly declared value, and then the policy continues.
	l.apply(theCluster, l.holding("resources = { memory_mib = 900 }"), policy(2, `learn_for = "720h"`))
	l.awaitLimit("job-worker-0", 900, 900)
	if sizes := l.read().Document.Sizes; len(sizes) > 0 {
		t.Errorf("the sizes are %+v", sizes)
	}
	l.apply(theCluster, l.holding("resources = { memory_mib = 900 }"), policy(2, `learn_for = "3s"`))
	l.awaitNext(230, 345)
	l.apply(theCluster, l.holding("resources = { memory_mib = 900 }"))
	l.awaitNext(900, 900)
	if doc := l.read().Document; len(doc.Sizes) > 0 || doc.Spec.Roles["worker"].Resources.MemoryMiB != 900 {
		t.Errorf("without a policy, the sizes are %+v, and %+v is declared", doc.Sizes,
			doc.Spec.Roles["worker"].Resources)
	}
}

// A member that runs out of memory restarts with more, however little was learned.
func TestAccVerticalOutOfMemory(t *testing.T) {
	if ok, why := limits.Available(); !ok {
		t.Skip("no limits: " + why)
	}
	l := newVerticalLab(t)
	l.apply(theCluster, l.holding(`resources = { memory_mib = 100 }
 restart = { max_attempts = 0, delay = "3s" }`), follows(
		"min = 1\n  max = 1\n  vertical = { memory_mib = { min = 16, max = 4000 }, apply = \"restart\" }",
	))
	l.load.Set(150)
	l.await("a member with more memory", func(group reconcile.Group) bool {
		o := group.Observed[0]
		return o.OutOfMemory != nil && o.State == domain.StateRunning && l.limit(o.Name) >= 230
	})
	l.workspace.ExpectNoChange("with another size")
	l.load.Set(0)
}

// Running members get more memory, and other CPU limits, at once without a restart; less memory takes effect at their
// next start.
func TestAccVerticalInPlace(t *testing.T) {
	if ok, why := limits.Available(); !ok {
		t.Skip("no limits: " + why)
	}
	l := newVerticalLab(t)
	l.load.Set(230)
	vertical := func(most int) string {
		return follows(fmt.Sprintf(
			"min = 1\n  max = 1\n  vertical = { memory_mib = { min = 300, max = %d }, margin_percent = 100, learn_for = \"3s\", apply = \"in_place\" }",
			most,
		))
	}
	l.apply(theCluster, l.holding("resources = { memory_mib = 300 }"), vertical(4000))
	first := l.state("job-worker-0").Instance
	more := l.awaitLimit("job-worker-0", 460, 700)
	l.apply(theCluster, l.holding("resources = { memory_mib = 300 }"), vertical(400))
	l.awaitNext(400, 400)
	if state := l.state("job-worker-0"); state.Instance != first || state.Restarts != 0 ||
		l.limit("job-worker-0") != more {
		t.Errorf("it is allowed %d MiB, and was restarted %d times", l.limit("job-worker-0"), state.Restarts)
	}
	l.kill("job-worker-0")
	l.awaitLimit("job-worker-0", 400, 400)
	l.workspace.ExpectNoChange("after all of it")
}
