//go:build linux

package process_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
)

// What is wrong with a line of a shell block that is pasted into a terminal.
var (
	withPrompt   = regexp.MustCompile(`^[$>] `)
	withoutEnd   = regexp.MustCompile(`\bcat +>[^<]*$`) // waits for the rest to be typed
	withoutRoot  = regexp.MustCompile(`(^|[^o] )apt-get `)
	withoutVenv  = regexp.MustCompile(`(^|[^/])\bpip3? install`)
	withVenv     = regexp.MustCompile(`\. venv/bin/activate && pip install`)
	withQuestion = regexp.MustCompile(`^terraform (apply|destroy)\b`)
	inFolder     = regexp.MustCompile(`^terraform (plan|apply|destroy)\b`)
)

var fenced = regexp.MustCompile("(?ms)^```(shell|console)\n(.*?)^```$")

// faults returns what a page has in its shell blocks that does not run after copy and paste, and in its console blocks
// that is no transcript.
func faults(page string) (found []string) {
	for _, at := range fenced.FindAllStringSubmatchIndex(page, -1) {
		kind, block := page[at[2]:at[3]], page[at[4]:at[5]]
		lines := strings.Split(strings.TrimSuffix(block, "\n"), "\n")
		if kind == "console" {
			if !slices.ContainsFunc(lines, func(line string) bool { return !withPrompt.MatchString(line) }) {
				found = append(found, "a console block without output, want a shell block without prompts: "+block)
			}
			continue
		}
		initialised := strings.Contains(page[:at[4]], "terraform init")
		for i, line := range lines {
			initialised = initialised || strings.Contains(line, "terraform init")
			more := slices.ContainsFunc(lines[i+1:], func(line string) bool { return !strings.HasPrefix(line, " ") })
			for fault, is := range map[string]bool{
				"a prompt":                                withPrompt.MatchString(line),
				"a file without its content":              withoutEnd.MatchString(line),
				"apt-get without sudo":                    withoutRoot.MatchString(line),
				"pip outside of a virtual environment":    withoutVenv.MatchString(line) && !withVenv.MatchString(line),
				"commands after one that asks a question": withQuestion.MatchString(line) && more,
				"no terraform init before":                inFolder.MatchString(line) && !initialised,
			} {
				if is {
					found = append(found, fault+": "+line)
				}
			}
		}
	}
	return found
}

// The commands in the READMEs of examples and modules run after copy and paste.
func TestReadmesRunAsCopied(t *testing.T) {
	for _, folder := range []string{"examples", "modules"} {
		copied := t.TempDir()
		if err := acceptance.Copy(copied, filepath.Join(root, folder)); err != nil {
			t.Fatal(err)
		}
		err := filepath.WalkDir(copied, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Name() != "README.md" {
				return err
			}
			content, err := os.ReadFile(path)
			for _, fault := range faults(string(content)) {
				t.Errorf("%s of %s has %s", strings.TrimPrefix(path, copied+"/"), folder, fault)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// The check of READMEs finds what does not run, and nothing else.
func TestReadmeFaults(t *testing.T) {
	shell := func(block string) string { return "Text\n\n```shell\n" + block + "\n```\n" }
	for page, want := range map[string]string{
		shell("$ make install"):                                  "a prompt",
		shell("cat >terraform.tfvars\nengine = \"swarm\""):       "a file without its content",
		shell("cat >terraform.tfvars <<'END'\na = 1\nEND"):       "",
		shell("apt-get install -y python3"):                      "apt-get without sudo",
		shell("sudo apt-get install -y python3"):                 "",
		shell("python3 -m venv venv && pip install jax"):         "pip outside of a virtual environment",
		shell("venv/bin/pip install jax"):                        "",
		shell(". venv/bin/activate && pip install jax"):          "",
		shell("terraform init\nterraform apply\ncurl localhost"): "commands after one that asks a question",
		shell("terraform apply"):                                 "no terraform init before",
		shell("terraform init\nterraform apply -var 'a={\n  }'"): "",
		"`terraform init`\n" + shell("terraform apply"):          "",
		"```console\n$ make\n```\n":                              "a console block without output",
		"```console\n$ make\nmade\n```\n":                        "",
	} {
		got := faults(page)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], want)) {
			t.Errorf("%q has %q, want %q", page, got, want)
		}
	}
}

// Tests copy an example without what a user who followed its README has left there.
func TestCopiesLeaveOutIgnored(t *testing.T) {
	example, copied := t.TempDir(), t.TempDir()
	for _, file := range []string{
		"main.tf", "digits/main.tf", "run.sh", ".gitignore", "venv/bin/python3", "checkpoints/digits.npz",
		"digits-trainer", "terraform.tfvars", "terraform.tfstate", ".terraform/modules/modules.json",
		".terraform.lock.hcl",
	} {
		path, content := filepath.Join(example, file), ""
		if file == ".gitignore" {
			content = "/digits-trainer\n"
		}
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(content), 0o700)) //nolint:gosec // run.sh is to be run
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := acceptance.Copy(copied, example); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := filepath.WalkDir(copied, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			got = append(got, strings.TrimPrefix(path, copied+"/"))
		}
		return err
	})
	if want := []string{".gitignore", "digits/main.tf", "main.tf", "run.sh"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("it has %q, want %q: %v", got, want, err)
	}
	if info, err := os.Stat(filepath.Join(copied, "run.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("run.sh can't be run: %v", err)
	}
}
