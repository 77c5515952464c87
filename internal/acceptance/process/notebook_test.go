//go:build linux

package process_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
)

// cells runs a notebook: it executes the code of all cells, and prints the value of the last one.
const cells = `
import json, sys
code = ["".join(c["source"]) for c in json.load(open(sys.argv[1]))["cells"] if c["cell_type"] == "code"]
exec("\n".join(code[:-1]))
print(eval(code[-1]))
`

// The module made from the notebook trains as well as the notebook, continues from its checkpoint, and is not drift
// when done.
func TestSystemNotebook(t *testing.T) {
	python := filepath.Join(acceptance.Python(t, "jax"), "python3")
	w, l := newWorkspace(t)
	l.must(acceptance.Copy(w.Dir, filepath.Join(acceptance.Examples, "notebook")))
	w.Write("terraform.tfvars", "python = "+strconv.Quote(python)+"\noutput_dir = "+strconv.Quote(t.TempDir())+"\n")
	w.Write("state_override.tf", l.providerBlock())

	output, err := exec.CommandContext(t.Context(), python, "-c", cells, filepath.Join(w.Dir, "digits.ipynb")).Output()
	l.must(err)
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	want, err := strconv.ParseFloat(lines[len(lines)-1], 64)
	l.must(err)

	w.Must("get")
	expect := func(after string, resumedAt float64) {
		t.Helper()
		var outputs map[string]struct{ Value float64 }
		l.must(json.Unmarshal([]byte(w.Must("output", "-json")), &outputs))
		accuracy, resumed := outputs["accuracy"].Value, outputs["resumed_at"].Value
		if accuracy < want-0.001 || accuracy > want+0.001 || resumed != resumedAt {
			t.Errorf("%s the accuracy is %v, from epoch %v on; want the notebook's %v, from %v on", after, accuracy,
				resumed, want, resumedAt)
		}
	}
	w.Must("apply", "-auto-approve", "-var=commit=first")
	expect("after the first commit", 0)
	w.Must("plan", "-detailed-exitcode", "-var=commit=first")
	w.Must("apply", "-auto-approve", "-var=commit=second")
	expect("after the second commit", 20)
	w.Must("destroy", "-auto-approve")
	w.ExpectNobody("after destroy")
}

// The module that the guide makes passes its own tests.
func TestAccNotebookModule(t *testing.T) {
	w, l := newWorkspace(t)
	l.must(acceptance.Copy(w.Dir, filepath.Join(acceptance.Examples, "notebook")))
	acceptance.RequiresAsIn(t, filepath.Join(w.Dir, "digits"))
	w.Write("state_override.tf", l.providerBlock())
	w.Must("-chdir=digits", "get")
	t.Log(w.Must("-chdir=digits", "test"))
}

// The example contains what the guide shows.
func TestGuideFromANotebook(t *testing.T) {
	guide, err := os.ReadFile("../../../templates/guides/from-a-notebook-to-a-module.md")
	if err != nil {
		t.Fatal(err)
	}
	var example strings.Builder
	err = filepath.WalkDir(filepath.Join(acceptance.Examples, "notebook"),
		func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			if filepath.Ext(path) == ".ipynb" {
				content = source(t, content)
			}
			example.Write(content)
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(python|terraform)\n(.*?)```").FindAllSubmatch(guide, -1)
	if len(blocks) < 10 {
		t.Errorf("the guide shows %d parts of the example, want 10 or more", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(example.String(), string(block[2])) {
			t.Errorf("this is not in the example:\n%s", block[2])
		}
	}
}

// source returns the code of a notebook.
func source(t *testing.T, notebook []byte) []byte {
	t.Helper()
	var read struct {
		Cells []struct{ Source []string }
	}
	if err := json.Unmarshal(notebook, &read); err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, cell := range read.Cells {
		code.WriteString(strings.Join(cell.Source, "") + "\n")
	}
	return []byte(code.String())
}
