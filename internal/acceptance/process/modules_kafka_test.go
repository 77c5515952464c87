//go:build linux

package process_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/imagesource"
)

// TestKafkaImage: the module's Dockerfile is valid as far as can be checked without Docker, with the Kafka that the
// module is tested with and the Go that its programs need, and the README names that Kafka.
func TestKafkaImage(t *testing.T) {
	build := imagesource.Build{Context: filepath.Join(acceptance.Modules, "kafka"), Dockerfile: "Dockerfile"}
	if err := build.Check(); err != nil {
		t.Fatal(err)
	}
	tested := regexp.MustCompile(`<artifactId>kafka_2.13</artifactId>\s*<version>([\d.]+)<`).FindStringSubmatch(read(t,
		"internal/tools/kafka/pom.xml"))
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))
	if tested == nil || language == nil {
		t.Fatalf("Kafka is tested as %q, and go.mod has Go %q", tested, language)
	}
	bases, err := build.Bases()
	slices.Sort(bases)
	if want := []string{"apache/kafka:" + tested[1], "golang:" + language[1] + "-alpine"}; err != nil ||
		!slices.Equal(bases, want) {
		t.Errorf("it is built from %q, %v, want %q", bases, err, want)
	}
	if readme := read(t, "modules/kafka/README.md"); !strings.Contains(readme, "Kafka "+tested[1]) {
		t.Errorf("the README does not mention Kafka %s", tested[1])
	}
}
