package sweep

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// site returns a site where members are reached at their hosts' addresses.
func site() Site {
	return Site{
		Address:  func(_, host string) string { return host + ".lab" },
		FilesDir: func(member, _ string) string { return "/files/" + member },
	}
}

func TestSpec(t *testing.T) {
	s := onGPUs(sweepOf("lr", 2), 1199)
	s.Command = []string{"train", "--lr={{ .Env.LR }}", "{{ .Env.OUT }}", "{{ .Name }}"}
	s.Env = map[string]string{"OUT": "/results", "LR": "never"}
	s.Runs["r1"]["OUT"] = "/other"
	s.Resources, s.GracePeriod = domain.ResourceRequirements{CPUs: 1, MemoryMiB: 2300}, seconds(7)
	doc := documentOf(s)
	doc.Revision = 4
	run := Start(doc, s.Run("r1"), domain.Run{}, domain.Assignment{Host: "gpu1", Port: 20003, GPUs: "GPU-a"}, 9, noon)
	again := Start(doc, s.Run("r1"),
		Ended(s, run, domain.Observed{State: domain.StateFailed, ExitCode: new(1)}, nil, 0, noon), *run.Assignment, 10,
		noon)

	spec, err := Spec(s, "r1", again, site())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"TRAINYARD_RUN": "r1", "TRAINYARD_ATTEMPT": "2", "LR": "1", "OUT": "/other", "TRAINYARD_GROUP": "lr",
		"TRAINYARD_MEMBER":  "lr-r1-0",
		"TRAINYARD_ADDRESS": "gpu1.lab:20003", "TRAINYARD_GPU_MEMORY_MIB": "1199", "NVIDIA_VISIBLE_DEVICES": "GPU-a",
		"CUDA_VISIBLE_DEVICES": "GPU-a",
	} {
		if got := spec.Env[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if diff := cmp.Diff([]string{"train", "--lr=1", "/other", "lr-r1-0"}, spec.Command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	if spec.Restart.Condition != domain.RestartByGroup {
		t.Errorf("the engine restarts it: %+v", spec.Restart)
	}
	if spec.Name != "lr-r1-0" || spec.Group != "lr" || spec.Role != "r1" || spec.Host != "gpu1" || spec.Run != 10 ||
		spec.Scheduling != domain.SchedulingPinned {
		t.Errorf("it is %+v", spec)
	}
	if spec.Resources.CPUs != 1 || spec.Resources.Limits.MemoryMiB != 2300 || spec.GracePeriod != *s.GracePeriod {
		t.Errorf("it has %+v, and %s to end", spec.Resources, spec.GracePeriod)
	}
	first, err := Spec(s, "r1", run, site())
	if err != nil || first.Env["TRAINYARD_ATTEMPT"] != "1" || first.Hash != spec.Hash {
		t.Errorf("the first attempt is %v, %v: another program than the second one", first, err)
	}
	if spec, err := Spec(s, "r0", domain.Run{}, site()); err == nil {
		t.Errorf("one without a place is %+v", spec)
	}
	delete(s.Env, "OUT")
	if spec, err := Spec(s, "r0", run, site()); err == nil {
		t.Errorf("one without a variable of its command is %+v", spec)
	}
}

func TestOccupancy(t *testing.T) {
	s := onGPUs(sweepOf("lr", 5), 1199)
	narrow := running("gpu1 GPU-a", noon)
	narrow.Needs = &domain.RunNeeds{
		Resources: domain.ResourceRequirements{CPUs: 4}, GPUs: &domain.GPURequest{Pool: "q"},
	}
	doc := Occupancy(s, map[string]domain.Run{
		"r0": running("gpu1 GPU-a", noon), "r1": narrow, "r2": endedRun(domain.RunSucceeded, "gpu1 GPU-a", noon),
		"r3":   {State: domain.RunQueued},
		"gone": running("gpu2 GPU-b", noon),
	})
	want := map[string]domain.Assignment{
		"lr-r0-0": {Host: "gpu1", GPUs: "GPU-a"}, "lr-r1-0": {Host: "gpu1", GPUs: "GPU-a"},
		"lr-gone-0": {Host: "gpu2", GPUs: "GPU-b"},
	}
	if diff := cmp.Diff(want, doc.Assignments); diff != "" {
		t.Errorf("assignments (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"r0": 1, "r1": 1, "gone": 1}, doc.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	for key, want := range map[string]domain.RunNeeds{
		"r0": {GPUs: s.GPUs}, "gone": {GPUs: s.GPUs}, "r1": *narrow.Needs,
	} {
		role := doc.Spec.Roles[key]
		if diff := cmp.Diff(want, domain.RunNeeds{Resources: role.Resources, GPUs: role.GPUs}); diff != "" {
			t.Errorf("%s takes up (-want +got):\n%s", key, diff)
		}
	}
}
