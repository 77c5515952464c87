package topology

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestEnvironment compares what members find with what the frameworks' own documentation shows, for members at
// <role><index>:2222.
func TestEnvironment(t *testing.T) {
	for name, test := range map[string]struct {
		framework string
		counts    map[string]int
		role      string
		index     int
		want      map[string]string
	}{
		// tf.distribute.cluster_resolver.TFConfigClusterResolver and
		// tf.contrib.distribute.run_standard_tensorflow_server show this cluster of 3 workers and 2 parameter servers,
		// seen from worker 1.
		"tensorflow: parameter servers": {"tensorflow", map[string]int{"worker": 3, "ps": 2}, "worker", 1,
			map[string]string{
				"TF_CONFIG": `{"cluster":{"ps":["ps0:2222","ps1:2222"],"worker":["worker0:2222","worker1:2222","worker2:2222"]},"task":{"type":"worker","index":1}}`,
			}},
		// "Parameter server training with ParameterServerStrategy", section "Clusters in the real world".
		"tensorflow: chief": {"tensorflow", map[string]int{
			"chief": 1, "worker": 1, "ps": 1,
		}, "chief", 0, map[string]string{
			"TF_CONFIG": `{"cluster":{"chief":["chief0:2222"],"ps":["ps0:2222"],"worker":["worker0:2222"]},"task":{"type":"chief","index":0}}`,
		}},
		// AI Platform, "TF_CONFIG and distributed training": the cluster has no key evaluator, but the evaluator's task
		// has that type.
		"tensorflow: evaluator": {"tensorflow", map[string]int{"chief": 1, "evaluator": 1}, "evaluator", 0,
			map[string]string{
				"TF_CONFIG": `{"cluster":{"chief":["chief0:2222"]},"task":{"type":"evaluator","index":0}}`,
			}},
		"tensorflow: master": {"tensorflow", map[string]int{"master": 1, "worker": 1}, "worker", 0, map[string]string{
			"TF_CONFIG": `{"cluster":{"master":["master0:2222"],"worker":["worker0:2222"]},"task":{"type":"worker","index":0}}`,
		}},
		// "Distributed TensorFlow", example trainer program: --ps_hosts=ps0:2222,ps1:2222
		// --worker_hosts=worker0:2222,worker1:2222 --job_name=ps --task_index=1.
		"tensorflow_v1": {"tensorflow_v1", map[string]int{"worker": 2, "ps": 2}, "ps", 1, map[string]string{
			"PS_HOSTS": "ps0:2222,ps1:2222", "WORKER_HOSTS": "worker0:2222,worker1:2222", "JOB_NAME": "ps",
			"TASK_INDEX": "1",
		}},
		// torch.distributed.run and Kubeflow's PyTorchJob: worker n of a job with a master has rank n + 1.
		"pytorch: worker beside a master": {"pytorch", map[string]int{"master": 1, "worker": 3}, "worker", 2,
			map[string]string{
				"MASTER_ADDR": "master0", "MASTER_PORT": "2222", "WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "0",
				"PET_MASTER_ADDR": "master0", "PET_MASTER_PORT": "2222", "PET_NNODES": "4", "PET_NPROC_PER_NODE": "1",
				"PET_NODE_RANK":    "3",
				"PYTHONUNBUFFERED": "1",
			}},
		"pytorch: master": {"pytorch", map[string]int{"master": 1, "worker": 1}, "master", 0, map[string]string{
			"MASTER_ADDR": "master0", "MASTER_PORT": "2222", "WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0",
			"PET_MASTER_ADDR": "master0", "PET_MASTER_PORT": "2222", "PET_NNODES": "2", "PET_NPROC_PER_NODE": "1",
			"PET_NODE_RANK":    "0",
			"PYTHONUNBUFFERED": "1",
		}},
		"pytorch: workers alone": {"pytorch", map[string]int{"worker": 2}, "worker", 1, map[string]string{
			"MASTER_ADDR": "worker0", "MASTER_PORT": "2222", "WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "0",
			"PET_MASTER_ADDR": "worker0", "PET_MASTER_PORT": "2222", "PET_NNODES": "2", "PET_NPROC_PER_NODE": "1",
			"PET_NODE_RANK":    "1",
			"PYTHONUNBUFFERED": "1",
		}},
		// "Introduction to multi-controller JAX": the coordinator is process 0, and processes are numbered from there.
		"jax: coordinator": {"jax", map[string]int{"worker": 3}, "worker", 0, map[string]string{
			"JAX_COORDINATOR_ADDRESS": "worker0:2222", "JAX_NUM_PROCESSES": "3", "JAX_PROCESS_ID": "0",
			"PYTHONUNBUFFERED": "1",
		}},
		"jax: the last process": {"jax", map[string]int{"worker": 3}, "worker", 2, map[string]string{
			"JAX_COORDINATOR_ADDRESS": "worker0:2222", "JAX_NUM_PROCESSES": "3", "JAX_PROCESS_ID": "2",
			"PYTHONUNBUFFERED": "1",
		}},
		"jax: alone": {"jax", map[string]int{"worker": 1}, "worker", 0, map[string]string{
			"JAX_COORDINATOR_ADDRESS": "worker0:2222", "JAX_NUM_PROCESSES": "1", "JAX_PROCESS_ID": "0",
			"PYTHONUNBUFFERED": "1",
		}},
		// Kubeflow's mpi-operator, ompiEnvVars, mpichEnvVars and intelEnvVars; PRRTE for Open MPI 5.
		"mpi": {"mpi", map[string]int{"launcher": 1, "worker": 2}, "launcher", 0, map[string]string{
			"OMPI_MCA_orte_default_hostfile":        "/files/mnist-launcher-0/hostfile",
			"OMPI_MCA_orte_keep_fqdn_hostnames":     "true",
			"OMPI_MCA_plm_rsh_args":                 "-o ConnectionAttempts=10",
			"PRTE_MCA_prte_default_hostfile":        "/files/mnist-launcher-0/hostfile",
			"PRTE_MCA_prte_keep_fqdn_hostnames":     "true",
			"PRTE_MCA_plm_ssh_args":                 "-o ConnectionAttempts=10",
			"HYDRA_HOST_FILE":                       "/files/mnist-launcher-0/hostfile.hydra",
			"HYDRA_LAUNCH_EXTRA_ARGS":               "-o ConnectionAttempts=10",
			"I_MPI_HYDRA_HOST_FILE":                 "/files/mnist-launcher-0/hostfile.hydra",
			"I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "-o ConnectionAttempts=10",
		}},
		// "Spark Standalone Mode": spark://HOST:PORT, SPARK_MASTER_HOST, SPARK_MASTER_PORT, SPARK_WORKER_PORT.
		"spark: master": {"spark", map[string]int{"master": 1, "worker": 1}, "master", 0, map[string]string{
			"SPARK_MASTER_URI": "spark://master0:2222", "SPARK_MASTER_HOST": "master0", "SPARK_MASTER_PORT": "2222",
		}},
		"spark: worker": {"spark", map[string]int{"master": 1, "worker": 2}, "worker", 1, map[string]string{
			"SPARK_MASTER_URI": "spark://master0:2222", "SPARK_WORKER_PORT": "2222",
		}},
		"spark: submit": {"spark", map[string]int{"master": 1, "submit": 1}, "submit", 0, map[string]string{
			"SPARK_MASTER_URI": "spark://master0:2222",
		}},
		// "Starting Ray": RAY_ADDRESS is <address of the head>:<port>.
		"ray: worker": {
			"ray", map[string]int{"head": 1, "worker": 1}, "worker", 0, map[string]string{"RAY_ADDRESS": "head0:2222"},
		},
		"ray: submit": {
			"ray", map[string]int{"head": 1, "submit": 1}, "submit", 0, map[string]string{"RAY_ADDRESS": "head0:2222"},
		},
		"ray: head": {"ray", map[string]int{"head": 1, "worker": 1}, "head", 0, map[string]string{}},
		"none":      {"none", map[string]int{"broker": 2}, "broker", 1, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := group(test.framework, test.counts)
			if err := Validate(g).Err(); err != nil {
				t.Fatalf("the group is not valid: %v", err)
			}
			got := specOf(t, place(g), test.role, test.index).Env
			for _, name := range []string{
				"CUDA_VISIBLE_DEVICES", "TRAINYARD_CLUSTER", "TRAINYARD_GROUP", "TRAINYARD_ROLE", "TRAINYARD_INDEX",
				"TRAINYARD_MEMBER",
				"TRAINYARD_HOST", "TRAINYARD_ADDRESS", "TRAINYARD_PORT", "TRAINYARD_CLUSTER_SPEC",
			} {
				if _, found := got[name]; !found {
					t.Errorf("%s is missing", name)
				}
				delete(got, name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

// TestProcessesPerNode checks that torchrun starts a process for each GPU of a member.
func TestProcessesPerNode(t *testing.T) {
	g := group("pytorch", map[string]int{"master": 1, "worker": 2})
	master, worker := g.Roles["master"], g.Roles["worker"]
	master.GPUs = &domain.GPURequest{Pool: "p"} // one by default
	worker.GPUs = &domain.GPURequest{Pool: "p", Count: new(2)}
	g.Roles["master"], g.Roles["worker"] = master, worker
	l := place(g)
	for role, want := range map[string]string{"master": "1", "worker": "2"} {
		env := specOf(t, l, role, 0).Env
		if got := env["PET_NPROC_PER_NODE"]; got != want {
			t.Errorf("PET_NPROC_PER_NODE=%q of a %s, want %s", got, role, want)
		}
		if env["PET_NNODES"] != "3" || env["WORLD_SIZE"] != "3" {
			t.Errorf("there are %s nodes, and a world of %s, of 3 members", env["PET_NNODES"], env["WORLD_SIZE"])
		}
	}
}

// TestProcessesOfJAX checks that one process uses all GPUs of its member: JAX_LOCAL_DEVICE_IDS would leave some out.
func TestProcessesOfJAX(t *testing.T) {
	g := group("jax", map[string]int{"worker": 2})
	worker := g.Roles["worker"]
	worker.GPUs = &domain.GPURequest{Pool: "p", Count: new(2)}
	g.Roles["worker"] = worker
	members := Expand(g, Counts(g, nil), nil)
	for i := range members {
		members[i].Host, members[i].Address, members[i].GPUs = "dgx", fmt.Sprintf("dgx:%d", 29500+i),
			domain.NewDeviceSet(fmt.Sprintf("GPU-%d", 2*i), fmt.Sprintf("GPU-%d", 2*i+1))
	}
	l := NewLayout(g, members, nil)
	for i, want := range []string{"GPU-0,GPU-1", "GPU-2,GPU-3"} {
		env := specOf(t, l, "worker", i).Env
		if env["CUDA_VISIBLE_DEVICES"] != want || env["JAX_NUM_PROCESSES"] != "2" ||
			env["JAX_COORDINATOR_ADDRESS"] != "dgx:29500" {
			t.Errorf("worker %d has the devices %q, is one of %s, and looks for %s; want %s, 2, dgx:29500", i,
				env["CUDA_VISIBLE_DEVICES"], env["JAX_NUM_PROCESSES"], env["JAX_COORDINATOR_ADDRESS"], want)
		}
		if ids, found := env["JAX_LOCAL_DEVICE_IDS"]; found {
			t.Errorf("worker %d takes %q of its GPUs, want all", i, ids)
		}
	}
}

func TestUserEnvironmentWinsOverTheFrameworks(t *testing.T) {
	g := group("pytorch", map[string]int{"worker": 2})
	g.Env = map[string]string{"MASTER_PORT": "29500"}
	if got := specOf(t, place(g), "worker", 1).Env["MASTER_PORT"]; got != "29500" {
		t.Errorf("MASTER_PORT=%q, want the user's", got)
	}
}

func TestHostfiles(t *testing.T) {
	g := group("mpi", map[string]int{"launcher": 1, "worker": 3})
	members := Expand(g, Counts(g, nil), nil)
	for i, host := range []string{"gpu1", "gpu2", "gpu1", "gpu1"} { // the launcher, then the workers
		members[i].Host, members[i].Address = host, host+":22"
	}
	l := NewLayout(g, members, func(_, _ string) string { return "/files" })
	want := []domain.File{
		{Name: "hostfile", Content: "gpu2 slots=1\ngpu1 slots=2\n"},
		{Name: "hostfile.hydra", Content: "gpu2:1\ngpu1:2\n"},
	}
	for _, role := range []string{"launcher", "worker"} {
		if diff := cmp.Diff(want, specOf(t, l, role, 0).Files); diff != "" {
			t.Errorf("files of the %s (-want +got):\n%s", role, diff)
		}
	}
}

// TestTFConfigRoundTrip checks that any text in a cluster survives, as the provider function takes what users give it.
func TestTFConfigRoundTrip(t *testing.T) {
	cluster := map[string][]string{"worker": {`a"b:1`, "[::1]:2"}, "evaluator": {"e:1"}, "odd role": {}}
	var got struct {
		Cluster map[string][]string
		Task    struct {
			Type  string
			Index int
		}
	}
	text := TFConfig(cluster, `odd "role"`, 7)
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%s is not JSON: %v", text, err)
	}
	if got.Task.Type != `odd "role"` || got.Task.Index != 7 {
		t.Errorf("task is %+v", got.Task)
	}
	delete(cluster, "evaluator")
	if diff := cmp.Diff(cluster, got.Cluster); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
}

func TestSplit(t *testing.T) {
	for address, want := range map[string][2]string{
		"gpu1:8000":  {"gpu1", "8000"},
		"[::1]:8000": {"::1", "8000"},
		"gpu1":       {"gpu1", ""},
		"":           {"", ""},
	} {
		if host, port := split(address); host != want[0] || port != want[1] {
			t.Errorf("split(%q) = %q, %q; want %q", address, host, port, want)
		}
	}
}

// TestFrameworksAreConsistent checks that needs name existing roles, and that a chief is possible if it is the default.
func TestFrameworksAreConsistent(t *testing.T) {
	for _, f := range frameworks {
		for _, set := range f.needs {
			for _, name := range set {
				if !slices.Contains(f.roleNames(), name) {
					t.Errorf("%s needs role %q, which it does not have", f.name, name)
				}
			}
		}
		if f.when == domain.WhenChief && len(chiefCandidates(domain.Group{}, f)) == 0 {
			t.Errorf("%s completes with a chief and has no role for it", f.name)
		}
		if _, known := lookup(f.name); !known {
			t.Errorf("%s is not found", f.name)
		}
	}
}
