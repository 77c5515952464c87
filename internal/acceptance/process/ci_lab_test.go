//go:build linux

package process_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

const (
	workflows  = "../../../.github/workflows"
	ciExamples = acceptance.Examples + "/ci"
)

// project is a repository with an example of "ci" in a folder. Its pipelines run as on GitHub and GitLab: each in its
// own checkout, with the state in an HTTP backend and the provider from a mirror.
type project struct {
	*lab
	repository, folder string
	backend            *stateStore
	env                []string
}

func newProject(t *testing.T, example, folder, cluster string) *project {
	t.Helper()
	acceptance.Test(t)
	p := &project{lab: openLab(t), repository: t.TempDir(), folder: folder, backend: serveStates(t)}
	p.files.Cluster = cluster
	p.must(acceptance.Copy(filepath.Join(p.repository, folder), filepath.Join(ciExamples, example)))
	p.git("init", "--quiet")
	p.commit()
	p.env = append(os.Environ(), "HOME="+t.TempDir(), "TRAINYARD_TERRAFORM="+acctest.Terraform(t),
		"TF_CLI_CONFIG_FILE="+p.mirror(), "CHECKPOINT_DISABLE=1", "TF_CLI_ARGS=-no-color",
		"TRAINYARD_STATE_DIR="+p.files.Root)
	t.Cleanup(func() {
		if !p.backend.empty() {
			p.terraform("destroy", "-auto-approve")
		}
	})
	return p
}

// mirror returns a CLI configuration with which Terraform and OpenTofu install the provider from a folder.
func (p *project) mirror() string {
	p.Helper()
	root := p.TempDir()
	for _, registry := range []string{"registry.terraform.io", "registry.opentofu.org"} {
		folder := filepath.Join(root, registry, "trainyard/trainyard/0.0.1", runtime.GOOS+"_"+runtime.GOARCH)
		p.must(os.MkdirAll(folder, 0o700))
		p.must(os.Symlink(acctest.Build(p, acctest.Provider),
			filepath.Join(folder, "terraform-provider-trainyard_v0.0.1")))
	}
	file := filepath.Join(root, "cli.tfrc")
	p.must(os.WriteFile(file, []byte("provider_installation {\n  filesystem_mirror { path = \""+root+"\" }\n}\n"),
		0o600))
	return file
}

func (p *project) git(args ...string) string {
	p.Helper()
	command := exec.Command("git",
		append([]string{"-c", "user.name=ops", "-c", "user.email=ops@example.com"}, args...)...)
	command.Dir = p.repository
	output, err := command.CombinedOutput()
	if err != nil {
		p.Fatalf("git %s: %v\n%s", args, err, output)
	}
	return strings.TrimSpace(string(output))
}

func (p *project) commit() {
	p.Helper()
	p.git("add", "--all")
	p.git("commit", "--quiet", "--message", "A change")
}

// checkout returns a fresh clone of the repository.
func (p *project) checkout() string {
	p.Helper()
	folder := filepath.Join(p.TempDir(), "checkout")
	p.git("clone", "--quiet", p.repository, folder)
	return folder
}

// terraform runs Terraform in a checkout.
func (p *project) terraform(args ...string) {
	p.Helper()
	folder := filepath.Join(p.checkout(), p.folder)
	for _, call := range [][]string{{"init", "-input=false"}, args} {
		command := exec.Command(acctest.Terraform(p), call...)
		command.Dir, command.Env = folder, slices.Concat(p.env, p.backend.env())
		if output, err := command.CombinedOutput(); err != nil {
			p.Fatalf("terraform %s: %v\n%s", call, err, output)
		}
	}
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(content, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// running is a running pipeline.
type running struct {
	*exec.Cmd
	mutex  sync.Mutex
	output bytes.Buffer
}

func (r *running) Write(text []byte) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.output.Write(text)
}

// outputSoFar returns the output so far.
func (r *running) outputSoFar() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.output.String()
}

// start runs a pipeline in a new checkout, in its own process group. If nobody waits for it, it ends with the test.
func (p *project) start(job pipeline, env ...string) *running {
	p.Helper()
	script := filepath.Join(p.TempDir(), "script")
	p.must(os.WriteFile(script, []byte(job.script), 0o600))
	command := exec.Command(job.shell[0], append(job.shell[1:], script)...) //nolint:gosec // the services' shells
	r := &running{Cmd: command}
	command.Dir, command.Env = filepath.Join(p.checkout(), job.folder), slices.Clone(p.env)
	for name, value := range job.env {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Env = append(command.Env, env...)
	command.Stdout, command.Stderr = r, r
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.must(command.Start())
	p.Cleanup(func() {
		if r.ProcessState == nil {
			_ = syscall.Kill(-r.Process.Pid, syscall.SIGKILL)
			_ = r.Wait()
		}
	})
	return r
}

// wait returns the exit code and the output.
func (p *project) wait(r *running) (int, string) {
	p.Helper()
	err := r.Wait()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return exit.ExitCode(), r.outputSoFar()
	}
	p.must(err)
	return 0, r.outputSoFar()
}

// stateStore stores one Terraform state like GitLab, for clients with the password.
type stateStore struct {
	url   string
	mutex sync.Mutex
	state []byte
	lock  []byte
	// held are operations whose next attempt to lock finds the lock held by somebody else.
	held []string
}

const statePassword = "hunter2-of-the-backend"

func serveStates(t *testing.T) *stateStore {
	t.Helper()
	s := &stateStore{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// env returns the environment variables that configure Terraform for it.
func (s *stateStore) env() []string {
	return []string{
		"TF_HTTP_ADDRESS=" + s.url, "TF_HTTP_LOCK_ADDRESS=" + s.url, "TF_HTTP_UNLOCK_ADDRESS=" + s.url,
		"TF_HTTP_USERNAME=ops", "TF_HTTP_PASSWORD=" + statePassword,
	}
}

func (s *stateStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	body, err := io.ReadAll(r.Body)
	_, password, _ := r.BasicAuth()
	switch {
	case err != nil || password != statePassword:
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method == "LOCK" && s.refuses(body):
		w.WriteHeader(http.StatusLocked)
		_, _ = w.Write([]byte(`{"ID": "somebody else's"}`))
	case r.Method == "LOCK" && s.lock != nil:
		w.WriteHeader(http.StatusLocked)
		_, _ = w.Write(s.lock)
	case r.Method == "LOCK":
		s.lock = body
	case r.Method == "UNLOCK":
		s.lock = nil
	case r.Method == http.MethodPost:
		s.state = body
	case r.Method == http.MethodGet && s.state == nil:
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet:
		_, _ = w.Write(s.state)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// hold makes the next plan and the next apply, if these are the operations, try again before they get the lock.
func (s *stateStore) hold(operations ...string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.held = operations
}

// waited reports whether the operations that hold named have tried.
func (s *stateStore) waited() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.held) == 0
}

// refuses reports whether an operation has to try again.
func (s *stateStore) refuses(lock []byte) bool {
	before := len(s.held)
	s.held = slices.DeleteFunc(s.held, func(operation string) bool { return bytes.Contains(lock, []byte(operation)) })
	return len(s.held) < before
}

// locked reports whether somebody holds the lock.
func (s *stateStore) locked() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.lock != nil
}

// empty reports whether the state is empty.
func (s *stateStore) empty() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var state struct{ Resources []json.RawMessage }
	return json.Unmarshal(s.state, &state) != nil || len(state.Resources) == 0
}
