//go:build linux

package process_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/imagesource"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweepctl"
)

// read returns the text of a file, given its path from the top of the repository.
func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"../../.."}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestExperimentsParameters: the module's README lists exactly the parameters with their defaults.
func TestExperimentsParameters(t *testing.T) {
	const module = "modules/experiments"
	var want, got []string
	declared := regexp.MustCompile(`(?m)^ +(\w+) += \{ default = "?([\w.]+)"?,`)
	for _, found := range declared.FindAllStringSubmatch(read(t, module, "parameters.tf"), -1) {
		value := found[2]
		switch found[1] {
		case "learning_rate":
			value = "0.000001" // the network's; the table's is in the text beside it
		case "agent":
			value = "`" + value + "`"
		}
		want = append(want, found[1]+" "+value)
	}
	_, table, _ := strings.Cut(read(t, module, "README.md"), "| section | parameters")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, found := range regexp.MustCompile("[|,] `(\\w+)` (`?[\\w.]+`?)").FindAllStringSubmatch(table, -1) {
		got = append(got, found[1]+" "+found[2])
	}
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the README has\n%q, the code has\n%q", got, want)
	}
}

// TestExperimentsImage: the module's Dockerfile is valid as far as can be checked without Docker, and has the NumPy
// that the program is tested with, and TensorBoard.
func TestExperimentsImage(t *testing.T) {
	folder := filepath.Join(acceptance.Modules, "experiments", "train")
	build := imagesource.Build{Context: folder, Dockerfile: "Dockerfile"}
	if err := build.Check(); err != nil {
		t.Fatal(err)
	}
	bases, err := build.Bases()
	if err != nil || !slices.Equal(bases, []string{"python:3.11-slim"}) {
		t.Errorf("it is built from %q, %v", bases, err)
	}
	dockerfile := read(t, "modules/experiments/train/Dockerfile")
	locked := regexp.MustCompile(`(?m)^numpy==([\d.]+) ; python_full_version < '3\.12'`)
	numpy := locked.FindStringSubmatch(read(t, "internal/tools/rl.txt"))
	if numpy == nil || !strings.Contains(dockerfile, " numpy=="+numpy[1]+" tensorboard \"setuptools<81\"\n") {
		t.Errorf("NumPy is tested as %q, with TensorBoard; the Dockerfile has\n%s", numpy, dockerfile)
	}
	if !strings.Contains(dockerfile, "COPY *.py /srv/experiments/\n") {
		t.Errorf("it does not bring the program to where the module runs it:\n%s", dockerfile)
	}
}

// routesTests are the tests that show what the module's README says in place of each of the paper's routes and pages,
// by the beginning of its row. A test is the file and the name of a function, or of a run in a module's test.
var routesTests = []struct{ route, file, name string }{
	{"start N", "internal/acceptance/systems/experiments_admission_test.go", "TestSystemExperimentsCard"},
	{"validation", "modules/experiments/tests/configs.tftest.hcl", "gamma_above_one"},
	{"the config stored", "internal/acceptance/systems/experiments_admission_test.go", "TestSystemExperimentsCard"},
	{"its status", "internal/acceptance/systems/experiments_test.go", "TestSystemExperiments"},
	{"health", "internal/acceptance/systems/experiments_test.go", "TestSystemExperiments"},
	{"health: created", "internal/acceptance/systems/experiments_admission_test.go", "TestSystemExperimentsAdmission"},
	{"health: restarting", "internal/sweep/end_test.go", "TestEnded"},
	{"health: removing", "internal/acceptance/systems/experiments_test.go", "TestSystemExperiments"},
	{"health: exited", "internal/sweep/end_test.go", "TestOutOfMemory"},
	{"logs", "internal/acceptance/systems/experiments_test.go", "TestSystemExperiments"},
	{"results as tar", "internal/acceptance/systems/experiments_test.go", "TestSystemExperiments"},
	{"TensorBoard port", "internal/acceptance/systems/experiments_test.go", "TestSystemExperiments"},
	{"pause", "internal/acceptance/systems/experiments_test.go", "TestSystemExperiments"},
	{"remove", "internal/acceptance/systems/experiments_test.go", "TestSystemExperiments"},
	{"remove what someone else", "internal/acceptance/systems/experiments_test.go", "TestSystemExperiments"},
	{"watcher", "internal/acceptance/systems/experiments_test.go", "TestSystemExperiments"},
	{"utilisation", "internal/acceptance/process/utilisation_prometheus_test.go", "TestAccUtilisationFromPrometheus"},
	{"utilisation", "internal/top/top_test.go", "TestTerminal"},
	{"utilisation", "internal/acceptance/systemd/monitoring_test.go", "TestAccMonitoring"},
	{"token", "internal/acceptance/swarm/endpoint_test.go", "TestAccSwarmOverTLS"},
	{"web pages to upload", "modules/experiments/tests/process.tftest.hcl", "runs"},
	{"web page of all", "internal/top/tab_test.go", "TestSweepTables"},
	{"web page of all", "internal/report/sweeps_test.go", "TestShownRuns"},
	{"web page of one", "internal/acceptance/systems/experiments_test.go", "TestSystemExperiments"},
	{"web page of results", "internal/acceptance/systems/experiments_test.go", "TestSystemExperiments"},
	{"37 side by side", "internal/acceptance/systems/experiments_admission_test.go", "TestSystemExperimentsCard"},
}

// TestExperimentsRoutes: everything that the module's README names in place of the paper's routes and pages exists, and
// has a test. It names all states, theirs and ours.
func TestExperimentsRoutes(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "modules/experiments/README.md"), "\n| the paper | here |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var theirs, ours []string
	tested := map[string]bool{} // rows
	for _, test := range routesTests {
		if text := read(t, test.file); !strings.Contains(text, "\nfunc "+test.name+"(") &&
			!strings.Contains(text, "\nrun \""+test.name+"\" {") {
			t.Errorf("%s has no test %s, which covers %q", test.file, test.name, test.route)
		}
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(test.route) + `.*\n?`).FindString(table)
		if row == "" {
			t.Errorf("no row begins with %q", test.route)
		}
		tested[row] = true
	}
	for row := range strings.Lines(table) {
		if !tested[row] {
			t.Errorf("no test is known for %q", row)
		}
		cells := strings.Split(row, "|")
		if len(cells) != 4 {
			t.Fatalf("%q has %d cells", row, len(cells)-2)
		}
		theirs = append(theirs, regexp.MustCompile(`\w+`).FindAllString(cells[1], -1)...)
		for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1) {
			ours = append(ours, found[1])
		}
	}
	for _, state := range []string{"created", "restarting", "running", "removing", "paused", "exited", "dead"} {
		if !slices.Contains(theirs, state) {
			t.Errorf("the paper's state %s is missing", state)
		}
	}
	for _, state := range domain.RunStates {
		if !slices.Contains(ours, string(state)) {
			t.Errorf("the state %s is missing", state)
		}
	}
	for _, name := range ours {
		if err := named(t, name); err != nil {
			t.Errorf("the table has %s: %v", name, err)
		}
	}
}

// named returns an error if the module or the provider has nothing of this name.
func named(t *testing.T, name string) error {
	t.Helper()
	const module = "modules/experiments"
	folder := filepath.Join(root, module)
	is := func(d declaration) bool { return d.name == name }
	if args, ok := strings.CutPrefix(name, "trainyard sweep "); ok {
		// Without an engine, a valid command gets as far as this.
		err := sweepctl.Run(t.Context(), strings.Fields(args), engine.Registry{}, io.Discard)
		switch {
		case err == nil:
			return errors.New("it succeeds without an engine")
		case !strings.Contains(err.Error(), "unknown engine"):
			return fmt.Errorf("it is not valid: %w", err)
		}
		return nil
	}
	if command, ok := strings.CutPrefix(name, "trainyard "); ok {
		if !strings.Contains(read(t, "main.go"), fmt.Sprintf("\t{%q, ", command)) {
			return fmt.Errorf("there is no command %q", command)
		}
		return nil
	}
	if source, ok := strings.CutPrefix(name, "data."); ok {
		server := provider.NewServer("test", engine.Registry{"process": {}})
		schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
		if err == nil && schemas.DataSourceSchemas[source] == nil {
			err = fmt.Errorf("there is no data source %q", source)
		}
		return err
	}
	if output, ok := strings.CutPrefix(name, "module.pricing."); ok {
		name, _, _ = strings.Cut(output, "[")
		if !slices.ContainsFunc(declared(t, folder, "outputs.tf", "output"), is) {
			return fmt.Errorf("there is no output %q", name)
		}
		return nil
	}
	if strings.HasSuffix(name, ".json") {
		if !strings.Contains(read(t, module, "train/train.py")+read(t, "internal/sweep/results.go"), `"`+name+`"`) {
			return fmt.Errorf("nobody writes %q", name)
		}
		return nil
	}
	if slices.Contains(domain.RunStates, domain.RunState(name)) {
		return nil
	}
	name, attribute, _ := strings.Cut(name, ".")
	if !slices.ContainsFunc(declared(t, folder, "variables.tf", "variable"), is) {
		return fmt.Errorf("there is no variable %q", name)
	}
	_, variable, _ := strings.Cut(read(t, module, "variables.tf"), "variable \""+name+"\" {\n")
	variable, _, _ = strings.Cut(variable, "\n}\n")
	if attribute != "" && !regexp.MustCompile(`\b`+attribute+` += `).MatchString(variable) {
		return fmt.Errorf("the variable %q has no %q", name, attribute)
	}
	return nil
}
