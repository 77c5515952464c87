//go:build linux

package process_test

import (
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/proctree"
)

// submissions returns the jobs that submit the project's current commit, as run on GitHub and GitLab.
func (p *project) submissions(run string) map[string]pipeline {
	p.Helper()
	variables := strings.Join(p.backend.env(), "\n")
	commit := p.git("rev-parse", "HEAD")
	gitLabVariables := map[string]string{
		"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main",
		"TRAINYARD_FOLDER": p.folder, "CI_COMMIT_SHA": commit, "CI_JOB_ID": run,
		"TRAINYARD_ENV": variables, // as a project variable
	}
	reusable := filepath.Join(workflows, "submit.yml")
	gitHubValues := called(p.T, filepath.Join(ciExamples, "github/submit.yml"), "train", reusable, map[string]string{
		"github.sha": commit, "github.run_id": run, "github.run_attempt": "1",
		"secrets.TRAINYARD_ENV": variables, // as a secret of the repository
	})
	return map[string]pipeline{
		"GitHub": gitHub(p.T, reusable, "submit", gitHubValues),
		"GitLab": gitLab(p.T, filepath.Join(ciExamples, "gitlab/submit.yml"), ".trainyard-submit", gitLabVariables),
	}
}

// shown fails unless the output contains these texts in this order.
func shown(t *testing.T, output string, texts ...string) {
	t.Helper()
	rest := output
	for _, text := range texts {
		_, after, found := strings.Cut("\n"+rest, text) // the newline at the end of one may start the next
		if !found {
			t.Fatalf("%q is not shown, or not after those before it, in\n%s", text, output)
		}
		rest = after
	}
}

// notRun fails unless GitHub shows this text without running its commands, and runs commands again at the output's end.
func notRun(t *testing.T, output, text string) {
	t.Helper()
	_, after, _ := strings.Cut("\n"+output, "\n::stop-commands::")
	token, after, _ := strings.Cut(after, "\n")
	if token == "" || !strings.Contains(after, text) || strings.Index(after, "::"+token+"::\n")+len(token)+5 != len(after) {
		t.Errorf("GitHub runs commands of %q in\n%s", text, output)
	}
}

// A job is submitted as on GitHub and GitLab: its log is shown as it grows, and the pipeline ends with its exit code.
func TestAccSubmit(t *testing.T) {
	for _, service := range []string{"GitHub", "GitLab"} {
		t.Run(service, func(t *testing.T) {
			p := newProject(t, "job", "train", "ci-lab")
			job := p.submissions("17")[service]

			p.backend.hold("OperationTypePlan", "OperationTypeApply") // while others apply
			code, output := p.wait(p.start(job))
			if code != 0 || !p.backend.waited() {
				t.Fatalf("exit code %d, or it does not wait for the lock\n%s", code, output)
			}
			shown(t, output, "group job of cluster ci-lab\n", "\ncommit "+p.git("rev-parse", "HEAD")+"\n",
				"\nepoch 10 loss", "\nepoch 40 loss", "\nslope 3.00 offset 1.00\n")
			if service == "GitHub" {
				shown(t, output, "::add-mask::"+statePassword+"\n")
			} else if strings.Contains(output, statePassword) {
				t.Errorf("the password of the backend is shown:\n%s", output)
			}

			if p.backend.locked() {
				t.Error("the state is still locked")
			}

			// Another run of the same commit, whose model does not become good enough. It shows only its own log.
			job = p.submissions("18")[service]
			code, output = p.wait(p.start(job, "TF_VAR_target=0"))
			if code != 3 || strings.Contains(output, "slope 3.00") {
				t.Fatalf("exit code %d, not that of the job, or the log of another run\n%s", code, output)
			}
			shown(t, output, "\nepoch 40 loss", "\nthe loss is", "group job failed: ", "job-worker-0", "exit code 3")

			if service == "GitLab" {
				return // the script is the same
			}
			// Repeating a run starts no other: it reports the same outcome.
			code, output = p.wait(p.start(job, "TF_VAR_target=0"))
			if code != 3 {
				t.Fatalf("exit code %d\n%s", code, output)
			}
			shown(t, output, "No changes", "\nepoch 40 loss", "\nthe loss is")

			// With another target, it would have to start another, which the same triggers don't tell apart.
			code, output = p.wait(p.start(job, "TF_VAR_target=1"))
			if code != 1 || strings.Contains(output, "\nepoch 40 loss") {
				t.Errorf("exit code %d, or it shows the log of the run before\n%s", code, output)
			}
			shown(t, output, "none of its triggers that are known before apply do")
		})
	}
}

// The log is shown while the job runs, during which the state is not locked. GitHub doesn't run what it contains.
// Cancelling the pipeline leaves the job running.
func TestAccSubmitStreams(t *testing.T) {
	p := newProject(t, "job", "train", "ci-lab")
	done := filepath.Join(t.TempDir(), "done")
	p.must(os.WriteFile(filepath.Join(p.repository, "train/train/train.py"), []byte(`
import os, time
print("::add-mask::loss")
print("waits")
while not os.path.exists("`+done+`"):
    time.sleep(0.02)
print("ends", end="")
`), 0o600))
	p.commit()
	job := p.submissions("1")["GitHub"]
	first := p.start(job)
	acctest.Eventually(t, "the log", func() bool { return strings.Contains(first.outputSoFar(), "\nwaits\n") })
	acctest.Eventually(t, "the end of the apply",
		func() bool { return strings.Contains(first.outputSoFar(), "Apply complete!") })
	if p.backend.locked() {
		t.Error("the state is locked while the job runs")
	}
	p.must(first.Process.Signal(syscall.SIGTERM))
	code, output := p.wait(first)
	if code == 0 {
		t.Errorf("a pipeline that was cancelled succeeds:\n%s", output)
	}
	notRun(t, output, "::add-mask::loss\n")
	// The same run, followed again.
	again := p.start(job)
	acctest.Eventually(t, "the log", func() bool { return strings.Contains(again.outputSoFar(), "\nwaits\n") })
	p.must(os.WriteFile(done, nil, 0o600))
	code, output = p.wait(again)
	if code != 0 || !strings.Contains(output, "\nends\n") {
		t.Errorf("exit code %d\n%s", code, output)
	}
	notRun(t, output, "::add-mask::loss\n")
}

// Cancelling a pipeline during the apply ends the apply, which unlocks the state: the shell passes on a signal that
// only it gets, as on GitHub, and Terraform gets none twice if the whole process group does, as by GitLab's shell
// executor, or if each process does, the youngest first, as by GitLab's others. The state has the group then, or the
// destroy would fail.
func TestAccSubmitCancelled(t *testing.T) {
	// A shell can't trap a signal that is ignored from its start, as it is in a script's background job. A signal that
	// is handled here isn't.
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, os.Interrupt)
	t.Cleanup(func() { signal.Stop(handled) })
	for name, c := range map[string]struct {
		service string
		cancel  func(p *project, r *running)
	}{
		"GitHub": {"GitHub", func(p *project, r *running) { p.must(r.Process.Signal(os.Interrupt)) }},
		"GitLab's shell": {"GitLab", func(p *project, r *running) {
			p.must(syscall.Kill(-r.Process.Pid, syscall.SIGTERM))
		}},
		"GitLab's container": {"GitLab", func(p *project, r *running) {
			terraform, provider := p.applying(r)
			p.must(syscall.Kill(provider, syscall.SIGTERM))
			p.must(syscall.Kill(terraform, syscall.SIGTERM))
			acctest.Eventually(p, "the end of the apply", func() bool { return !p.backend.locked() })
			p.must(r.Process.Signal(syscall.SIGTERM))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, "job", "train", "ci-lab")
			p.must(os.WriteFile(filepath.Join(p.repository, "train/job_override.tf"), []byte(`
resource "trainyard_group" "job" {
  command  = ["/bin/sh", "-c", "echo begins; sleep infinity"]
  wait_for = "completed"
}
`), 0o600))
			p.commit()
			r := p.start(p.submissions("1")[c.service])
			acctest.Eventually(t, "the log", func() bool { return strings.Contains(r.outputSoFar(), "\nbegins\n") })
			if !p.backend.locked() {
				t.Fatalf("the apply does not wait for the job:\n%s", r.outputSoFar())
			}
			c.cancel(p, r)
			acctest.Eventually(t, "the end of the apply", func() bool { return !p.backend.locked() })
			code, output := p.wait(r)
			if code == 0 {
				t.Error("a pipeline that was cancelled succeeds")
			}
			if strings.Count(output, "Interrupt received.") != 1 || strings.Contains(output, "Two interrupts") {
				t.Errorf("Terraform is not interrupted once:\n%s", output)
			}
		})
	}
}

// applying returns the processes of Terraform and the provider that apply.
func (p *project) applying(r *running) (terraform, provider int) {
	p.Helper()
	table, err := proctree.ScanBy("/proc", func(p proctree.Process) string { return strconv.Itoa(p.Parent) })
	p.must(err)
	for _, child := range table[strconv.Itoa(r.Process.Pid)] {
		for _, grandchild := range table[strconv.Itoa(child.PID)] {
			terraform, provider = child.PID, grandchild.PID
		}
	}
	if provider == 0 {
		p.Fatalf("nothing is applied:\n%s", r.outputSoFar())
	}
	return terraform, provider
}

// If the provider keeps its clusters elsewhere than the follower looks for them, the pipeline ends with the reason.
func TestAccSubmitElsewhere(t *testing.T) {
	elsewhere := t.TempDir() // lives longer than the project
	p := newProject(t, "job", "train", "ci-lab")
	p.must(os.WriteFile(filepath.Join(p.repository, "train/provider.tf"),
		[]byte("provider \"trainyard\" {\n  state_dir = \""+elsewhere+"\"\n}\n"), 0o600))
	p.commit()
	code, output := p.wait(p.start(p.submissions("1")["GitHub"]))
	if code != 1 {
		t.Errorf("exit code %d\n%s", code, output)
	}
	shown(t, output, "Apply complete!",
		"its run of group job is not in cluster ci-lab (engine process, "+p.files.Root+"): ",
		"set TRAINYARD_STATE_DIR to the same folder")
}

// Without triggers the log can't be followed, so nothing is applied; a failed apply is no success.
func TestAccSubmitRefuses(t *testing.T) {
	p := newProject(t, "job", "train", "ci-lab")
	with := func(file, content string) pipeline {
		t.Helper()
		p.must(os.WriteFile(filepath.Join(p.repository, "train", file), []byte(content), 0o600))
		p.commit()
		return p.submissions("1")["GitHub"]
	}
	untriggered := with("job_override.tf", "resource \"trainyard_group\" \"job\" {\n  triggers = null\n}\n")
	code, output := p.wait(p.start(untriggered))
	if code == 0 || !p.backend.empty() {
		t.Errorf("without triggers, exit code %d\n%s", code, output)
	}
	shown(t, output, "trainyard_group.job has no triggers that are known before apply")

	endless := with("job_override.tf",
		"resource \"trainyard_group\" \"job\" {\n  completion = { when = \"never\" }\n}\n")
	code, output = p.wait(p.start(endless))
	if code == 0 || !p.backend.empty() {
		t.Errorf("for a service, exit code %d\n%s", code, output)
	}
	shown(t, output, "trainyard_group.job never completes")

	// The job fails at once. The apply fails because of it, or because of what comes after it.
	with("job_override.tf", `
resource "trainyard_group" "job" {
  command = ["/bin/sh", "-c", "echo begins; exit 9"]
}
`)
	code, output = p.wait(p.start(with("later.tf", `
resource "trainyard_group" "later" {
  cluster    = trainyard_cluster.lab
  name       = "later"
  command    = ["/bin/sh", "-c", "exit 1"]
  roles      = { worker = { replicas = 1, restart = { condition = "never" } } }
  depends_on = [trainyard_group.job]
  triggers   = { run = var.run }
}
`), "TRAINYARD_GROUP=job"))
	if code != 9 {
		t.Errorf("exit code %d, not 9\n%s", code, output)
	}
	shown(t, output, "\nbegins\n")
}
