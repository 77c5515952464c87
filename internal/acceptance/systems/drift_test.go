//go:build linux

package systems_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// expectMended fails unless a plan would make exactly these changes, sorted, such as "[update] trainyard_group.this" in
// the module, and an apply of it leaves nothing to do.
func (l *lab) expectMended(w *acctest.Workspace, module string, want ...string) {
	l.Helper()
	output, err := w.Run("plan", "-detailed-exitcode", "-out=drift")
	if !exitedWith(2)(err) {
		l.Fatalf("a plan ends with %v, want exit code 2, for changes:\n%s", err, output)
	}
	var plan tfjson.Plan
	l.must(json.Unmarshal([]byte(w.Must("show", "-json", "drift")), &plan))
	var got []string
	for _, change := range plan.ResourceChanges {
		if change.Mode == tfjson.ManagedResourceMode && !change.Change.Actions.NoOp() {
			address := strings.TrimPrefix(change.Address, "module."+module+".")
			got = append(got, fmt.Sprintf("%s %s", change.Change.Actions, address))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		l.Errorf("the plan would %q, want %q\n%s", got, want, output)
	}
	w.Must("apply", "-auto-approve", "drift")
	w.ExpectNoChange("with the drift mended")
}

// alterTraining changes a file of a training's program, in the folder that the output "path" names, and an attribute of
// its group.
func (l *lab) alterTraining(w *acctest.Workspace, name string) {
	l.Helper()
	var path string
	l.must(json.Unmarshal([]byte(w.Must("output", "-json", "path")), &path))
	l.alter(filepath.Join(path, "data.py"), "# something else\n")
	l.alterGroup(name, func(spec *domain.Group) { spec.Env["LEARNING_RATE"] = "0.5" })
}

// alterGroup changes the stored specification of a group.
func (l *lab) alterGroup(name string, change func(*domain.Group)) {
	l.Helper()
	group := l.read(name).Document
	change(&group.Spec)
	_, err := engine.Put(l.Context(), l.engine, group)
	l.must(err)
}

// alterContent changes the only file with this name that trainyard_files has brought to the cluster.
func (l *lab) alterContent(name string) {
	l.Helper()
	found, err := filepath.Glob(l.files.Path(statedir.Content, "*", "files", name))
	l.must(err)
	if len(found) != 1 {
		l.Fatalf("the files of the cluster have %q with the name %s, want one", found, name)
	}
	l.alter(found[0], "# something else\n")
}
