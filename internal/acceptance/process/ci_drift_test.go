//go:build linux

package process_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// webhook is a Slack webhook: it accepts messages to its secret URL.
type webhook struct {
	url   string
	mutex sync.Mutex
	texts []string
}

const webhookSecret = "T0001-hunter2-of-slack"

func serveWebhook(t *testing.T) *webhook {
	t.Helper()
	hook := &webhook{}
	server := httptest.NewServer(hook)
	t.Cleanup(server.Close)
	hook.url = server.URL + "/services/" + webhookSecret
	return hook
}

func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var message map[string]string
	body, err := io.ReadAll(r.Body)
	switch {
	case r.URL.Path != "/services/"+webhookSecret:
		w.WriteHeader(http.StatusNotFound)
	case err != nil, json.Unmarshal(body, &message) != nil, len(message) != 1,
		r.Header.Get("Content-Type") != "application/json":
		w.WriteHeader(http.StatusBadRequest) // as Slack answers "invalid_payload"
	default:
		h.texts = append(h.texts, message["text"])
	}
}

// taken returns the messages since the last call.
func (h *webhook) taken() []string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	texts := h.texts
	h.texts = nil
	return texts
}

// patrol runs a service's check for drift. It fails unless the exit code is this one, and the only message, if any,
// contains these texts.
func (p *project) patrol(job pipeline, hook *webhook, code int, texts ...string) string {
	p.Helper()
	got, output := p.wait(p.start(job))
	if got != code {
		p.Fatalf("exit code %d, not %d\n%s", got, code, output)
	}
	if strings.Contains(output, webhookSecret) {
		p.Errorf("the URL of the webhook is shown:\n%s", output)
	}
	messages := hook.taken()
	if want := min(len(texts), 1); len(messages) != want {
		p.Fatalf("%d messages, not %d: %q\n%s", len(messages), want, messages, output)
	}
	for _, text := range texts {
		if !strings.Contains(messages[0], text) {
			p.Errorf("%q is not in the message %q", text, messages[0])
		}
	}
	return output
}

// The message begins with the plan's summary, however many resources differ, and names outputs, without values.
func TestCIDriftMessage(t *testing.T) {
	var many, shown strings.Builder
	for i := range 25 {
		header := fmt.Sprintf("  # trainyard_group.service[%d] will be updated in-place\n", i)
		many.WriteString(header + "  ~ resource \"trainyard_group\" \"service\" {\n      ~ command = \"hunter2\"\n")
		if i < 20 {
			shown.WriteString(header)
		}
	}
	const (
		summary = "Plan: 0 to add, 25 to change, 0 to destroy.\n"
		outputs = "\nChanges to Outputs:\n  ~ phase   = \"hunter2\"\n  + members = {\n      + a = \"hunter2\"\n    }\n"
		named   = "Outputs: phase members\n"
	)
	shown.WriteString("  and 5 more\n")
	const later = "  # data.trainyard_group.service will be read during apply\n" +
		"  # (depends on a resource or a module with changes pending)\n <= data \"trainyard_group\" \"service\" {\n"
	for name, c := range map[string]struct{ plan, want string }{
		"many resources": {later + many.String() + summary, summary + shown.String()},
		"only outputs":   {outputs, named},
		"both":           {many.String() + summary + outputs, summary + shown.String() + named},
	} {
		t.Run(name, func(t *testing.T) {
			script := read(t, "examples/ci/scripts/credentials.sh") + read(t, "examples/ci/scripts/drift.sh")
			env := []string{"PLAN=" + c.plan, "TRAINYARD_NAME=service", "SLACK_WEBHOOK_URL=http://127.0.0.1"}
			code, output := runScript(t, "sh", script, t.TempDir(), env, map[string]string{
				"terraform": "case $1 in plan) exit 2 ;; show) printf %s \"$PLAN\" ;; esac\n",
				"curl":      "for last; do :; done; cat \"${last#@}\"\n", // the message
			})
			var message struct{ Text string }
			err := json.Unmarshal([]byte(output), &message)
			want := "service differs from its configuration:\n" + strings.TrimSuffix(c.want, "\n")
			if err != nil || message.Text != want || code != 2 {
				t.Errorf("exit code %d, not 2, or not the message %q: %v\n%s", code, want, err, output)
			}
		})
	}
}

// Without the URL of a webhook, the check fails even on a night on which nothing differs.
func TestCIDriftWithoutWebhook(t *testing.T) {
	for _, shell := range shells {
		for _, env := range [][]string{nil, {"SLACK_WEBHOOK_URL="}} {
			script := read(t, "examples/ci/scripts/credentials.sh") + read(t, "examples/ci/scripts/drift.sh")
			code, output := runScript(t, shell, script, t.TempDir(), env, map[string]string{"terraform": "exit 0\n"})
			if code != 1 || !strings.Contains(output, "SLACK_WEBHOOK_URL is not set") {
				t.Errorf("%s, %q: exit code %d, not 1\n%s", shell, env, code, output)
			}
		}
	}
	// Among the variables of TRAINYARD_ENV, it is as good.
	script := read(t, "examples/ci/scripts/credentials.sh") + read(t, "examples/ci/scripts/drift.sh")
	env := []string{"TRAINYARD_ENV=SLACK_WEBHOOK_URL=http://127.0.0.1"}
	if code, output := runScript(t, "sh", script, t.TempDir(), env,
		map[string]string{"terraform": "exit 0\n"}); code != 0 {
		t.Errorf("exit code %d\n%s", code, output)
	}
}

// Slack is notified if what runs differs from the configuration or is unhealthy, and otherwise not.
func TestAccDriftToSlack(t *testing.T) {
	p := newProject(t, "service", "service", "drift-lab")
	hook := serveWebhook(t)
	const link = "https://git.example.com/lab/infra/actions/runs/17"
	variables := strings.Join(p.backend.env(), "\n")
	services := map[string]pipeline{
		"GitHub": gitHub(t, filepath.Join(ciExamples, "github/drift.yml"), "drift", map[string]string{
			"github.server_url": "https://git.example.com", "github.repository": "lab/infra", "github.run_id": "17",
			"secrets.TRAINYARD_SSH_KEY": "", "secrets.TRAINYARD_KNOWN_HOSTS": "",
			"secrets.TRAINYARD_ENV_SERVICE": variables, "secrets.SLACK_WEBHOOK_URL": hook.url,
		}),
		"GitLab": gitLab(t, filepath.Join(ciExamples, "gitlab/drift.yml"), "drift", map[string]string{
			"CI_PIPELINE_SOURCE": "schedule", "CI_JOB_URL": link, "TRAINYARD_ENV": variables,
			"SLACK_WEBHOOK_URL": hook.url,
		}),
	}
	p.terraform("apply", "-auto-approve")
	for _, job := range services {
		p.backend.hold("OperationTypePlan") // while others apply
		shown(t, p.patrol(job, hook, 0), "No changes.")
	}

	p.must(p.engine().Remove(t.Context(), []string{"service-worker-1"}))
	acctest.Eventually(t, "one member", func() bool {
		observed, err := p.engine().Observe(t.Context(), "service")
		p.must(err)
		return len(observed) == 1
	})
	for _, job := range services {
		p.patrol(job, hook, 2, "service differs from its configuration:\n"+
			"Plan: 0 to add, 1 to change, 0 to destroy.\n"+
			"  # trainyard_group.service will be updated in-place\n", "\n"+link)
	}
	named := services["GitLab"]
	named.env["TRAINYARD_NAME"] = `a "service" of <lab> & \co`
	p.patrol(named, hook, 2, `a "service" of &lt;lab&gt; &amp; \co differs`)

	// A member that is down, although as configured.
	p.terraform("apply", "-auto-approve")
	p.must(p.engine().Stop(t.Context(), map[string]int{"service-worker-0": p.state("service-worker-0").Run},
		domain.StopFailed))
	acctest.Eventually(t, "the end of a member", func() bool {
		return p.state("service-worker-0").State == domain.StateStopped
	})
	output := p.patrol(services["GitHub"], hook, 1, "could not be planned, or is not well: see the log\n"+link)
	shown(t, output, "The service is degraded: stopped:")

	// If the message is not accepted, the job fails.
	lost := services["GitHub"]
	lost.env["SLACK_WEBHOOK_URL"] = hook.url + "-of-another"
	shown(t, p.patrol(lost, hook, 22), "404")
}
