//go:build linux

package systems_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/pythonenv"
)

func TestSystemKafkaBareHosts(t *testing.T) { scaleKafka(t, onHosts) }

func TestSystemKafkaSwarm(t *testing.T) { scaleKafka(t, onSwarm) }

// kafkaPartitions is the number of partitions of the topic, each with three replicas.
const kafkaPartitions = 12

// scaleKafka adds and removes brokers twice on three machines, under producers that wait for all replicas. While
// partitions are being moved, it kills a broker, the rebalancer, the cluster's controller and Kafka's own, one each
// time.
func scaleKafka(t *testing.T, start func(*testing.T, pythonenv.Environment, int) *site) {
	t.Helper()
	l := newKafkaBed(t, start)
	l.Must("apply", "-auto-approve")
	acctest.Eventually(t, "the topic, with all its copies", func() bool { return l.settled(3) })
	l.ExpectNoChange("with three brokers")
	for i, victim := range []struct {
		name string
		kill func() error
	}{
		{"a broker", func() error { return l.site.kill("kafka-broker-1", "KILL") }},
		{"the rebalancer", func() error { return l.site.kill("kafka-rebalancer-server-0", "KILL") }},
		{"the controller of the cluster", l.site.killController},
		{"Kafka's controller", func() error { return l.site.kill("kafka-controllers-controller-0", "KILL") }},
	} {
		brokers, before := 4-i%2, l.status().Moved
		l.demand(brokers)
		acctest.Eventually(t, "partitions to be moved", func() bool {
			now := l.status()
			return now.Reassigning > 0 || now.Moved > before // one that holds little is moved between two looks
		})
		acctest.Eventually(t, "the death of "+victim.name, func() bool { return victim.kill() == nil })
		l.awaitLayout(brokers)
		t.Logf("%d brokers have their partitions, though %s was killed", brokers, victim.name)
		l.ExpectNoChange("after " + victim.name + " was killed")
	}
	l.expectSound()
	l.Must("destroy", "-auto-approve")
	l.site.removeData("kafka-")
	l.site.expectNothing(t)
}

// kafkaBed is a Kafka on several machines, with a load.
type kafkaBed struct {
	*acctest.Workspace
	t    *testing.T
	site *site
	// java is the shell command that runs a class of Kafka.
	java string
}

func newKafkaBed(t *testing.T, start func(*testing.T, pythonenv.Environment, int) *site) *kafkaBed {
	t.Helper()
	libs := acceptance.Kafka(t)
	java, folders := javaOf(t)
	rebalancer, load := acctest.Build(t, acctest.Rebalancer), acctest.Build(t, acctest.Load)
	folders = append(folders, libs, filepath.Dir(load))
	l := &kafkaBed{t: t, Workspace: acctest.NewWorkspace(t, acctest.Build(t, acctest.Provider))}
	acceptance.WithModules(l.Workspace)
	l.site = start(t, pythonenv.Environment{Python: "/usr/bin/python3", Folders: folders}, 3)
	l.java = fmt.Sprintf("%s -XX:TieredStopAtLevel=1 -cp '%s/*' org.apache.kafka.tools.", java, libs)

	// The rebalancer is copied to bare hosts; containers see it here.
	image, mounts, program := "null", "null", fmt.Sprintf("files = %q", bringing(l.Workspace, rebalancer))
	if l.site.image != "" {
		image, mounts, program = strconv.Quote(l.site.image), "["+l.site.mounts+"]",
			fmt.Sprintf("program = %q", rebalancer)
	}
	configured(l.Workspace, l.site.cluster, fmt.Sprintf(`
locals {
  image  = %[1]s
  mounts = %[2]s
}

module "kafka" {
  source     = "./modules/kafka"
  cluster    = trainyard_cluster.lab
  image      = local.image
  mounts     = local.mounts
  java       = %[3]q
  libs       = %[4]q
  env        = { JDK_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }
  controller = { heap_mib = 192 }
  broker     = { heap_mib = 256, placement = { strategy = "spread" } }
  rebalancer = { %[5]s, throttle_mib = 1 }
  autoscale = {
    min                  = 3
    max                  = 4
    interval             = "1s"
    window               = "1s"
    cooldown             = "1s"
    stabilisation_window = "1s"
    load                 = { url = "http://${trainyard_group.demand.members["demand-endpoint-0"]}/load" }
    algorithm            = { target = { value = 100 } }
  }
}

# The JSON endpoint that says how many brokers are wanted.
resource "trainyard_group" "demand" {
  cluster = trainyard_cluster.lab
  name    = "demand"
  image   = local.image
  roles = {
    endpoint = {
      replicas = 1
      port     = 9494
      mounts   = local.mounts
      command  = ["/bin/sh", "-euc", <<-END
        mkdir -p /tmp/demand
        echo '{"load": 300}' >/tmp/demand/load
        exec python3 -m http.server "$TRAINYARD_PORT" --directory /tmp/demand
      END
      ]
    }
  }
  completion = { when = "never" }
}

# The load, which says in the end what became of each record, but for its seconds.
resource "trainyard_group" "load" {
  cluster = trainyard_cluster.lab
  name    = "load"
  image   = local.image
  roles = {
    load = {
      replicas = 1
      port     = 9393
      mounts   = local.mounts
      restart  = { condition = "never" }
      grace_period = "5m"
      command  = ["/bin/sh", "-uc", <<-END
        %[6]s -bootstrap ${module.kafka.bootstrap_servers} -listen "$TRAINYARD_ADDRESS" -partitions %[7]d -base 150 -size 2000 \
          -rebalancer ${module.kafka.rebalancer}/status >/tmp/report &
        echo $! >/tmp/load.pid
        wait $!
        code=$?
        sed 's/,"seconds".*/}/' /tmp/report
        exit $code
      END
      ]
    }
  }
}

output "bootstrap" { value = split(",", module.kafka.bootstrap_servers)[0] }
output "rebalancer" { value = module.kafka.rebalancer }
`, image, mounts, java, libs, program, load, kafkaPartitions))
	return l
}

// bringing returns a folder that contains only a program.
func bringing(w *acctest.Workspace, program string) string {
	w.Helper()
	folder := filepath.Join(w.Dir, "bin")
	content, err := os.ReadFile(program)
	if err == nil {
		err = os.Mkdir(folder, 0o755) //nolint:gosec // copied to hosts as it is
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, filepath.Base(program)), content, 0o755) //nolint:gosec // it is a program
	}
	if err != nil {
		w.Fatal(err)
	}
	return folder
}

// javaOf returns this machine's Java, and the folders that contain it.
func javaOf(t *testing.T) (java string, folders []string) {
	t.Helper()
	found, err := exec.LookPath("java")
	if err == nil {
		java, err = filepath.EvalSymlinks(found)
	}
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Dir(filepath.Dir(java))
	configuration, err := filepath.EvalSymlinks(filepath.Join(home, "lib", "jvm.cfg")) // Debian's is in /etc
	if err != nil {
		t.Fatal(err)
	}
	folders = []string{home}
	if !strings.HasPrefix(configuration, home+"/") {
		folders = append(folders, filepath.Dir(configuration))
	}
	return java, folders
}

// demand makes the policy request this many brokers.
func (l *kafkaBed) demand(brokers int) {
	l.t.Helper()
	command := fmt.Sprintf(`echo '{"load": %d}' >/tmp/demand/new && mv /tmp/demand/new /tmp/demand/load`, brokers*100)
	if _, err := l.site.shell("demand-endpoint-0", command); err != nil {
		l.t.Fatal(err)
	}
}

// rebalancing is the rebalancer's status.
type rebalancing struct {
	Brokers     int
	Copies      int `json:"replication_factor"`
	Reassigning int
	Behind      int `json:"under_replicated"`
	// Moved is the number of bytes that it has moved since it started.
	Moved int64 `json:"moved_bytes"`
}

// status returns the rebalancer's status; empty if it doesn't answer, such as during a restart.
func (l *kafkaBed) status() (now rebalancing) {
	l.t.Helper()
	address := strings.TrimSpace(l.Must("output", "-raw", "rebalancer"))
	if json.Unmarshal([]byte(l.site.get("demand-endpoint-0", address+"/status")), &now) != nil {
		return rebalancing{}
	}
	return now
}

// settled reports whether there are this many brokers, with all replicas of the topic in sync, and no partition being
// moved.
func (l *kafkaBed) settled(brokers int) bool {
	l.t.Helper()
	now := l.status()
	return now.Brokers == brokers && now.Copies == 3 && now.Reassigning+now.Behind == 0
}

// kafkaTool runs one of Kafka's own tools, and returns its output by line.
func (l *kafkaBed) kafkaTool(class, options string) ([]string, error) {
	l.t.Helper()
	output, err := l.site.shell("kafka-broker-0", l.java+class+" "+options)
	return strings.Split(output, "\n"), err
}

// awaitLayout waits until the partitions are round robin over this many brokers, with all replicas in sync and the
// first one leading, and no other broker is registered.
func (l *kafkaBed) awaitLayout(brokers int) {
	l.t.Helper()
	bootstrap := strings.TrimSpace(l.Must("output", "-raw", "bootstrap"))
	want := map[string]string{}
	for p := range kafkaPartitions {
		var replicas []string
		for i := range 3 {
			replicas = append(replicas, strconv.Itoa((p+i)%brokers))
		}
		want[strconv.Itoa(p)] = replicas[0] + " leads " + strings.Join(replicas, ",")
	}
	var got map[string]string
	var lines []string
	defer func() {
		if l.t.Failed() {
			l.t.Logf("the rebalancer says %+v; the layout is %v, and is to be %v; Kafka says\n%s", l.status(), got,
				want, strings.Join(lines, "\n"))
		}
	}()
	acctest.Eventually(l.t, fmt.Sprintf("the layout of %d brokers", brokers), func() (laidOut bool) {
		if !l.settled(brokers) {
			return false // faster than Kafka's own tool
		}
		var err error
		lines, err = l.kafkaTool("TopicCommand", "--bootstrap-server "+bootstrap+" --describe --topic load")
		got = layoutOf(lines)
		return err == nil && maps.Equal(want, got)
	})
	acctest.Eventually(l.t, fmt.Sprintf("%d brokers to be registered, and no others", brokers), func() bool {
		var err error
		lines, err = l.kafkaTool("ClusterTool", "list-endpoints --include-fenced-brokers --bootstrap-server "+bootstrap)
		registered := 0
		for _, line := range lines {
			if id, _, found := strings.Cut(line, " "); found && !strings.Contains(line, "ID") {
				if _, notID := strconv.Atoi(id); notID == nil {
					registered++
				}
			}
		}
		return err == nil && registered == brokers
	})
}

// layoutOf returns the leader and replicas of each partition whose replicas are all in sync.
func layoutOf(described []string) map[string]string {
	layout := map[string]string{}
	for _, line := range described {
		fields := map[string]string{}
		for field := range strings.SplitSeq(line, "\t") {
			name, value, _ := strings.Cut(strings.TrimSpace(field), ": ")
			fields[name] = value
		}
		copies, synced := strings.Split(fields["Replicas"], ","), strings.Split(fields["Isr"], ",")
		slices.Sort(synced)
		if fields["Partition"] != "" && slices.Equal(slices.Sorted(slices.Values(copies)), synced) {
			layout[fields["Partition"]] = fields["Leader"] + " leads " + fields["Replicas"]
		}
	}
	return layout
}

// expectSound ends the load, and fails unless all records are there, once and in order.
func (l *kafkaBed) expectSound() {
	l.t.Helper()
	// Only the load, and only once: a second signal kills it.
	if output, err := l.site.shell("load-load-0", "kill -TERM $(cat /tmp/load.pid)"); err != nil {
		l.t.Fatalf("%v\n%s", err, output)
	}
	l.Write("report.tf", `
data "trainyard_logs" "load" {
  cluster = trainyard_cluster.lab
  member  = "load-load-0"
  tail    = 20
}

output "report" { value = join("\n", data.trainyard_logs.load.lines) }
`)
	type latency struct {
		Records uint64
		P50     float64 `json:"p50_ms"`
		P99     float64 `json:"p99_ms"`
	}
	var report struct {
		Acknowledged, Consumed, Lost, Duplicated uint64
		OutOfOrder                               uint64 `json:"out_of_order"`
		Rest, Change                             latency
	}
	var lines string
	defer func() {
		if l.t.Failed() {
			l.t.Logf("the load's last lines:\n%s", lines)
		}
	}()
	acctest.Eventually(l.t, "what the load says in the end", func() bool {
		l.Must("apply", "-refresh-only", "-auto-approve")
		lines = l.Must("output", "-raw", "report")
		for line := range strings.Lines(lines) {
			if json.Unmarshal([]byte(line), &report) == nil && report.Acknowledged > 0 {
				return true
			}
		}
		return false
	})
	l.t.Logf("%+v", report)
	if report.Consumed != report.Acknowledged || report.Lost+report.Duplicated+report.OutOfOrder > 0 {
		l.t.Errorf("of the records some are not there, twice, or out of order: %+v", report)
	}
	if report.Rest.Records == 0 || report.Change.Records == 0 {
		l.t.Errorf("the latencies are not of both times: %+v", report)
	}
}
