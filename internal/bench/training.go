//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// training is the quickstart's training on one engine.
type training struct {
	engine   string
	took     time.Duration
	accuracy float64
}

// quickstart is the example's path, from the root of the repository.
const quickstart = "examples/quickstart"

// train runs the quickstart's training on an engine with these hosts, after creating the cluster and loading the
// trainer.
func (b *bench) train(ctx context.Context, l lab, hosts string) (t training, err error) {
	b.say("%s: training", l.engine)
	t.engine = l.engine
	dir := filepath.Join(b.work, "train-"+l.engine)
	w := &workspace{bench: b, name: "lab", dir: dir, docker: l.docker} // the example's name
	if err := os.CopyFS(w.dir, os.DirFS(quickstart)); err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, l.close(ctx, w)) }()
	trainer, err := os.ReadFile(b.trainer)
	if err != nil {
		return t, err
	}
	for name, content := range map[string][]byte{
		"digits-trainer":       trainer,
		"terraform.tfvars":     fmt.Appendf(nil, "engine = %q\nhosts  = %s\n", l.engine, cmp.Or(hosts, "null")),
		"provider_override.tf": fmt.Appendf(nil, "provider \"trainyard\" {\n  %s\n}\n", l.settings),
	} {
		if err := os.WriteFile(filepath.Join(w.dir, name), content, 0o755); err != nil { //nolint:gosec // one is a program
			return t, err
		}
	}
	if _, err := w.terraform(ctx, "init"); err != nil {
		return t, err
	}
	_, err = w.terraform(ctx, "apply", "-auto-approve",
		"-target=trainyard_cluster.lab", "-target=trainyard_image.trainer", "-target=trainyard_files.trainer")
	if err != nil {
		return t, err
	}
	if t.took, err = w.apply(ctx); err != nil {
		return t, err
	}
	show := b.command(ctx, "output", "-json", "accuracy")
	show.Dir = w.dir
	text, err := show.Output()
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(text, &t.accuracy)
}

func trainingTable(trained []training) []fmt.Stringer {
	t := &table{head: []string{"quickstart on", "apply until trained", "accuracy"}}
	same := true
	for _, of := range trained {
		t.add(of.engine, fmt.Sprintf("%.2f s", of.took.Seconds()), fmt.Sprintf("%.2f %%", 100*of.accuracy))
		same = same && closeTo(of.accuracy, trained[0].accuracy)
	}
	return []fmt.Stringer{
		t,
		note("Two parameter servers and four workers, asynchronous: no two runs are the same. The cluster is there, " +
			"and has the trainer."),
		note(fmt.Sprintf("Bar: same accuracy, within %.0f points: %s.", 100*sameAccuracy, verdict(same))),
	}
}

// sameAccuracy is by how much the accuracies of two equal trainings may differ.
const sameAccuracy = 0.02

func closeTo(a, b float64) bool { return max(a-b, b-a) <= sameAccuracy }
