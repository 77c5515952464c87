package enginetest

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// sweepResults: the files that runs leave outlive attempts and members, can be read, are reported if lost, and are
// deleted on request.
func sweepResults(t *testing.T, h Harness, e engine.Engine) {
	r := reconcile.Reconciler{Engine: e}
	s := h.sweep(map[string]string{"plain": "exit:0", "again": "once:" + h.Scratch(t)})
	s.Template = h.Template("print:{{ .Role }}", "config", "results:{{ .Role }} leaves this", "{{ .Env.STEP }}")
	s.Config = map[string]string{"plain": `{"lr": 0.1}`, "again": "lr: 0.2"}
	s.Retry.MaxAttempts = new(2)
	s.Results = &domain.Results{Path: "out/results"}
	if e.Traits().WorkDir == nil {
		s.Results.Path = "/out/results"
	}
	h.put(t, e, s, true)
	found := h.swept(t, e, "the runs to succeed",
		func(_ reconcile.Sweep, s sweep.Summary) bool { return s.Counts[domain.RunSucceeded] == 2 })
	h.await(t, e, "members to be gone", func(observed []domain.Observed) bool { return len(observed) == 0 })
	lines, err := r.Logs(t.Context(), domain.RunName(h.group, "plain"), engine.LogOptions{})
	must(t, err)
	if want := []string{"plain", `{"lr": 0.1}`}; !slices.Equal(lines, want) {
		t.Errorf("it finds as its config %q, want %q", lines, want)
	}
	left := map[string]string{
		"again/lines": "again leaves this\nagain leaves this\n", "again/config": "lr: 0.2",
		"plain/lines": "plain leaves this\n", "plain/config.json": `{"lr": 0.1}`,
	}
	if diff := cmp.Diff(left, archived(t, r, found)); diff != "" {
		t.Errorf("what was left (-want +got):\n%s", diff)
	}

	// A lost folder is reported, and another apply runs its run again, and no others.
	folder, _ := sweep.Folder(h.group, "plain", found.Runs["plain"])
	lost := func(found reconcile.Sweep) []string {
		t.Helper()
		lost, err := r.LostResults(t.Context(), found)
		must(t, err)
		return lost
	}
	if keys := lost(found); len(keys) > 0 {
		t.Errorf("%q are missed, and are there", keys)
	}
	must(t, e.RemoveFolders(acctest.Bounded(t), []domain.KeptFolder{folder}))
	if keys := lost(found); !slices.Equal(keys, []string{"plain"}) {
		t.Errorf("%q are missed, want \"plain\"", keys)
	}
	if err := r.ArchiveResults(t.Context(), found, "plain",
		tar.NewWriter(io.Discard)); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("to read what is gone says %v", err)
	}
	h.put(t, e, s, false)
	again := h.swept(t, e, "the run to succeed again", func(found reconcile.Sweep, _ sweep.Summary) bool {
		run := found.Runs["plain"]
		return run.State == domain.RunSucceeded && !sweep.Stale(found.Document, found.Spec.Run("plain"), run)
	})
	if keys := lost(again); len(keys) > 0 || again.Runs["again"].Batch != found.Runs["again"].Batch {
		t.Errorf("%q are missed still; the runs are %+v", keys, again.Runs)
	}
	h.await(t, e, "members to be gone", func(observed []domain.Observed) bool { return len(observed) == 0 })

	s.Results.OnDestroy = domain.DeleteResults
	h.put(t, e, s, false)
	if places, err := r.KeptResults(t.Context(), h.group); err != nil || len(places) > 0 {
		t.Errorf("kept are %q: %v", places, err)
	}
	must(t, r.DeleteSweep(acctest.Bounded(t), h.group, nil))
	var folders []domain.KeptFolder
	for _, key := range slices.Sorted(maps.Keys(again.Runs)) {
		folder, _ := sweep.Folder(h.group, key, again.Runs[key])
		folders = append(folders, folder)
	}
	missing, err := e.MissingFolders(t.Context(), folders)
	must(t, err)
	if diff := cmp.Diff(folders, missing); diff != "" {
		t.Errorf("folders that are gone with their sweep (-want +got):\n%s", diff)
	}
	must(t, e.RemoveFolders(acctest.Bounded(t), folders)) // as a destroy does that is repeated after a crash
	for i := range folders {
		folders[i].Host = "retired"
	}
	must(t, e.RemoveFolders(acctest.Bounded(t), folders)) // of a host that the cluster no longer has
}

// archived returns the files in an archive of what all runs of a sweep left.
func archived(t *testing.T, r reconcile.Reconciler, found reconcile.Sweep) map[string]string {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, key := range found.Spec.Keys() {
		must(t, r.ArchiveResults(acctest.Bounded(t), found, key, w))
	}
	must(t, w.Close())
	files := map[string]string{}
	for reader := tar.NewReader(&archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		content, err := io.ReadAll(reader)
		must(t, err)
		if header.Typeflag == tar.TypeReg {
			files[header.Name] = string(content)
		}
	}
}
