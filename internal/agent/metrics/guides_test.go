package metrics

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// scrapeConfigs are configurations of Prometheus on a page.
var scrapeConfigs = regexp.MustCompile("(?sm)^```yaml\n(scrape_configs:.*?)^```$")

// TestJobsOfGuides: in the guides' configurations of Prometheus, agents and controllers are separate jobs, under the
// names that the alert rules and queries select.
func TestJobsOfGuides(t *testing.T) {
	want := map[string][]string{"trainyard": {"9465"}, "trainyard-controller": {"9466"}}
	guides, err := filepath.Glob("../../../templates/guides/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, guide := range guides {
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range scrapeConfigs.FindAllStringSubmatch(string(text), -1) {
			found++
			if diff := cmp.Diff(want, portsByJob(t, block[1])); diff != "" {
				t.Errorf("%s: ports by job (-want +got):\n%s\n%s", guide, diff, block[1])
			}
		}
	}
	if found == 0 {
		t.Error("no guide configures Prometheus")
	}
}

// portsByJob returns the ports that each job of a configuration scrapes, without repetitions in a row.
func portsByJob(t *testing.T, config string) map[string][]string {
	t.Helper()
	var parsed struct {
		Jobs []struct {
			Name   string                       `yaml:"job_name"`
			Static []struct{ Targets []string } `yaml:"static_configs"`
			DNS    []struct{ Port int }         `yaml:"dns_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(config), &parsed); err != nil {
		t.Fatal(err)
	}
	ports := map[string][]string{}
	for _, job := range parsed.Jobs {
		for _, group := range job.Static {
			for _, target := range group.Targets {
				_, port, err := net.SplitHostPort(target)
				if err != nil {
					t.Fatal(err)
				}
				ports[job.Name] = append(ports[job.Name], port)
			}
		}
		for _, name := range job.DNS {
			ports[job.Name] = append(ports[job.Name], strconv.Itoa(name.Port))
		}
		ports[job.Name] = slices.Compact(ports[job.Name])
	}
	return ports
}
