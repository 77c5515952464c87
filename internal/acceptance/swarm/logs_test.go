//go:build linux

package swarm_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm"
	"github.com/trainyard/terraform-provider-trainyard/internal/logs"
)

// The log of each run is followed to its end, across a restart, and the exit code is that of the member that failed.
func TestAccSwarmLogs(t *testing.T) {
	acceptance.Test(t)
	l := newSwarmLab(t, sharedBed(t), "written")
	engines := engine.Registry{swarm.Name: swarm.Driver(swarm.Program{File: l.program, Version: "dev"})}
	config := func(run, code int) string {
		return l.config(l.cluster(""), l.group(fmt.Sprintf(`
  image     = %q
  framework = "tensorflow"
  roles = {
    ps     = { replicas = 1, args = ["wait"] }
    worker = {
      replicas   = 1
      args       = ["print:begins", "environment:RUN", "exit:%[3]d"]
      restart    = { max_attempts = 1, delay = "100ms" }
      exit_codes = { final = ["9"] }
    }
  }
  env      = { RUN = "run %[2]d" }
  triggers = { run = "%[2]d" }`, memberImage, run, code)))
	}
	completed := func(config string) string {
		return strings.Replace(config, "triggers =", "wait_for = \"completed\"\n  triggers =", 1)
	}
	says := func(code int, want string) resource.TestCheckFunc {
		return func(*terraform.State) error {
			var out bytes.Buffer
			args := []string{
				"--engine", "swarm", "--endpoint", l.bed.Nodes[0].Host(), "--cluster", l.name, l.name, "--follow",
			}
			err := logs.Run(t.Context(), args, engines, nil, &out)
			exit, failed := errors.AsType[*command.ExitError](err)
			if failed != (code != 0) || failed && exit.Code != code || !failed && err != nil {
				return fmt.Errorf("%w, not exit code %d:\n%s", err, code, &out)
			}
			return acceptance.Differences(want, out.String())
		}
	}
	fails := regexp.MustCompile("exit code [79]")
	// Whether the next plan repeats a failed apply depends on when the member failed, so no step checks that.
	expect := func(code int, want string) func() { return func() { l.must(says(code, want)(nil)) } }
	l.test(
		resource.TestStep{Config: config(1, 0), Check: says(0, "begins\nrun 1\n")},
		resource.TestStep{Config: config(2, 0), Check: says(0, "begins\nrun 2\n")},
		resource.TestStep{Config: completed(config(3, 7)), ExpectError: fails},
		resource.TestStep{
			PreConfig: expect(7, "begins\nrun 3\nbegins\nrun 3\n"), Config: completed(config(4, 9)), ExpectError: fails,
		},
		resource.TestStep{
			PreConfig: expect(9, "begins\nrun 4\n"), Config: config(5, 0), Check: says(0, "begins\nrun 5\n"),
		},
	)
}
