//go:build linux

package systems_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// On three bare hosts, controllers, brokers and the rebalancer, which is brought there, find each other at the hosts'
// addresses.
func TestSystemKafkaHosts(t *testing.T) {
	l := newKafka(t)
	java, folders := javaOf(t)
	s := newHosts(t, append(folders, l.libs), 3)
	program := acctest.Build(t, acctest.Rebalancer)
	bin := filepath.Join(l.Dir, "bin")
	l.must(os.Mkdir(bin, 0o755)) //nolint:gosec // it is brought to hosts as it is
	content, err := os.ReadFile(program)
	l.must(err)
	l.must(os.WriteFile(filepath.Join(bin, "rebalancer"), content, 0o755)) //nolint:gosec // it is a program
	l.Write("main.tf", fmt.Sprintf(`
terraform {
  required_providers { trainyard = { source = "trainyard/trainyard" } }
}
%s
module "kafka" {
  source     = "./modules/kafka"
  cluster    = trainyard_cluster.lab
  java       = %q
  libs       = %q
  env        = { JDK_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }
  controller = { replicas = 3, heap_mib = 192, placement = { strategy = "one_per_host" } }
  broker     = { heap_mib = 256, conf = { "broker.rack" = "{{ .Host }}" } }
  rebalancer = { files = "bin" }
}
output "bootstrap_servers" { value = module.kafka.bootstrap_servers }
output "rebalancer" { value = module.kafka.rebalancer }
`, s.cluster, java, l.libs))
	l.Must("get")
	l.Must("apply", "-auto-approve")
	at := strings.Split(l.Must("output", "-raw", "bootstrap_servers"), ",")
	if slices.Sort(at); len(slices.Compact(at)) != 3 || !strings.HasSuffix(at[2], ":9092") {
		t.Errorf("clients are told of %q, want three hosts", at)
	}
	rebalancer := strings.Replace(strings.TrimPrefix(l.Must("output", "-raw", "rebalancer"), "http://"), ":", "/", 1)
	acctest.Eventually(t, "the rebalancer to see three brokers", func() bool {
		status, err := s.run(fmt.Sprintf(`bash -c 'exec 3<>/dev/tcp/%s && printf "GET /status HTTP/1.0\r\n\r\n" >&3 && cat <&3'`, rebalancer))
		return err == nil && strings.Contains(status, `"brokers":3`)
	})
	l.ExpectNoChange("on bare hosts")
	l.Must("destroy", "-auto-approve")
	if left := s.left(); strings.Contains(left, ".service") {
		t.Errorf("after the destroy there is\n%s", left)
	}
}

// javaOf returns the Java of this machine, and the folders that it is in.
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
