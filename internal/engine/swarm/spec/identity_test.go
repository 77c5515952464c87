package spec

import (
	"strconv"
	"testing"

	"github.com/docker/docker/api/types/swarm"
)

func TestServiceNames(t *testing.T) {
	pool := richPool()
	if got := ServiceName(pool); got != "mnist-worker" {
		t.Errorf("the service of a role is called %q", got)
	}
	if got := ServiceName(rich()); got != "mnist-worker-3" {
		t.Errorf("the service of a member is called %q", got)
	}
}

func TestIdentity(t *testing.T) {
	service, _ := rendered(t, rich())
	want := Identity{Cluster: "lab", Group: "mnist", Role: "worker", Index: 3, Hash: "c0ffee", Run: 7}
	if got := IdentityOf(service); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	service.Spec.TaskTemplate.ContainerSpec.Labels = nil
	if got := IdentityOf(service); got != want {
		t.Errorf("without the containers' labels: got %+v, want %+v", got, want)
	}
	pool, _ := rendered(t, richPool())
	want.Pooled, want.Index = true, 0
	if got := IdentityOf(pool); got != want {
		t.Errorf("pooled: got %+v, want %+v", got, want)
	}
	task := swarm.Task{Spec: pool.Spec.TaskTemplate}
	if got, found := IdentityOfTask(task); !found || got != want {
		t.Errorf("task: got %+v, %v, want %+v", got, found, want)
	}
	for _, foreign := range []swarm.Task{
		{}, {Spec: swarm.TaskSpec{ContainerSpec: &swarm.ContainerSpec{Labels: map[string]string{LabelCluster: "lab"}}}},
	} {
		if got, found := IdentityOfTask(foreign); found {
			t.Errorf("a task of no member is taken for %+v", got)
		}
	}
	if BelongsTo(swarm.Service{}, "lab") {
		t.Error("a service without labels is taken for ours")
	}
}

// FuzzIdentity: an identity survives the round trip through labels. A label that isn't a number is ignored.
func FuzzIdentity(f *testing.F) {
	for _, number := range []string{"0", "7", "-1", "+1", "007", "", "x", "99999999999999999999"} {
		f.Add("lab", "job", "worker", "c0ffee", number, number)
	}
	f.Fuzz(func(t *testing.T, cluster, group, role, hash, index, run string) {
		labels := map[string]string{
			LabelCluster: cluster, LabelGroup: group, LabelRole: role, LabelHash: hash, LabelRun: run,
			LabelIndex: index,
		}
		id := identityIn(labels)
		if again := identityIn(id.Labels()); again != id {
			t.Errorf("%+v is read as %+v", id, again)
		}
		for text, got := range map[string]int{index: id.Index, run: id.Run} {
			if number, err := strconv.Atoi(text); (err != nil || number < 0) && got != 0 {
				t.Errorf("%q is read as %d", text, got)
			}
		}
	})
}
