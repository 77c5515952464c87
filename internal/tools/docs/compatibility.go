package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A pin is where the repository has a version: a file, and an expression whose first group is the version.
type pin struct{ file, expression string }

// pins are the versions in each row of the README's table "Compatibility".
var pins = map[string][]pin{
	"Terraform": {
		{".github/workflows/test.yml", `terraform: (\d+\.\d+)\.\*`}, {"internal/acceptance/version.go", `= ">= (.+)"`},
	},
	"OpenTofu": {{"internal/tools/terraform.sh", `opentofu_version=v(\S+)`}},
	"Go":       {{"go.mod", `(?m)^go (\S+)`}},
	"Docker Engine": {
		{"internal/doctor/check_docker.go", `oldestDocker = "(.+)"`},
		{"internal/acctest/testbed/engine.go", `"(\d+\.\d+)"`},
	},
	"systemd": {
		{"internal/engine/systemd/facts/check.go", `oldestSystemd = (\d+)`},
		{"internal/acctest/testbed/debian.go", `"Debian (\d+) with systemd`},
	},
	"glibc": {
		{".goreleaser.yml", `glibc (\d+\.\d+)`}, {"internal/acctest/testbed/debian.go", `"Debian (\d+) with systemd`},
	},
	"TensorFlow": {{"internal/tools/tensorflow.txt", `(?m)^tensorflow-cpu==(\S+)`}},
	"Spark":      {{"internal/tools/spark.txt", `(?m)^pyspark==(\S+)`}},
	"XGBoost":    {{"internal/tools/spark.txt", `(?m)^xgboost-cpu==(\S+) ; python_full_version < '3.12'`}},
	"Kafka":      {{"internal/tools/kafka/jars.sha256", `kafka-clients-(\S+)\.jar`}},
	"JAX":        {{"internal/tools/jax.txt", `(?m)^jax==(\S+) ; python_full_version < '3.12'`}},
	"Ray":        {{"internal/tools/ray.txt", `(?m)^ray==(\S+)`}},
	"Dask":       {{"internal/tools/dask.txt", `(?m)^dask==(\S+)`}},
	"mpi4py":     {{"internal/tools/mpi.txt", `(?m)^mpi4py==(\S+)`}},
	"MPICH":      {{"internal/tools/mpi.txt", `(?m)^mpich==(\S+)`}},
}

var (
	compatibility = regexp.MustCompile(`(?s)\n## Compatibility\n.*?(\n\| .*?)\n\n`)
	number        = regexp.MustCompile(`\b\d+(\.\d+)*\b`)
)

// staleVersions reports rows of the README's table "Compatibility" whose versions are not those of the repository.
func staleVersions(root string) (wrong []string, err error) {
	readme, err := os.ReadFile(path.Join(root, "README.md"))
	if err != nil {
		return nil, err
	}
	table := compatibility.FindStringSubmatch(string(readme))
	if table == nil {
		return []string{`README.md: no table below "Compatibility"`}, nil
	}
	rows := map[string][]string{}
	for row := range strings.Lines(strings.TrimSpace(table[1])) {
		cells := strings.Split(row, "|")
		if name := strings.TrimSpace(cells[1]); name != "" && !strings.HasPrefix(name, "-") {
			rows[name] = slices.Sorted(slices.Values(number.FindAllString(strings.Join(cells[2:], " "), -1)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pins)) {
		pinned, err := versions(root, pins[name])
		if err != nil {
			return nil, err
		}
		if shown := slices.Compact(rows[name]); !slices.Equal(shown, pinned) {
			wrong = append(wrong,
				fmt.Sprintf(`README.md: "Compatibility" has versions %q of %s, and the repository has %q`,
					shown, name, pinned))
		}
		delete(rows, name)
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if len(rows[name]) > 0 {
			wrong = append(wrong,
				fmt.Sprintf(`README.md: "Compatibility" has versions %q of %s, which no pin confirms`, rows[name],
					name))
		}
	}
	return wrong, nil
}

// versions returns all versions that pins find, sorted.
func versions(root string, pins []pin) (found []string, err error) {
	for _, p := range pins {
		content, err := os.ReadFile(path.Join(root, p.file))
		if err != nil {
			return nil, err
		}
		matches := regexp.MustCompile(p.expression).FindAllStringSubmatch(string(content), -1)
		if len(matches) == 0 {
			return nil, fmt.Errorf("%s: nothing matches %s", p.file, p.expression)
		}
		for _, m := range matches {
			found = append(found, m[1])
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
