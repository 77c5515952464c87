package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// lab is a set of running parameter servers, and the addresses of all members.
type lab struct {
	servers, workers []string
	logs             []*bytes.Buffer // by parameter server; read after stop has returned
	stop             func()
}

func startLab(t *testing.T, servers, workers int) *lab {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	l := &lab{stop: func() { cancel(); running.Wait() }}
	t.Cleanup(l.stop)
	opts := testOptions(t)
	for index := range servers {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		logged := new(bytes.Buffer)
		l.servers, l.logs = append(l.servers, listener.Addr().String()), append(l.logs, logged)
		held := newParameterServer(shardOf(parameterCount, index, servers), opts)
		running.Go(func() {
			if err := serve(ctx, listener, held, newLogger(logged)); err != nil {
				t.Errorf("parameter server %d: %v", index, err)
			}
		})
	}
	for index := range workers {
		l.workers = append(l.workers, fmt.Sprintf("127.0.0.1:%d", index+1)) // workers listen nowhere
	}
	return l
}

func testOptions(t *testing.T, args ...string) options {
	t.Helper()
	opts, err := parseOptions(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return opts
}

func (l *lab) config(t *testing.T, kind string, index int) string {
	t.Helper()
	document, err := json.Marshal(map[string]any{
		"cluster": map[string][]string{"ps": l.servers, "worker": l.workers},
		"task":    map[string]any{"type": kind, "index": index},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// line is one log line of a member.
type line struct {
	Time     time.Time
	Event    string
	Task     string
	Index    int
	Step     int
	Loss     float64
	Accuracy float64
	Examples int
	Updates  int
	Path     string
}

func parseLog(t *testing.T, log *bytes.Buffer) []line {
	t.Helper()
	var lines []line
	for raw := range strings.Lines(log.String()) {
		var l line
		if err := json.Unmarshal([]byte(raw), &l); err != nil {
			t.Fatalf("log line %q: %v", raw, err)
		}
		lines = append(lines, l)
	}
	return lines
}

func ofEvent(lines []line, event string) []line {
	return slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l.Event != event })
}

func TestTwoServersAndTwoWorkersLearnToReadDigits(t *testing.T) {
	const steps = 600
	l := startLab(t, 2, 2)
	modelDir := filepath.Join(t.TempDir(), "models")
	logs := []*bytes.Buffer{new(bytes.Buffer), new(bytes.Buffer)}
	var workers sync.WaitGroup
	for index, stdout := range logs {
		workers.Go(func() {
			var stderr bytes.Buffer
			args := []string{"-steps", fmt.Sprint(steps), "-log-every", "200", "-model-dir", modelDir}
			if code := run(t.Context(), args, l.config(t, "worker", index), stdout, &stderr); code != exitDone {
				t.Errorf("worker %d: exit code %d: %s", index, code, stderr.String())
			}
		})
	}
	workers.Wait()

	for index, log := range logs {
		progress := ofEvent(parseLog(t, log), "progress")
		if len(progress) != 3 {
			t.Fatalf("worker %d logged %d progress lines, want 3:\n%s", index, len(progress), log)
		}
		first, last := progress[0], progress[2]
		if first.Task != "worker" || first.Index != index || first.Step != 200 || last.Step != steps ||
			first.Time.IsZero() {
			t.Errorf("worker %d logged %+v … %+v", index, first, last)
		}
		if last.Loss >= first.Loss || last.Accuracy <= first.Accuracy {
			t.Errorf("worker %d did not learn: %+v … %+v", index, first, last)
		}
	}

	evaluations := ofEvent(parseLog(t, logs[0]), "evaluation")
	if len(evaluations) != 1 || evaluations[0].Examples != 359 || evaluations[0].Accuracy < 0.94 {
		t.Errorf("evaluation of the chief: %+v, want one of 359 examples with an accuracy of 0.94 or more", evaluations)
	}
	if others := ofEvent(parseLog(t, logs[1]), "evaluation"); len(others) > 0 {
		t.Errorf("worker 1 evaluates as well: %+v", others)
	}
	checkModel(t, modelDir, evaluations[0].Accuracy)

	t.Run("a worker that starts again goes on from the current parameters", func(t *testing.T) {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"-steps", "1"}, l.config(t, "worker", 0), &stdout,
			&stderr); code != exitDone {
			t.Fatalf("exit code %d: %s", code, stderr.String())
		}
		if again := ofEvent(parseLog(t, &stdout), "evaluation"); len(again) != 1 || again[0].Accuracy < 0.94 {
			t.Errorf("evaluation after one more step: %+v", again)
		}
	})

	l.stop()
	for index, log := range l.logs {
		stopped := ofEvent(parseLog(t, log), "stopped")
		if len(stopped) != 1 || stopped[0].Updates != 2*steps+1 {
			t.Errorf("parameter server %d: %+v, want an end after %d updates", index, stopped, 2*steps+1)
		}
	}
}

func TestOneProcessLearnsAlone(t *testing.T) {
	trained := func(args ...string) line {
		t.Helper()
		var stdout, stderr bytes.Buffer
		args = append([]string{"-alone", "-steps", "600", "-log-every", "200"}, args...)
		if code := run(t.Context(), args, "", &stdout, &stderr); code != exitDone {
			t.Fatalf("exit code %d: %s", code, stderr.String())
		}
		lines := parseLog(t, &stdout)
		evaluations := ofEvent(lines, "evaluation")
		if len(lines) != 4 || len(ofEvent(lines, "progress")) != 3 || len(evaluations) != 1 {
			t.Fatalf("logged %+v, want 3 progress lines and an evaluation", lines)
		}
		evaluations[0].Time = time.Time{}
		return evaluations[0]
	}
	first := trained("-seed", "2")
	if first.Task != "worker" || first.Examples != 359 || first.Accuracy < 0.9 {
		t.Errorf("evaluation %+v, want 359 examples with an accuracy of 0.9 or more", first)
	}
	if again := trained("-seed", "2"); again != first {
		t.Errorf("the same seed gives %+v, and %+v before", again, first)
	}
	if other := trained("-seed", "3"); other == first {
		t.Errorf("another seed gives the same, %+v", other)
	}
}

// checkModel loads the saved model and evaluates it again.
func checkModel(t *testing.T, dir string, accuracy float64) {
	t.Helper()
	document, err := os.ReadFile(filepath.Join(dir, modelFile))
	if err != nil {
		t.Fatal(err)
	}
	var model savedModel
	if err := json.Unmarshal(document, &model); err != nil {
		t.Fatal(err)
	}
	parameters := slices.Concat(model.HiddenWeights, model.HiddenBias, model.OutputWeights, model.OutputBias)
	if len(parameters) != parameterCount || model.Layers != [3]int{64, 64, 10} {
		t.Fatalf("the model has %d parameters in layers %v", len(parameters), model.Layers)
	}
	digits, err := loadDigits("")
	if err != nil {
		t.Fatal(err)
	}
	if got := evaluate(parameters, splitDigits(digits).heldOut).accuracy(); math.Abs(got-accuracy) > 1e-4 {
		t.Errorf("the saved model reads %g of the held-out digits, the log says %g", got, accuracy)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the model folder holds %v (%v), want the model alone", entries, err)
	}
}

// cancelAfter is a log that calls cancel when an event is logged.
type cancelAfter struct {
	event  string
	cancel func()
}

func (c *cancelAfter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), `"event":"`+c.event+`"`) {
		c.cancel()
	}
	return len(p), nil
}

func TestBeingAskedToEnd(t *testing.T) {
	tests := map[string]struct {
		args  []string
		event string
		want  int
	}{
		"endless training is done": {[]string{"-steps", "0", "-log-every", "5"}, "progress", exitDone},
		"endless training with pauses, too": {
			[]string{"-steps", "0", "-log-every", "1", "-step-interval", "1h"}, "progress", exitDone,
		},
		"training with an end is interrupted": {
			[]string{"-steps", "1000000", "-log-every", "5"}, "progress", exitInterrupted,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := startLab(t, 1, 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var stderr bytes.Buffer
			code := run(ctx, test.args, l.config(t, "worker", 0), &cancelAfter{test.event, cancel}, &stderr)
			if code != test.want {
				t.Errorf("exit code %d, want %d: %s", code, test.want, stderr.String())
			}
		})
	}

	t.Run("waiting for a server is interrupted", func(t *testing.T) {
		l := &lab{servers: []string{"127.0.0.1:1"}, workers: []string{"127.0.0.1:2"}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		code := run(ctx, []string{"-connect-timeout", "1h"}, l.config(t, "worker", 0), &cancelAfter{"waiting", cancel},
			io.Discard)
		if code != exitInterrupted {
			t.Errorf("exit code %d, want %d", code, exitInterrupted)
		}
	})

	t.Run("training alone is interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		args := []string{"-alone", "-steps", "1000000", "-log-every", "5"}
		if code := run(ctx, args, "", &cancelAfter{"progress", cancel}, io.Discard); code != exitInterrupted {
			t.Errorf("exit code %d, want %d", code, exitInterrupted)
		}
	})

	t.Run("a parameter server is done", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l := &lab{servers: []string{listener.Addr().String()}, workers: []string{"127.0.0.1:2"}}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		if code := run(ctx, nil, l.config(t, "ps", 0), &cancelAfter{"serving", cancel}, &stderr); code != exitDone {
			t.Errorf("exit code %d, want %d: %s", code, exitDone, stderr.String())
		}
	})
}

func TestFailures(t *testing.T) {
	l := startLab(t, 1, 1)
	tests := map[string]struct {
		args   []string
		config string
		code   int
		want   string
	}{
		"no TF_CONFIG":   {nil, "", exitUsage, "TF_CONFIG is not set"},
		"unknown flag":   {[]string{"-step", "1"}, l.config(t, "worker", 0), exitUsage, "-step"},
		"stray argument": {[]string{"10"}, l.config(t, "worker", 0), exitUsage, `unexpected argument "10"`},
		"negative steps": {[]string{"-steps", "-1"}, l.config(t, "worker", 0), exitUsage, "-steps is -1"},
		"empty batch":    {[]string{"-batch-size", "0"}, l.config(t, "worker", 0), exitUsage, "-batch-size is 0"},
		"no learning": {
			[]string{"-learning-rate", "NaN"}, l.config(t, "worker", 0), exitUsage, "-learning-rate is NaN",
		},
		"no progress lines": {[]string{"-log-every", "0"}, l.config(t, "worker", 0), exitUsage, "-log-every is 0"},
		"negative pause": {
			[]string{"-step-interval", "-1s"}, l.config(t, "worker", 0), exitUsage, "-step-interval is -1s",
		},
		"no patience": {
			[]string{"-connect-timeout", "0s"}, l.config(t, "worker", 0), exitUsage, "-connect-timeout is 0s",
		},
		"no data":            {[]string{"-data", "no-such-file"}, l.config(t, "worker", 0), exitFailed, "no-such-file"},
		"port that is taken": {nil, l.config(t, "ps", 0), exitFailed, "cannot serve parameters on " + l.servers[0]},
		"alone without data": {[]string{"-alone", "-data", "no-such-file"}, "", exitFailed, "no-such-file"},
		"model folder that is a file": {[]string{"-steps", "1", "-model-dir", "main.go"}, l.config(t, "worker", 0),
			exitFailed,
			"cannot save the model"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			if code := run(t.Context(), test.args, test.config, io.Discard, &stderr); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !strings.Contains(stderr.String(), test.want) {
				t.Errorf("standard error %q, want %q", stderr.String(), test.want)
			}
		})
	}
}

func TestDivergenceIsAnError(t *testing.T) {
	l := startLab(t, 1, 1)
	parameters := make([]float64, parameterCount)
	for i := range parameters {
		parameters[i] = math.Inf(1)
	}
	log := newLogger(io.Discard)
	client := newParameterClient(l.servers, time.Minute, log)
	defer client.close()
	if err := client.push(t.Context(), parameters); err != nil { // an infinite gradient ruins all parameters
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	if code := run(t.Context(), nil, l.config(t, "worker", 0), io.Discard, &stderr); code != exitFailed ||
		!strings.Contains(stderr.String(), "lower -learning-rate") {
		t.Errorf("exit code %d, standard error %q", code, stderr.String())
	}
}

func TestHelpIsNoError(t *testing.T) {
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"-h"}, "", io.Discard, &stderr); code != exitDone ||
		!strings.Contains(stderr.String(), "-batch-size") {
		t.Errorf("exit code %d, standard error %q", code, stderr.String())
	}
}
