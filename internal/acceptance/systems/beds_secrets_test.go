//go:build linux

package systems_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// canary is the value of the variable "token". It doesn't look like a secret, so nothing can hide it by guessing.
const canary = "a-canary-beside-a-module"

// savedPlan is the file of saved plans.
const savedPlan = "tfplan"

// withSecret makes Terraform trace all of its further runs, and returns the configuration of the group "beside", whose
// member reads a secret on the first machine and prints its length.
func (s *site) withSecret(t *testing.T, w *acctest.Workspace) string {
	t.Helper()
	acceptance.Requires(t, acceptance.WriteOnlyAttributes)
	s.secrets["secret of a group"] = canary
	w.Env("TF_VAR_token", canary)
	w.Env("TF_LOG", "TRACE")
	w.Env("TF_LOG_PATH", traceOf(w))
	image, mounts, file := "null", "null", "$CREDENTIALS_DIRECTORY/token"
	if s.image != "" {
		image, mounts, file = fmt.Sprintf("%q", s.image), "["+s.mounts+"]", "/run/secrets/token"
	}
	return fmt.Sprintf(`
variable "token" {
  type      = string
  sensitive = true
  ephemeral = true
}

resource "trainyard_group" "beside" {
  cluster = trainyard_cluster.lab
  name    = "beside"
  image   = %s
  command = ["/bin/sh", "-euc", "read -r token <\"%s\" || :; echo \"a secret of $${#token} characters\""]
  roles = {
    reader = {
      replicas  = 1
      mounts    = %s
      placement = { hosts = [%q] }
    }
  }
  container  = { secrets = { token = { value = var.token, version = "1" } } }
  completion = { when = "all" }
  wait_for   = "completed"
}
`, image, file, mounts, s.hosts[0])
}

// traceOf returns the log file of a workspace's Terraform.
func traceOf(w *acctest.Workspace) string { return filepath.Join(w.Dir, "trace.log") }

// expectHidden fails if one of the site's secrets appears in Terraform's logs, in the state, in the saved plan, in what
// Terraform shows of both, or in the logs of these members. Of the group "beside", it also expects the secret's length.
func (s *site) expectHidden(w *acctest.Workspace, members ...string) {
	w.Helper()
	seen := map[string]string{
		"plan": w.Must("show", savedPlan), "plan in JSON": w.Must("show", "-json", savedPlan),
		"state in JSON": w.Must("show", "-json"),
	}
	for what, file := range map[string]string{"trace": traceOf(w), "state": filepath.Join(w.Dir, "terraform.tfstate")} {
		content, err := os.ReadFile(file)
		if err != nil {
			w.Fatal(err)
		}
		seen[what] = string(content)
	}
	if !strings.Contains(seen["trace"], "engine call") || !strings.Contains(seen["trace"], "[TRACE]") {
		w.Errorf("there is no trace of the provider in Terraform's log, which has %d bytes", len(seen["trace"]))
	}
	const reader = "beside-reader-0"
	for _, member := range append(members, reader) {
		log, err := s.log(member)
		if err != nil {
			w.Fatal(err)
		}
		seen["log of "+member] = log
	}
	if want := fmt.Sprintf("a secret of %d characters", len(canary)); !strings.Contains(seen["log of "+reader], want) {
		w.Errorf("the member beside says %q, want %q", seen["log of "+reader], want)
	}
	for name, secret := range s.secrets {
		for where, text := range seen {
			if strings.Contains(text, secret) {
				w.Errorf("the %s can be seen in the %s", name, where)
			}
		}
	}
}
