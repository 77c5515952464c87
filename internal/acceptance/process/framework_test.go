//go:build linux

package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// frameworkCase is a group of a framework, and the expected environment of its members.
type frameworkCase struct {
	framework string
	// roles are the numbers of members by role.
	roles map[string]int
	// variables are the names of the variables that members print, in the order of the expected values.
	variables []string
	// want are the values by role and index ("worker-1"). In them <role-index> stands for an address, <role-index:port>
	// for its port, and <files> for the folder of the member's files.
	want map[string][]string
}

var frameworkCases = []frameworkCase{
	{
		framework: "none",
		roles:     map[string]int{"broker": 1, "client": 1},
		variables: []string{
			"TRAINYARD_CLUSTER", "TRAINYARD_GROUP", "TRAINYARD_ROLE", "TRAINYARD_INDEX", "TRAINYARD_MEMBER",
			"TRAINYARD_HOST",
			"TRAINYARD_ADDRESS", "TRAINYARD_PORT", "TRAINYARD_CLUSTER_SPEC", "CUDA_VISIBLE_DEVICES",
		},
		want: map[string][]string{
			"client-0": {
				"lab", "none", "client", "0", "none-client-0", "local", "<client-0>", "<client-0:port>",
				`{"broker":["<broker-0>"],"client":["<client-0>"]}`, "-1",
			},
		},
	},
	{
		framework: "tensorflow",
		roles:     map[string]int{"chief": 1, "evaluator": 1, "ps": 1, "worker": 2},
		variables: []string{"TF_CONFIG"},
		want: map[string][]string{
			"chief-0": {
				`{"cluster":{"chief":["<chief-0>"],"ps":["<ps-0>"],"worker":["<worker-0>","<worker-1>"]},"task":{"type":"chief","index":0}}`,
			},
			"evaluator-0": {
				`{"cluster":{"chief":["<chief-0>"],"ps":["<ps-0>"],"worker":["<worker-0>","<worker-1>"]},"task":{"type":"evaluator","index":0}}`,
			},
			"ps-0": {
				`{"cluster":{"chief":["<chief-0>"],"ps":["<ps-0>"],"worker":["<worker-0>","<worker-1>"]},"task":{"type":"ps","index":0}}`,
			},
			"worker-1": {
				`{"cluster":{"chief":["<chief-0>"],"ps":["<ps-0>"],"worker":["<worker-0>","<worker-1>"]},"task":{"type":"worker","index":1}}`,
			},
		},
	},
	{
		framework: "tensorflow_v1",
		roles:     map[string]int{"ps": 2, "worker": 2},
		variables: []string{"PS_HOSTS", "WORKER_HOSTS", "JOB_NAME", "TASK_INDEX"},
		want: map[string][]string{
			"ps-1":     {"<ps-0>,<ps-1>", "<worker-0>,<worker-1>", "ps", "1"},
			"worker-0": {"<ps-0>,<ps-1>", "<worker-0>,<worker-1>", "worker", "0"},
		},
	},
	{
		framework: "pytorch",
		roles:     map[string]int{"master": 1, "worker": 2},
		variables: []string{
			"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK",
			"PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK",
		},
		want: map[string][]string{
			"master-0": {"127.0.0.1", "<master-0:port>", "3", "0", "0", "127.0.0.1", "<master-0:port>", "3", "1", "0"},
			"worker-1": {"127.0.0.1", "<master-0:port>", "3", "2", "0", "127.0.0.1", "<master-0:port>", "3", "1", "2"},
		},
	},
	{
		framework: "jax",
		roles:     map[string]int{"worker": 2},
		variables: []string{"JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "PYTHONUNBUFFERED"},
		want: map[string][]string{
			"worker-0": {"<worker-0>", "2", "0", "1"},
			"worker-1": {"<worker-0>", "2", "1", "1"},
		},
	},
	{
		framework: "mpi",
		roles:     map[string]int{"launcher": 1, "worker": 2},
		variables: []string{
			"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE",
			"I_MPI_HYDRA_HOST_FILE",
		},
		want: map[string][]string{
			"launcher-0": {"<files>/hostfile", "<files>/hostfile", "<files>/hostfile.hydra", "<files>/hostfile.hydra"},
		},
	},
	{
		framework: "spark",
		roles:     map[string]int{"master": 1, "worker": 1, "submit": 1},
		variables: []string{"SPARK_MASTER_URI", "SPARK_MASTER_HOST", "SPARK_MASTER_PORT", "SPARK_WORKER_PORT"},
		want: map[string][]string{
			"master-0": {"spark://<master-0>", "127.0.0.1", "<master-0:port>", ""},
			"worker-0": {"spark://<master-0>", "", "", "<worker-0:port>"},
			"submit-0": {"spark://<master-0>", "", "", ""},
		},
	},
	{
		framework: "ray",
		roles:     map[string]int{"head": 1, "worker": 1, "submit": 1},
		variables: []string{"RAY_ADDRESS"},
		want: map[string][]string{
			"head-0":   {""},
			"worker-0": {"<head-0>"},
			"submit-0": {"<head-0>"},
		},
	},
}

// group returns the configuration of the case's group, named after its framework. All members print and end, so the
// logs are complete when the group is.
func (c frameworkCase) group() string {
	steps := make([]string, len(c.variables))
	for i, variable := range c.variables {
		steps[i] = fmt.Sprintf("%q", "environment:"+variable)
	}
	var roles []string
	for _, role := range sorted(c.roles) {
		roles = append(roles, fmt.Sprintf("%s = { replicas = %d }", role, c.roles[role]))
	}
	name := strings.ReplaceAll(c.framework, "_", "-")
	return group(name, fmt.Sprintf(`
  framework  = %q
  command    = [local.member, %s]
  roles      = { %s }
  completion = { when = "all", roles = %s }
  wait_for   = "completed"`,
		c.framework, strings.Join(steps, ", "), strings.Join(roles, ", "),
		strings.ReplaceAll(fmt.Sprintf("%q", sorted(c.roles)), `" "`, `", "`)))
}

// logsOf returns the configuration of data sources with the logs of these members.
func logsOf(after string, members ...string) string {
	var b strings.Builder
	for _, member := range members {
		fmt.Fprintf(&b, `
data "trainyard_logs" %[1]q {
  cluster    = trainyard_cluster.lab
  member     = %[1]q
  depends_on = [%[2]s]
}`, member, after)
	}
	return b.String()
}

// wrote checks that a member's log has exactly these lines.
func wrote(member string, lines ...string) statecheck.StateCheck {
	want := make([]knownvalue.Check, len(lines))
	for i, line := range lines {
		want[i] = knownvalue.StringExact(line)
	}
	return statecheck.ExpectKnownValue("data.trainyard_logs."+member, tfjsonpath.New("lines"),
		knownvalue.ListExact(want))
}

// linesIn returns the lines that a data source read from a member.
func linesIn(state *terraform.State, member string) []string {
	read := state.RootModule().Resources["data.trainyard_logs."+member]
	if read == nil {
		return nil
	}
	lines := []string{}
	for i := 0; ; i++ {
		line, found := read.Primary.Attributes[fmt.Sprintf("lines.%d", i)]
		if !found {
			return lines
		}
		lines = append(lines, line)
	}
}

// Members of every framework find in their environment what its programs need.
func TestAccFrameworks(t *testing.T) {
	l := newLab(t)
	var parts, names, members []string
	for _, c := range frameworkCases {
		name := strings.ReplaceAll(c.framework, "_", "-")
		parts = append(parts, c.group())
		names = append(names, "trainyard_group."+name)
		for member := range c.want {
			members = append(members, name+"-"+member)
		}
	}
	slices.Sort(members)
	parts = append(parts, logsOf(strings.Join(names, ", "), members...))

	check := func(c frameworkCase) resource.TestCheckFunc {
		return func(state *terraform.State) error {
			name := strings.ReplaceAll(c.framework, "_", "-")
			group, err := engine.Get[domain.GroupDocument](t.Context(), l.engine(), name)
			if err != nil {
				return err
			}
			want, got := map[string][]string{}, map[string][]string{}
			for member, values := range c.want {
				placeholders := []string{"<files>", l.files.FilesDir(name + "-" + member)}
				for _, other := range sorted(group.Assignments) {
					port := fmt.Sprint(group.Assignments[other].Port)
					short := strings.TrimPrefix(other, name+"-")
					placeholders = append(placeholders, "<"+short+">", "127.0.0.1:"+port, "<"+short+":port>", port)
				}
				replacer := strings.NewReplacer(placeholders...)
				for _, value := range values {
					want[member] = append(want[member], replacer.Replace(value))
				}
				got[member] = linesIn(state, name+"-"+member)
			}
			if err := acceptance.Differences(want, got); err != nil {
				return fmt.Errorf("environment of %s %w", c.framework, err)
			}
			return nil
		}
	}
	checks := []resource.TestCheckFunc{func(*terraform.State) error {
		for file, want := range map[string]string{
			"hostfile": "127.0.0.1 slots=2\n", "hostfile.hydra": "127.0.0.1:2\n",
		} {
			got, err := os.ReadFile(filepath.Join(l.files.FilesDir("mpi-launcher-0"), file))
			if err != nil {
				return err
			}
			if err := acceptance.Differences(want, string(got)); err != nil {
				return err
			}
		}
		return nil
	}}
	for _, c := range frameworkCases {
		checks = append(checks, check(c))
	}
	l.test(resource.TestStep{
		Config: l.config(append([]string{theCluster}, parts...)...),
		Check:  resource.ComposeAggregateTestCheckFunc(checks...),
	})
}

// Templates are rendered for each member, and can refer to other members.
func TestAccTemplates(t *testing.T) {
	l := newLab(t)
	l.test(resource.TestStep{
		Config: l.job(`
  roles = {
    ps     = { replicas = 2, port = local.port, command = [local.member, "exit:0"] }
    worker = {
      replicas = 2
      port     = local.port + 10
      command  = [local.member, "print:{{ .Name }} is {{ .Role }} {{ .Index }} of {{ .Group }} in {{ .Cluster }}"]
      args     = ["environment:FIRST", "environment:ALL", "print:{{ .Host }} {{ .Address }} {{ .Port }}"]
      env = {
        FIRST = "{{ address \"ps\" 0 }}"
        ALL   = "{{ addresses \"worker\" }} {{ replicas \"ps\" }} {{ hostname (address \"ps\" 1) }} {{ port (address \"ps\" 1) }}"
      }
    }
  }
  wait_for = "completed"`) + logsOf(acceptance.TheJob, "job-worker-0", "job-worker-1"),
		ConfigStateChecks: []statecheck.StateCheck{
			wrote("job-worker-0", "job-worker-0 is worker 0 of job in lab", l.address(0),
				l.address(10)+","+l.address(11)+" 2 127.0.0.1 "+fmt.Sprint(l.port+1),

				"local "+l.address(10)+" "+fmt.Sprint(l.port+10)),
			wrote("job-worker-1", "job-worker-1 is worker 1 of job in lab", l.address(0),
				l.address(10)+","+l.address(11)+" 2 127.0.0.1 "+fmt.Sprint(l.port+1),

				"local "+l.address(11)+" "+fmt.Sprint(l.port+11)),
		},
	})
}
