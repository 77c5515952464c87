//go:build linux

package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// The scripts inside the pipelines equal those in examples/ci/scripts, which can be used on their own.
func TestCIScripts(t *testing.T) {
	read := func(parts ...string) string {
		content, err := os.ReadFile(filepath.Join(parts...))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	credentials := read(ciExamples, "scripts/credentials.sh")
	for _, c := range []struct{ file, script, prefix string }{
		{filepath.Join(workflows, "submit.yml"), "submit.sh", ""},
		{filepath.Join(ciExamples, "gitlab/submit.yml"), "submit.sh", "cd \"$TRAINYARD_FOLDER\"\n"},
		{filepath.Join(ciExamples, "github/drift.yml"), "drift.sh", ""},
		{filepath.Join(ciExamples, "gitlab/drift.yml"), "drift.sh", "cd service\n"},
	} {
		want := c.prefix + credentials + "\n" + read(ciExamples, "scripts", c.script)
		_, after, found := strings.Cut(read(c.file), ": |\n")
		if strings.Contains(c.file, "gitlab") {
			_, after, found = strings.Cut(read(c.file), "- |\n")
		}
		if got := strings.TrimRight(unindented(after), "\n") + "\n"; !found || got != want {
			t.Errorf("%s has another script than examples/ci/scripts/credentials.sh and %s", c.file, c.script)
		}
	}
}

// A working folder may have kept older versions of the provider: the script runs the newest.
func TestCIScriptRunsNewestProvider(t *testing.T) {
	root := t.TempDir()
	program := func(version string) string {
		return filepath.Join(root, "trainyard", version, "linux_amd64", "terraform-provider-trainyard_v"+version)
	}
	for _, version := range []string{"0.9.0", "0.10.0"} {
		err := os.MkdirAll(filepath.Dir(program(version)), 0o700)
		if err == nil {
			err = os.WriteFile(program(version), nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	script, err := os.ReadFile(filepath.Join(ciExamples, "scripts/submit.sh"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^program=.*$`).FindString(string(script))
	chosen, err := exec.Command("sh", "-euc", "providers=$1\n"+line+"\nprintf %s \"$program\"", "sh", root).Output()
	if want := program("0.10.0"); err != nil || string(chosen) != want {
		t.Errorf("it runs %q, want %q: %v", chosen, want, err)
	}
}

// The log is followed on hosts behind a jump host, and for a group of several.
func TestCIScriptFollows(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(ciExamples, "scripts/submit.sh"))
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^set -- .*$`).FindAllString(string(script), -1)
	for variables, want := range map[string]string{
		"": "logs|--plan|/work dir/plan.json|",
		"TRAINYARD_JUMP_HOST=ops@bastion TRAINYARD_GROUP=job": "logs|--plan|/work dir/plan.json|job|" +
			"--jump-host|ops@bastion|",
		"TRAINYARD_JUMP_HOST= TRAINYARD_GROUP=": "logs|--plan|/work dir/plan.json|",
	} {
		cmd := exec.Command("sh", "-euc", "work='/work dir'\n"+strings.Join(lines, "\n")+"\nprintf '%s|' \"$@\"")
		cmd.Env = append(cmd.Environ(), strings.Fields(variables)...)
		if args, err := cmd.Output(); err != nil || string(args) != want {
			t.Errorf("with %q: %q (%v), want %q", variables, args, err, want)
		}
	}
}

// unindented removes the indentation of the first line from all lines.
func unindented(text string) string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	return strings.ReplaceAll("\n"+text, "\n"+indent, "\n")[1:]
}

// Actions are pinned by commit hash, and consistently.
func TestActionsArePinned(t *testing.T) {
	pinned := regexp.MustCompile(`^\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	uses := regexp.MustCompile(`(?m)^[ -]*uses: (.*)$`)
	hashes := map[string]string{}
	for _, pattern := range []string{workflows + "/*.yml", ciExamples + "/github/*.yml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, %v", pattern, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range uses.FindAllStringSubmatch(string(content), -1) {
				if strings.HasPrefix(found[1], "trainyard/terraform-provider-trainyard/") {
					continue // from a release of this repository
				}
				name, _, _ := strings.Cut(found[1], "@")
				switch other := hashes[name]; {
				case !pinned.MatchString(found[1]):
					t.Errorf("%s uses %s: pin it as owner/name@<commit> # v1.2.3", file, found[1])
				case other != "" && other != found[1]:
					t.Errorf("%s uses %s, and another workflow %s", file, found[1], other)
				}
				hashes[name] = found[1]
			}
		}
	}
}

// Dependabot updates all workflows with actions together.
func TestDependabotUpdatesActions(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directories []string
			Groups      map[string]struct{ Patterns []string }
		}
	}
	readYAML(t, filepath.Join(root, ".github/dependabot.yml"), &config)
	for _, update := range config.Updates {
		if update.Ecosystem != "github-actions" {
			continue
		}
		// "/" means the folder .github/workflows.
		if want := []string{"/", "/examples/ci/github"}; !slices.Equal(update.Directories, want) {
			t.Errorf("it updates the actions in %q, want %q", update.Directories, want)
		}
		for _, group := range update.Groups {
			if slices.Equal(group.Patterns, []string{"*"}) {
				return
			}
		}
		t.Errorf("it updates actions in the groups %v, want one of all", update.Groups)
		return
	}
	t.Error("it does not update actions")
}

// The pipelines that others include begin with the lines that include them.
func TestCIUsage(t *testing.T) {
	for file, example := range map[string]string{
		filepath.Join(workflows, "submit.yml"):         filepath.Join(ciExamples, "github/submit.yml"),
		filepath.Join(ciExamples, "gitlab/submit.yml"): filepath.Join(ciExamples, "gitlab/.gitlab-ci.yml"),
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var usage strings.Builder
		for line := range strings.Lines(string(content)) {
			if line, found := strings.CutPrefix(line, "#   "); found {
				usage.WriteString(line)
			}
		}
		var lines, whole map[string]any
		readYAML(t, example, &whole)
		if err := yaml.Unmarshal([]byte(usage.String()), &lines); err != nil || len(lines) == 0 {
			t.Errorf("%s begins with lines that are no pipeline: %v", file, err)
		}
		for name, part := range lines {
			if diff := cmp.Diff(whole[name], part); diff != "" {
				t.Errorf("%s begins with another %s than %s (-want +got):\n%s", file, name, example, diff)
			}
		}
	}
}

// README and guide show the pipelines of the examples, and the guide how to pass each secret to the GitHub workflow.
func TestCIDocuments(t *testing.T) {
	const examples, guide = "examples/ci", "templates/guides/continuous-integration.md"
	_, jobs, _ := strings.Cut(read(t, examples, "github/submit.yml"), "\njobs:\n")
	jobs = "jobs:\n" + jobs
	for page, pipelines := range map[string][]string{
		guide: {jobs, read(t, examples, "gitlab/.gitlab-ci.yml")}, examples + "/README.md": {jobs},
	} {
		for _, want := range pipelines {
			if !strings.Contains(read(t, page), "```yaml\n"+want+"```\n") {
				t.Errorf("%s does not show\n%s", page, want)
			}
		}
	}
	var workflow gitHubWorkflow
	readYAML(t, filepath.Join(workflows, "submit.yml"), &workflow)
	if len(workflow.On.Call.Secrets) == 0 {
		t.Error("the workflow takes no secrets")
	}
	for name := range workflow.On.Call.Secrets {
		if pass := name + ": ${{ secrets." + name + " }}\n"; !strings.Contains(read(t, guide), pass) {
			t.Errorf("the guide does not show %q", pass)
		}
	}
}

// The state of a service is not that of a job: its address comes from another secret on GitHub, and on GitLab from
// variables of the job, as the guide shows.
func TestCIStates(t *testing.T) {
	var submit, drift gitHubWorkflow
	readYAML(t, filepath.Join(ciExamples, "github/submit.yml"), &submit)
	readYAML(t, filepath.Join(ciExamples, "github/drift.yml"), &drift)
	const name = "TRAINYARD_ENV"
	job := submit.Jobs["train"].Secrets[name]
	for _, step := range drift.Jobs["drift"].Steps {
		if service := step.Env[name]; step.Run != "" && (job == "" || service == "" || job == service) {
			t.Errorf("the job gets the state of %q, and the service that of %q", job, service)
		}
	}
	guide := read(t, "templates/guides/continuous-integration.md")
	_, shown, _ := strings.Cut(guide, "\n## The backend\n")
	_, shown, _ = strings.Cut(shown, "```yaml\n")
	shown, _, _ = strings.Cut(shown, "```\n")
	var jobs map[string]struct{ Variables map[string]string }
	if err := yaml.Unmarshal([]byte(shown), &jobs); err != nil || jobs["train"].Variables["TF_HTTP_ADDRESS"] == "" {
		t.Errorf("the guide sets the state's address of no job: %v\n%s", err, shown)
	}
}

// On GitLab, only the default branch is submitted, when it is pushed or its pipeline is run by hand. Other pipelines,
// such as the schedule's that looks for drift, don't replace its job.
func TestCIGitLabSubmits(t *testing.T) {
	job := readGitLab(t, filepath.Join(ciExamples, "gitlab/submit.yml"), ".trainyard-submit")
	for _, c := range []struct {
		source, branch string
		want           bool
	}{
		{"push", "main", true},
		{"web", "main", true},
		{"push", "feature", false},
		{"web", "feature", false},
		{"schedule", "main", false},
		{"push", "", false},                // a tag
		{"merge_request_event", "", false}, // which has no CI_COMMIT_BRANCH
	} {
		got := job.runsIn(t, map[string]string{
			"CI_PIPELINE_SOURCE": c.source, "CI_COMMIT_BRANCH": c.branch, "CI_DEFAULT_BRANCH": "main",
		})
		if got != c.want {
			t.Errorf("source %q, branch %q: submitted is %t, want %t", c.source, c.branch, got, c.want)
		}
	}
}

// Pipelines that would wait for each other's lock run one at a time. A check for drift and a submit don't share a
// queue, as the newer of two waiting jobs replaces the other on GitHub.
func TestCIOneAtATime(t *testing.T) {
	var submit, drift gitHubWorkflow
	readYAML(t, filepath.Join(workflows, "submit.yml"), &submit)
	readYAML(t, filepath.Join(ciExamples, "github/drift.yml"), &drift)
	for service, queues := range map[string][2]string{
		"GitHub": {submit.Jobs["submit"].Concurrency.Group, drift.Jobs["drift"].Concurrency.Group},
		"GitLab": {
			readGitLab(t, filepath.Join(ciExamples, "gitlab/submit.yml"), ".trainyard-submit").ResourceGroup,
			readGitLab(t, filepath.Join(ciExamples, "gitlab/drift.yml"), "drift").ResourceGroup,
		},
	} {
		if queues[0] == "" || queues[1] == "" || queues[0] == queues[1] {
			t.Errorf("on %s, submits and checks for drift are in the queues %q", service, queues)
		}
	}
}

// Terraform's image runs scripts without its entrypoint, and gets what it lacks. A shell executor, which has no image
// and may have no apk, uses the machine's.
func TestCIGitLabImage(t *testing.T) {
	image := regexp.MustCompile(`^hashicorp/terraform:\d+\.\d+$`)
	for file, name := range map[string]string{"submit.yml": ".trainyard-submit", "drift.yml": "drift"} {
		job := readGitLab(t, filepath.Join(ciExamples, "gitlab", file), name)
		if !image.MatchString(job.Image.Name) || !slices.Equal(job.Image.Entrypoint, []string{""}) {
			t.Errorf("%s runs in %+v, want a version of hashicorp/terraform without its entrypoint", file, job.Image)
		}
		for _, present := range []string{"curl", "apk"} {
			home := t.TempDir()
			code, output := runScript(t, "sh", "set -e\n"+strings.Join(job.BeforeScript, "\n"), home,
				[]string{"PATH=" + home}, map[string]string{present: "echo " + present + " \"$@\"\n"})
			want := ""
			if present == "apk" && len(job.BeforeScript) > 0 {
				want = "apk add --no-cache curl\n"
			}
			if code != 0 || output != want {
				t.Errorf("%s prepares a machine that has only %s by %q, want %q; exit code %d", file, present, output,
					want, code)
			}
		}
	}
}
