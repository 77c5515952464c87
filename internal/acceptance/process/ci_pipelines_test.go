//go:build linux

package process_test

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// pipeline is a job as its service runs it.
type pipeline struct {
	shell  []string
	script string
	env    map[string]string
	folder string
}

// gitHubWorkflow is what these tests read of a GitHub workflow.
type gitHubWorkflow struct {
	On struct {
		Call struct {
			Inputs  map[string]struct{ Default string }
			Secrets map[string]struct{ Required bool }
		} `yaml:"workflow_call"`
	}
	Permissions map[string]string
	Jobs        map[string]struct {
		Concurrency struct{ Group string }
		With        map[string]string
		Secrets     map[string]string // "inherit", which passes nothing to another organization's workflow, is an error
		Steps       []struct {
			Run    string
			Folder string `yaml:"working-directory"`
			Env    map[string]string
		}
	}
}

// gitHub returns the script of a GitHub workflow's job: its only step that is not an action. values replace the
// expressions.
func gitHub(t *testing.T, file, job string, values map[string]string) pipeline {
	t.Helper()
	var workflow gitHubWorkflow
	readYAML(t, file, &workflow)
	if len(workflow.Permissions) != 1 || workflow.Permissions["contents"] != "read" {
		t.Errorf("%s has the permissions %v, and needs no more than to read the contents", file, workflow.Permissions)
	}
	p := pipeline{shell: []string{"bash", "-e"}, env: map[string]string{"GITHUB_ACTIONS": "true"}}
	for _, step := range workflow.Jobs[job].Steps {
		if step.Run == "" {
			continue
		}
		if p.script != "" {
			t.Fatalf("%s has several steps that run something", file)
		}
		p.script, p.folder = step.Run, evaluated(t, file, step.Folder, values)
		for name, value := range step.Env {
			p.env[name] = evaluated(t, file, value, values)
		}
	}
	return p
}

// called returns the values of the expressions in a reusable workflow. Of the values in the calling workflow, it gets
// the inputs and secrets that the job passes, and what GitHub knows about the run.
func called(t *testing.T, caller, job, workflow string, values map[string]string) map[string]string {
	t.Helper()
	var calling, reusable gitHubWorkflow
	readYAML(t, caller, &calling)
	readYAML(t, workflow, &reusable)
	got := maps.Clone(values)
	maps.DeleteFunc(got, func(name, _ string) bool { return strings.HasPrefix(name, "secrets.") })
	for name, input := range reusable.On.Call.Inputs {
		got["inputs."+name] = input.Default
	}
	for name := range reusable.On.Call.Secrets {
		got["secrets."+name] = ""
	}
	for kind, passed := range map[string]map[string]string{
		"inputs.": calling.Jobs[job].With, "secrets.": calling.Jobs[job].Secrets,
	} {
		for name, value := range passed {
			if _, declared := got[kind+name]; !declared {
				t.Errorf("%s passes %s%s, which %s does not take", caller, kind, name, workflow)
			}
			got[kind+name] = evaluated(t, caller, value, values)
		}
	}
	return got
}

// expression matches a GitHub expression.
var expression = regexp.MustCompile(`\$\{\{ *([^}]*?) *\}\}`)

// evaluated returns a text of a workflow with the values of its expressions.
func evaluated(t *testing.T, file, text string, values map[string]string) string {
	t.Helper()
	return expression.ReplaceAllStringFunc(text, func(found string) string {
		name := expression.FindStringSubmatch(found)[1]
		value, known := values[name]
		if !known {
			t.Errorf("%s uses %s, and this test has no value of it", file, name)
		}
		return value
	})
}

// gitLabJob is a job of a GitLab pipeline, with all keywords that the examples use.
type gitLabJob struct {
	Image struct {
		Name       string
		Entrypoint []string
	}
	Interruptible *bool
	ResourceGroup string `yaml:"resource_group"`
	Rules         []struct{ If string }
	Variables     map[string]string
	BeforeScript  []string `yaml:"before_script"`
	Script        []string
}

// readGitLab reads a job of a GitLab pipeline.
func readGitLab(t *testing.T, file, job string) gitLabJob {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var jobs map[string]gitLabJob
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&jobs); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return jobs[job]
}

// equality matches the only kind of comparison in the examples' conditions, which may have several, joined by &&.
var equality = regexp.MustCompile(`^\$(\w+) == (?:"(.*)"|\$(\w+))$`)

// runsIn reports whether a GitLab job runs in a pipeline with these variables.
func (j gitLabJob) runsIn(t *testing.T, variables map[string]string) bool {
	t.Helper()
	return len(j.Rules) == 0 || slices.ContainsFunc(j.Rules, func(rule struct{ If string }) bool {
		for comparison := range strings.SplitSeq(rule.If, " && ") {
			parts := equality.FindStringSubmatch(comparison)
			if parts == nil {
				t.Fatalf("this test does not understand the rule %q", rule.If)
			}
			if variables[parts[1]] != parts[2]+variables[parts[3]] {
				return false
			}
		}
		return true
	})
}

// gitLab returns the script of a GitLab job, with these variables. The job has to run in a pipeline with them.
func gitLab(t *testing.T, file, job string, variables map[string]string) pipeline {
	t.Helper()
	found := readGitLab(t, file, job)
	if !found.runsIn(t, variables) {
		t.Fatalf("%s does not run %s in a pipeline with the variables %v", file, job, variables)
	}
	p := pipeline{
		shell: []string{"sh", "-e"}, env: maps.Clone(found.Variables),
		script: strings.Join(slices.Concat(found.BeforeScript, found.Script), "\n"), // GitLab runs both in one shell
	}
	maps.Copy(p.env, variables)
	for name, value := range p.env {
		p.env[name] = os.Expand(value, func(name string) string { return variables[name] })
	}
	return p
}
