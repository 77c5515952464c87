//go:build linux

package process_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
)

// invalid is a configuration that has to fail at plan time, and the parts of the error: the attribute, the value, what
// is allowed.
type invalid struct {
	config string
	says   []string
}

// waiting completes the attributes of a group with a worker that waits.
func waiting(role string) string {
	return "command = [local.member, \"wait\"]\n  roles = { worker = { " + role + " } }"
}

// What can be checked without the cluster fails at plan time, wherever the cluster comes from.
func TestAccInvalid(t *testing.T) {
	l := newLab(t)
	long := strings.Repeat("x", 53)
	job := func(attributes string, says ...string) invalid { return invalid{group("job", attributes), says} }
	role := func(attributes string, says ...string) invalid { return job(waiting(attributes), says...) }
	cluster := func(attribute string, says ...string) invalid {
		return invalid{"resource \"trainyard_cluster\" \"bad\" {\n name = \"bad\"\n " + attribute + "\n}", says}
	}
	named := func(name string, says ...string) invalid {
		return invalid{
			strings.Replace(group("job", waiting("")), `"job"`+"\n  command", `"`+name+`"`+"\n  command", 1), says,
		}
	}
	l.test(l.refused(theCluster, []invalid{
		// Names.
		named("Job", `name: "Job" is not a DNS label: use lower-case letters, digits and hyphens`),
		named("j.b", `name: "j.b" is not a DNS label`),
		named(long, `roles["worker"]: members are named <group>-<role>-<index>`, long,
			`up to 65 characters, but only 63 are allowed: shorten one by 2`),
		named(long+long, `name:`, `has 106 characters; at most 63 are allowed`),
		job(`command = ["x"]`+"\n"+`roles = { "Worker" = {} }`, `roles["Worker"]: "Worker" is not a DNS label`),
		{`resource "trainyard_cluster" "bad" { name = "my_lab" }`, []string{`"my_lab" is not a DNS label`}},

		// Members and frameworks.
		job(`command = ["x"]`+"\n"+`roles = {}`, `roles: a group needs at least one role with at least one replica`),
		job(`command = ["x"]`+"\n"+`roles = { worker = { replicas = 0 } }`,
			`roles: a group needs at least one role with at least one replica`),
		job(`command = ["x"]`+"\n"+`roles = { worker = { replicas = -1 } }`,
			`roles["worker"].replicas: role "worker" has -1 replicas; 0 to 10000 are allowed`),
		job(waiting("")+"\n"+`framework = "caffe"`,
			`framework: unknown framework "caffe"; use one of "jax", "mpi", "none", "pytorch", "ray", "spark", "tensorflow", "tensorflow_v1"`),
		job(`command = ["x"]`+"\n"+`framework = "pytorch"`+"\n"+`roles = { worker = {}, ps = {} }`,
			`roles["ps"]: framework "pytorch" has no role "ps"; it has "master", "worker"`),
		job(`command = ["x"]`+"\n"+`framework = "jax"`+"\n"+`roles = { worker = {}, coordinator = {} }`,
			`roles["coordinator"]: framework "jax" has no role "coordinator"; it has "worker"`),
		job(`command = ["x"]`+"\n"+`framework = "jax"`+"\n"+`roles = { worker = { on_scale = "none" } }`,
			`roles["worker"].on_scale: members of framework "jax" agree on the world size when they start`,
			`use "restart", or leave it out`),
		job(waiting("")+"\n"+`framework = "tensorflow_v1"`, `roles: framework "tensorflow_v1" needs a role "ps"`),
		job(`command = ["x"]`+"\n"+`framework = "mpi"`+"\n"+`roles = { launcher = { replicas = 2 }, worker = {} }`,
			`roles["launcher"].replicas: role "launcher" has 2 replicas; framework "mpi" takes at most 1`),

		// Commands and images.
		job(`roles = { worker = {} }`,
			`roles["worker"].command: neither role "worker" nor its group has a command or an image`),
		role(`env = { "TRAINYARD_ROLE" = "x" }`,
			`roles["worker"].env["TRAINYARD_ROLE"]: "TRAINYARD_ROLE" is reserved for Trainyard`),
		role(`env = { "A=B" = "x" }`, `"A=B" contains "="`),
		role(`args = ["{{ address \"ps\" 0 }}"]`, `roles["worker"].args[0]:`, `there is no role "ps"`,
			`roles and their members are worker (1)`),
		role(`args = ["{{ address \"worker\" 7 }}"]`, `roles["worker"].args[0]:`,
			`role "worker" has no member 7: its indexes go from 0 to 0`),
		role(`env = { X = "{{ .Rank }}" }`, `roles["worker"].env["X"]:`, `Rank`, `.Index`),
		role(`env = { X = "{{ oops" }`, `roles["worker"].env["X"]:`),
		role(`mounts = [{ source = "data", target = "/data" }]`,
			`roles["worker"].mounts[0].source: "data" is not an absolute path`),

		// Ports, resources, durations, rules.
		role(`port = 0`, `roles["worker"].port: must be between 1 and 65535, got 0`),
		role(`port = 70000`, `roles["worker"].port: must be between 1 and 65535, got 70000`),
		job(`command = ["x"]`+"\n"+`roles = { worker = { replicas = 3, port = 65534 } }`,
			`roles["worker"].port: the 3 members of role "worker" at 127.0.0.1 need the ports 65534 to 65536, one each; the highest port is 65535: start at 65533 or lower`),
		role(`resources = { cpus = -1 }`, `roles["worker"].resources.cpus: role "worker" requests -1 CPUs`),
		role(`resources = { memory_mib = -1 }`, `roles["worker"].resources.memory_mib: role "worker" requests -1 MiB`),
		role(`resources = { cpus = 2, limits = { cpus = 1 } }`,
			`roles["worker"].resources.limits.cpus: role "worker" is limited to 1 CPUs, but requests 2`),
		role(`container = { stop_signal = "TERM" }`,
			`roles["worker"].container.stop_signal: "TERM" is not a signal that ends a process; use one of "SIGTERM"`),
		role(`container = { configs = { a = { content = "x", target = "a" } } }`,
			`roles["worker"].container.configs["a"].target: "a" is not an absolute path`),
		role(`container = { secrets = { a = { value = "x", version = "1", mode = "rw" } } }`,
			`roles["worker"].container.secrets["a"].mode: "rw" is not a valid mode`),
		role(`container = { health_check = { command = ["x"], interval = "0s" } }`,
			`roles["worker"].container.health_check.interval: must be at least 1ms, got 0s`),
		role(`image = "Trainer"`, `roles["worker"].image: "Trainer" is not a valid image`),
		role(`placement = { strategy = "anywhere" }`,
			`roles["worker"].placement.strategy: unknown placement strategy "anywhere"; use one of "spread", "pack", "one_per_host"`),
		role(`restart = { condition = "sometimes" }`,
			`roles["worker"].restart.condition: unknown restart condition "sometimes"; use one of "never", "on_failure", "always"`),
		role(`restart = { max_attempts = -1 }`,
			`roles["worker"].restart.max_attempts: must be 1 or more, or 0 for no limit, got -1`),
		role(`restart = { delay = "soon" }`,
			`roles["worker"].restart.delay: "soon" is not a valid duration; use a number with a unit`),
		role(`restart = { delay = "-1s" }`, `roles["worker"].restart.delay: must be "0s" or more, got -1s`),
		role(`grace_period = "10"`,
			`roles["worker"].grace_period: "10" is not a valid duration; use a number with a unit`),
		role(`exit_codes = { final = ["300"] }`,
			`roles["worker"].exit_codes.final[0]: "300" is not an exit code from 1 to 255 or a range such as "1-127"`),
		role(`exit_codes = { final = ["1", "9-3"] }`, `roles["worker"].exit_codes.final[1]: "9-3" is not an exit code`),
		job(waiting("")+"\n"+`restart_scope = "cluster"`,
			`restart_scope: unknown restart scope "cluster"; use one of "member", "group"`),
		job(waiting("")+"\n"+`wait_for = "ready"`,
			`wait_for: unknown phase to wait for "ready"; use one of "running", "completed"`),
		job(waiting("")+"\n"+`completion = { when = "sometimes" }`,
			`completion.when: unknown completion rule "sometimes"; use one of "chief", "all", "any", "never"`),
		job(waiting("")+"\n"+`completion = { roles = ["ps"] }`,
			`completion.roles[0]: the group has no role "ps"; it has "worker"`),
		job(waiting("")+"\n"+`completion = { deadline = "-2h" }`,
			`completion.deadline: must be "0s" or more, got -2h0m0s`),
		job(waiting("")+"\n"+`completion = { when = "never" }`+"\n"+`wait_for = "completed"`,
			`wait_for: the group never completes (completion.when is "never"): wait for "running"`),

		// The cluster itself.
		cluster(`engine = "docker"`, `engine`, `value must be one of: ["process"], got: "docker"`),
		cluster(`hosts = {}`, `hosts`, `at least 1`),
		cluster(`hosts = { a = { capacity = { cpus = 0 } } }`,
			`hosts["a"].capacity.cpus: host "a" has 0 CPUs; it must be above 0`),
		cluster(`hosts = { a = { capacity = { memory_mib = 0 } } }`,
			`hosts["a"].capacity.memory_mib: host "a" has 0 MiB of memory; it must be above 0`),
		cluster(`hosts = { a = { address = "192.0.2.7" } }`, `hosts["a"].address:`,
			`"192.0.2.7" is not one of its addresses`),
		cluster(`hosts = { "Node" = {} }`, `hosts["Node"]`, `"Node" is not a valid host name`),
		cluster(`hosts = { a = { role = "manager" } }`,
			`hosts["a"].role: the engine "process" does not support role = "manager"`),
		cluster(`hosts = { a = { role = "leader" } }`,
			`hosts["a"].role: host "a" has the unknown role "leader"; use one of ["manager" "worker"]`),
		cluster(`endpoint = "ssh://gpu1"`, `endpoint: the engine "process" does not support endpoint = "ssh://gpu1"`),
		cluster(`network = { encrypted = true }`, `network: the engine "process" does not support network`),
	})...)
}

// What needs a look at the hosts fails at plan time as well: on an existing cluster, and on one created in the same
// apply.
func TestAccImpossible(t *testing.T) {
	l := newLab(t)
	listener, err := net.Listen("tcp", l.address(19))
	l.must(err)
	defer listener.Close()
	job := func(attributes string, says ...string) invalid { return invalid{group("job", attributes), says} }
	role := func(attributes string, says ...string) invalid { return job(waiting(attributes), says...) }
	port := func(n int) string { return fmt.Sprint(l.port + n) }
	impossible := []invalid{
		job(`command = ["x"]`+"\n"+
			`roles = { ps = { replicas = 2, port = local.port }, worker = { port = local.port + 1 } }`,

			`roles["worker"].port:`,
			`roles "ps" (from `+port(0)+`) and "worker" (from `+port(1)+`) overlap: 127.0.0.1:`+port(1)+
				` for job-worker-0 and job-ps-1`),
		{group("other", waiting("port = local.port + 3")) + group("job",
			waiting("port = local.port + 3")+"\n  depends_on = [trainyard_group.other]"),
			[]string{`roles["worker"].port: role "worker" (from port ` + port(3) +
				`) needs ports that group "other" has: 127.0.0.1:` + port(3) + ` for job-worker-0 and other-worker-0`}},
		role(`port = local.port + 19`, `roles["worker"].port: role "worker" (from port `+port(19)+
			`) needs ports that something else already listens on: 127.0.0.1:`+port(19)+` for job-worker-0`),
		role(`resources = { cpus = 3 }`,
			`roles["worker"].resources.cpus: each member of role "worker" requests 3 CPUs, and the largest of the hosts it may use has 2 CPUs (host a: 2 CPUs; host b: 1 CPU)`),
		role(`resources = { memory_mib = 600 }`,
			`roles["worker"].resources.memory_mib: each member of role "worker" requests 600 MiB`, `has 512 MiB`),
		job(`command = [local.member, "wait"]`+"\n"+`roles = { worker = { replicas = 4, resources = { cpus = 1 } } }`,
			`roles["worker"].resources.cpus: role "worker" has 4 members of 1 CPU each, and only 3 of them fit`,
			`host a: 2 of 2 CPUs free`, `host b: 1 of 1 CPU free`),
		job(`command = [local.member, "wait"]`+"\n"+
			`roles = { worker = { replicas = 3, resources = { memory_mib = 300 } } }`,
			`roles["worker"].resources.memory_mib: role "worker" has 3 members of 300 MiB each, and only 2 of them fit`),
		{group("other", waiting("resources = { cpus = 1.5 }")) + group("job",
			waiting("resources = { cpus = 1.5 }")+"\n  depends_on = [trainyard_group.other]"),
			[]string{
				`role "worker" has 1 member of 1.5 CPUs each, and only 0 of them fit`, `host a: 0.5 of 2 CPUs free`,
			}},
		job(`command = [local.member, "wait"]`+"\n"+
			`roles = { worker = { replicas = 3, placement = { strategy = "one_per_host" } } }`,
			`roles["worker"].placement.strategy: role "worker" has 3 members, at most one per host, and cluster "lab" has 2 hosts (a; b)`),
		role(`placement = { labels = { disk = "ssd" } }`,
			`roles["worker"].placement.labels: role "worker" asks for hosts labelled`, `disk`, `ssd`,
			`cluster "lab" has none`),
		role(`placement = { spread_by = "rack" }`,
			`roles["worker"].placement.spread_by: no host of cluster "lab" has a label "rack" to spread members by; the labels of its hosts are: none`),
		role(`command = ["no-such-program"]`, `roles["worker"].command:`, `"no-such-program" not found in PATH`),
		role(`command = ["/no/such/program"]`, `roles["worker"].command:`, `"/no/such/program" is not an executable`),
		role(`working_dir = "/no/such/folder"`,
			`roles["worker"].working_dir: "/no/such/folder" is not a directory on host`),
		role(`mounts = [{ source = "/tmp", target = "/data" }]`,
			`roles["worker"].mounts[0]: the engine "process" can't mount "/tmp" at "/data"`),
		{group("a-b", waiting("")) + `
resource "trainyard_group" "job" {
  cluster = trainyard_cluster.lab
  name    = "a"
  command = ["/bin/true"]
  roles   = { b-worker = {} }
  depends_on = [trainyard_group.a-b]
}`, []string{
			`roles["b-worker"]: a member would be named "a-b-worker-0", but group "a-b" of this cluster already has a member of that name`,
		}},
	}
	const rack = `
resource "trainyard_cluster" "lab" {
  name = "lab"
  hosts = {
    a = { capacity = { cpus = 2, memory_mib = 512 } }
    b = { capacity = { cpus = 1, memory_mib = 512 } }
  }
}
`
	steps := l.refused(rack, impossible)
	steps = append(steps, resource.TestStep{Config: l.config(rack)})
	l.test(append(steps, l.refused(rack, impossible)...)...)
}

// refused are steps that plan the configurations with the cluster, each of which has to fail.
func (l *lab) refused(cluster string, configurations []invalid) []resource.TestStep {
	l.Helper()
	var steps []resource.TestStep
	for _, c := range configurations {
		steps = append(steps, resource.TestStep{
			PlanOnly: true, Config: l.config(cluster, c.config), ExpectError: acceptance.Says(c.says...),
		})
	}
	return steps
}
