package reconcile

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/sweep"
)

// ResultsPlace returns where the files of a run's last attempt are; "" if none are kept.
func (r Reconciler) ResultsPlace(name, key string, run domain.Run) string {
	folder, kept := sweep.Folder(name, key, run)
	if !kept {
		return ""
	}
	return r.Engine.Traits().FolderPlace(folder)
}

// LostResults returns the keys of successful runs whose results are gone, sorted. It reads the state of the
// runs unless found has it.
func (r Reconciler) LostResults(ctx context.Context, found Sweep) (lost []string, err error) {
	if found.Document.Spec.Results == nil || found.Document.Ending {
		return nil, nil
	}
	if found.Runs == nil {
		if found.Runs, err = r.remembered(ctx, found.Document); err != nil {
			return nil, err
		}
	}
	var folders []domain.KeptFolder
	keys := map[string]string{} // by member
	for key := range found.Spec.Runs {
		run := found.Runs[key]
		folder, kept := sweep.Folder(found.Spec.Name, key, run)
		if kept && run.State == domain.RunSucceeded && !sweep.Stale(found.Document, found.Spec.Run(key), run) {
			folders, keys[folder.Member] = append(folders, folder), key
		}
	}
	if len(folders) == 0 {
		return nil, nil
	}
	missing, err := r.Engine.MissingFolders(ctx, folders)
	if err != nil {
		return nil, fmt.Errorf("results of sweep %q: %w", found.Spec.Name, err)
	}
	for _, folder := range missing {
		lost = append(lost, keys[folder.Member])
	}
	slices.Sort(lost)
	return lost, nil
}

// removeResults removes the results of a sweep whose runs have all ended.
func (r Reconciler) removeResults(ctx context.Context, doc domain.SweepDocument) error {
	folders, err := r.resultsOf(ctx, doc)
	if err != nil || len(folders) == 0 {
		return err
	}
	return r.Engine.RemoveFolders(ctx, folders)
}

// resultsOf returns the folders of all runs of a sweep that were started.
func (r Reconciler) resultsOf(ctx context.Context, doc domain.SweepDocument) (folders []domain.KeptFolder, err error) {
	runs, err := r.remembered(ctx, doc)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(runs)) {
		if folder, kept := sweep.Folder(doc.Spec.Name, key, runs[key]); kept {
			folders = append(folders, folder)
		}
	}
	return folders, nil
}

// KeptResults returns where the results are that a sweep leaves behind when it is destroyed, sorted;
// none if they are removed.
func (r Reconciler) KeptResults(ctx context.Context, name string) (places []string, err error) {
	doc, err := engine.Get[domain.SweepDocument](ctx, r.Engine, name)
	if errors.Is(err, engine.ErrNotFound) ||
		err == nil && (doc.Spec.Results == nil || doc.Spec.Results.OnDestroy == domain.DeleteResults) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	folders, err := r.resultsOf(ctx, doc)
	for _, folder := range folders {
		places = append(places, fmt.Sprintf("%s on host %s", r.Engine.Traits().FolderPlace(folder), folder.Host))
	}
	return places, err
}

// ArchiveSweep writes the results of runs to an archive, see [Reconciler.ArchiveResults]. It returns the number of runs
// with results, and the keys of those without.
func (r Reconciler) ArchiveSweep(
	ctx context.Context, found Sweep, keys []string, to io.Writer,
) (with int, without []string, err error) {
	w := tar.NewWriter(to)
	for _, key := range keys {
		err := r.ArchiveResults(ctx, found, key, w)
		switch {
		case errors.Is(err, engine.ErrNotFound):
			without = append(without, key)
		case err != nil:
			return with, without, err
		default:
			with++
		}
	}
	return with, without, w.Close()
}

// ArchiveResults writes the results and the config of a run to an archive, under a folder named by the run's key.
// Missing results are [engine.ErrNotFound].
func (r Reconciler) ArchiveResults(ctx context.Context, found Sweep, key string, to *tar.Writer) error {
	folder, kept := sweep.Folder(found.Spec.Name, key, found.Runs[key])
	if !kept {
		return fmt.Errorf("run %q of sweep %q left no results: %w", key, found.Spec.Name, engine.ErrNotFound)
	}
	config := found.Spec.Config[key]
	name := sweep.ConfigFile(config)
	configured := config == ""
	err := r.archive(ctx, folder, key, to, func(file string) { configured = configured || file == name })
	if err != nil || configured {
		return err
	}
	if err := to.WriteHeader(
		&tar.Header{Typeflag: tar.TypeReg, Name: path.Join(key, name), Mode: 0o644, Size: int64(len(config))},
	); err != nil {
		return err
	}
	_, err = io.WriteString(to, config)
	return err
}
