package topology

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// gpuGroup returns a group with a parameter server, and workers with GPUs of a pool.
func gpuGroup(request *domain.GPURequest) domain.Group {
	return domain.Group{
		Cluster: "lab", Name: "mnist", Framework: "tensorflow", RestartScope: domain.ScopeMember,
		WaitFor:  domain.WaitRunning,
		Template: domain.Template{Command: []string{"train"}},
		Roles:    map[string]domain.Role{"ps": {}, "worker": {GPUs: request}},
	}
}

// laidOut returns the layout of a group whose workers have these devices.
func laidOut(g domain.Group, gpus domain.DeviceSet) *Layout {
	members := Expand(g, Counts(g, nil), nil)
	for i := range members {
		at := domain.Assignment{Host: "gpu1", Port: 9000 + i}
		if members[i].Role == "worker" {
			at.GPUs = gpus
		}
		members[i].Place(domain.SchedulingPinned, at, "10.0.0.1")
	}
	return NewLayout(g, members, nil)
}

func TestGPUEnvironment(t *testing.T) {
	const two = "GPU-4f,GPU-5a"
	for name, test := range map[string]struct {
		request    *domain.GPURequest
		gpus       domain.DeviceSet
		ps, worker map[string]string
	}{
		"no GPUs in the group": {
			ps:     map[string]string{"CUDA_VISIBLE_DEVICES": "-1", "NVIDIA_VISIBLE_DEVICES": ""},
			worker: map[string]string{"CUDA_VISIBLE_DEVICES": "-1", "NVIDIA_VISIBLE_DEVICES": ""},
		},
		"two each for workers": {
			request: &domain.GPURequest{Pool: "v100", Count: new(2)}, gpus: two,
			ps: map[string]string{"CUDA_VISIBLE_DEVICES": "-1", "NVIDIA_VISIBLE_DEVICES": "void"},
			worker: map[string]string{
				"CUDA_VISIBLE_DEVICES": two, "NVIDIA_VISIBLE_DEVICES": two, "TRAINYARD_GPU_MEMORY_MIB": "",
			},
		},
		"a part of one": {
			request: &domain.GPURequest{Pool: "a40", MemoryMiB: 1199}, gpus: "GPU-4f",
			worker: map[string]string{
				"CUDA_VISIBLE_DEVICES": "GPU-4f", "NVIDIA_VISIBLE_DEVICES": "GPU-4f",
				"TRAINYARD_GPU_MEMORY_MIB": "1199",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := gpuGroup(test.request)
			if ps := Validate(g); ps.Err() != nil {
				t.Fatal(ps.Err())
			}
			l := laidOut(g, test.gpus)
			for i, want := range []map[string]string{test.ps, test.worker} {
				spec, err := l.Spec(i)
				if err != nil {
					t.Fatal(err)
				}
				for variable, value := range want {
					if got := spec.Env[variable]; got != value {
						t.Errorf("%s of %s is %q, want %q", variable, spec.Name, got, value)
					}
				}
			}
		})
	}
}

// TestHashOfGPUs checks that a member restarts for other devices or another share of them, and for nothing else about
// GPUs.
func TestHashOfGPUs(t *testing.T) {
	request := &domain.GPURequest{Pool: "v100"}
	base := laidOut(gpuGroup(request), "GPU-4f")
	for name, test := range map[string]struct {
		other       *Layout
		ps, workers bool // whether their hashes change
	}{
		"other devices":       {laidOut(gpuGroup(request), "GPU-5a"), false, true},
		"another pool's name": {laidOut(gpuGroup(&domain.GPURequest{Pool: "all"}), "GPU-4f"), false, false},
		"a share of memory": {
			laidOut(gpuGroup(&domain.GPURequest{Pool: "v100", MemoryMiB: 1}), "GPU-4f"), false, true,
		},
		"no GPUs in the group": {laidOut(gpuGroup(nil), ""), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if ps, worker := test.other.Hash(0) != base.Hash(0), test.other.Hash(1) != base.Hash(1); ps != test.ps ||
				worker != test.workers {
				t.Errorf("another hash of the parameter server: %v, of the worker: %v; want %v and %v", ps, worker,
					test.ps, test.workers)
			}
		})
	}
}

// TestInterchangeableWithGPUs checks that members with exact devices are not interchangeable, although nobody depends
// on their addresses.
func TestInterchangeableWithGPUs(t *testing.T) {
	g := domain.Group{Framework: "spark", Roles: map[string]domain.Role{"master": {}, "worker": {}}}
	if !Interchangeable(g, "worker") || Interchangeable(g, "master") {
		t.Error("workers of Spark are interchangeable, its master is not")
	}
	g.Roles["worker"] = domain.Role{GPUs: &domain.GPURequest{Pool: "v100"}}
	if Interchangeable(g, "worker") {
		t.Error("workers with exact GPUs are not interchangeable")
	}
	if _, depended := laidOut(g, "GPU-4f").ClusterSpec()["worker"]; depended {
		t.Error("others depend on the addresses of Spark's workers")
	}
}

func TestValidateGPUs(t *testing.T) {
	for name, test := range map[string]struct {
		request domain.GPURequest
		env     map[string]string
		want    string
	}{
		"no pool": {request: domain.GPURequest{}, want: `roles["worker"].gpus.pool: Missing GPU pool name`},
		"a bad name": {
			request: domain.GPURequest{Pool: "V100"},
			want:    `roles["worker"].gpus.pool: Invalid GPU pool name: "V100" is not a DNS label`,
		},
		"a negative count": {
			request: domain.GPURequest{Pool: "v100", Count: new(-1)},
			want:    `roles["worker"].gpus.count: Invalid number of GPUs: must be 1 or more, got -1`,
		},
		"a count of none": {request: domain.GPURequest{
			Pool: "v100", Count: new(0),
		}, want: `roles["worker"].gpus.count: Invalid number of GPUs: must be 1 or more, got 0. Leave gpus out (null) for no GPUs`},
		"negative memory": {
			request: domain.GPURequest{Pool: "v100", MemoryMiB: -1},
			want:    `roles["worker"].gpus.memory_mib: Invalid GPU memory`,
		},
		"a variable of its own": {
			request: domain.GPURequest{Pool: "v100"}, env: map[string]string{"CUDA_VISIBLE_DEVICES": "0"},
			want: `env["CUDA_VISIBLE_DEVICES"]: Reserved GPU variable: CUDA_VISIBLE_DEVICES is set by Trainyard`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := gpuGroup(&test.request)
			g.Env = test.env
			if err := Validate(g).Err(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("problems %v, want %q", err, test.want)
			}
		})
	}
}
