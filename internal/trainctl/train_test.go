package trainctl

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/qmodel"
)

// trace writes a load to a file, and returns its path.
func trace(t *testing.T, load func(i int) float64) string {
	t.Helper()
	var rows strings.Builder
	rows.WriteString("time,load\n")
	for i := range 200 {
		fmt.Fprintf(&rows, "%d,%g\n", 15*i, load(i))
	}
	file := filepath.Join(t.TempDir(), "load.csv")
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func waves(i int) float64 { return 20 - 9*math.Cos(float64(i)/20) }

// TestTrain checks that the command writes a model that can be read, a learning curve, and progress lines if there is
// no terminal, and the same files twice.
func TestTrain(t *testing.T) {
	load, folder := trace(t, waves), t.TempDir()
	var files [2][]byte
	for i := range files {
		model, curve := filepath.Join(folder, "model.json"), filepath.Join(folder, "curve.svg")
		var out bytes.Buffer
		args := []string{
			"--trace", load, "--capacity", "10", "--algorithm", "double-dqn", "--seed", "7", "--updates", "300",
			"--max", "4", "--observe", "p99,reassigning", "--latency-bound", "2s", "-o", model, "--curve", curve,
		}
		if err := Run(t.Context(), args, &out); err != nil {
			t.Fatal(err)
		}
		if output := out.String(); !strings.Contains(output, "0 of 300 updates: the policy costs ") ||
			!strings.Contains(output, model+": 300 updates over ") {
			t.Errorf("it says %q", output)
		}
		if svg, err := os.ReadFile(curve); err != nil || !bytes.HasPrefix(svg, []byte("<svg")) ||
			!bytes.Contains(svg, []byte("double-dqn with seed 7 on load.csv")) {
			t.Errorf("the curve is %.100s: %v", svg, err)
		}
		var err error
		if files[i], err = os.ReadFile(model); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("it trains another model each time")
	}
	if m, err := qmodel.Parse(files[0]); err != nil || m.Algorithm != qmodel.DoubleDQN || m.Trained.Seed != 7 ||
		m.Trained.CapacityLoad != 10 || len(m.Trained.TraceSHA256) != 64 ||
		!m.Has(qmodel.P99) || !m.Has(qmodel.Reassigning) || m.Has(qmodel.CPU) {
		t.Errorf("the model is %+v: %v", m, err)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 2 {
		t.Errorf("it leaves %v: %v", left, err)
	}
}

// TestUnwritableCurve checks that the model is written even if the learning curve can't be.
func TestUnwritableCurve(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	model := filepath.Join(t.TempDir(), "model.json")
	args := []string{
		"--trace", trace(t, waves), "--capacity", "10", "--updates", "10", "-o", model, "--curve", full,
	}
	if err := Run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), full) {
		t.Errorf("it ends with %v", err)
	}
	if _, err := os.Stat(model); err != nil {
		t.Error(err)
	}
}

// TestInterrupted checks that an interrupted training leaves an existing model as it is, and writes nothing else.
func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	folder := t.TempDir()
	model := filepath.Join(folder, "model.json")
	if err := os.WriteFile(model, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Run(ctx, []string{"--trace", trace(t, waves), "--capacity", "10", "-o", model}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "interrupted after 0 of 50000 updates; nothing was written") {
		t.Errorf("it ends with %v", err)
	}
	content, err := os.ReadFile(model)
	left, _ := os.ReadDir(folder)
	if err != nil || string(content) != "old" || len(left) != 1 {
		t.Errorf("it leaves %q, and %v: %v", content, left, err)
	}
}

func TestRefuses(t *testing.T) {
	load, none := trace(t, waves), trace(t, func(int) float64 { return 0 })
	for args, says := range map[string]string{
		"":                                                    "--capacity must be above 0, the load that one member can carry, got 0",
		"--capacity 10":                                       "--trace is required",
		"--capacity NaN":                                      "--capacity must be above 0, the load that one member can carry, got NaN",
		"--capacity 10 --trace " + load + "x":                 "no such file",
		"--capacity 10 --trace " + none:                       "the load is always 0",
		"--capacity 10 --algorithm sarsa":                     `--algorithm must be dqn or double-dqn, got "sarsa"`,
		"--capacity 10 --updates 0":                           "--updates must be between 1 and 10000000, got 0",
		"--capacity 10 --bound 1.5":                           "--bound must be above 0 and at most 1, got 1.5",
		"--capacity 10 --observe p98":                         `--observe must be one of cpu, lag_growth, p99, reassigning, skew, each at most once, got "p98"`,
		"--capacity 10 --observe cpu,cpu":                     `--observe must be one of cpu, lag_growth, p99, reassigning, skew, each at most once, got "cpu"`,
		"--capacity 10 --observe p99":                         "--latency-bound must be above 0s if --observe includes p99, and 0s otherwise, got 0s",
		"--capacity 10 --latency-bound 1s":                    "--latency-bound must be above 0s if --observe includes p99, and 0s otherwise, got 1s",
		"--capacity 10 --min 0":                               "--min must be between 1 and ",
		"--capacity 10 --min 4 --max 4":                       "--max must be above --min (4) and at most 10000, got 4",
		"--capacity 10 --interval 10ms":                       "--interval must be between 1s and 1h0m0s, got 10ms",
		"--capacity 10 --startup -1s":                         "--startup must be between 0s and 1h0m0s, got -1s",
		"--capacity 10 --change-time 2h":                      "--change-time must be between 0s and 1h0m0s, got 2h0m0s",
		"--capacity 10 --change-loss 100":                     "--change-loss must be at least 0 percent and below 100, got 100",
		"--capacity 10 --member-price -1":                     "--member-price must be 0 or more, got -1",
		"--capacity 10 --under-price +Inf":                    "--under-price must be 0 or more, got +Inf",
		"--capacity 10 --change-price NaN":                    "--change-price must be 0 or more, got NaN",
		"--capacity 10 --under-price 0 --member-price 0":      "--member-price or --under-price must be above 0, got 0",
		"--capacity 10 load.csv":                              `train takes only flags, got ["load.csv"]`,
		"--capacity ten":                                      "invalid value",
		"--capacity 10 --trace " + load + " --interval 1h":    "it covers 0 decisions, one per --interval of 1h0m0s; at least 100 are required",
		"--capacity 10 -o nowhere/model.json --trace " + load: "folder nowhere does not exist",
		"--capacity 10 -o . --trace " + load:                  ". is a folder",
		"--capacity 10 --curve . --trace " + load:             ". is a folder",
	} {
		if err := Run(t.Context(), strings.Fields(args), io.Discard); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%q: the error is %v, want %q", args, err, says)
		}
	}
	if err := Run(t.Context(), []string{"--help"}, io.Discard); err != nil {
		t.Errorf("help ends with %v", err)
	}
}

func TestWarns(t *testing.T) {
	o, err := parse([]string{"--capacity", "10", "--max", "2", "--trace", trace(t, waves)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.read(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if o.warn(&out); out.String() != "The peak of the trace needs 3 members; --max is 2.\n" {
		t.Errorf("it says %q", &out)
	}
}
