//go:build linux

package systems_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// experiment runs the program of the module "experiments" without the module, in a folder of results.
type experiment struct {
	*testing.T
	python, folder string
}

// experimentEpisodes is how many episodes the experiment has, with a line of metrics for each ten.
const experimentEpisodes = 1000

const experimentConfig = `{
  "market": {
    "max_storage": 100, "episode_length": 50, "max_price": 10, "max_quality": 50, "customers": 20,
    "production_price": 3, "storage_cost": 0.1
  },
  "learning": {
    "gamma": 0.99, "batch_size": 32, "replay_size": 100000, "replay_start": 10000, "learning_rate": 0.1,
    "target_frames": 1000, "epsilon_start": 1, "epsilon_final": 0.1, "epsilon_frames": 7000, "hidden_units": 128
  },
  "environment": {"agent": "q_learning", "episodes": %d, "seed": 0}
}`

// start starts an attempt, which saves no checkpoint before it is asked to end.
func (e experiment) start() *exec.Cmd {
	e.Helper()
	config := filepath.Join(e.TempDir(), "config.json")
	e.must(os.WriteFile(config, fmt.Appendf(nil, experimentConfig, experimentEpisodes), 0o600))
	program := filepath.Join(acceptance.Modules, "experiments", "train", "train.py")
	command := exec.CommandContext(e.Context(), e.python, program) //nolint:gosec // our own
	command.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "OPENBLAS_NUM_THREADS=1", "SAVE_SECONDS=3600",
		"TRAINYARD_CONFIG="+config, "TRAINYARD_RESULTS="+e.folder)
	command.Stderr = os.Stderr
	e.must(command.Start())
	return command
}

func (e experiment) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e experiment) file(name string) string { return filepath.Join(e.folder, name) }

func (e experiment) metrics() string {
	e.Helper()
	content, err := os.ReadFile(e.file("metrics.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		e.Fatal(err)
	}
	return string(content)
}

// goesOn waits until there are a few more metrics.
func (e experiment) goesOn() {
	e.Helper()
	const lines = 5
	before := strings.Count(e.metrics(), "\n")
	acctest.Eventually(e, fmt.Sprintf("%d lines of metrics", before+lines), func() bool {
		return strings.Count(e.metrics(), "\n") >= before+lines
	})
}

// reported returns the episodes in the metrics.
func (e experiment) reported() (episodes []int) {
	e.Helper()
	for text := range strings.Lines(e.metrics()) {
		var entry line
		e.must(json.Unmarshal([]byte(text), &entry))
		episodes = append(episodes, entry.Episode)
	}
	return episodes
}

// shown returns the episodes in the files for TensorBoard, sorted.
func (e experiment) shown() (episodes []int) {
	e.Helper()
	files, err := filepath.Glob(e.file("events/*"))
	e.must(err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		e.must(err)
		for len(content) > 0 { // a length with its checksum, and an event with its own
			size := binary.LittleEndian.Uint64(content)
			event := content[12 : 12+size]
			if event[9] == 0x10 { // it has a step
				step, _ := binary.Uvarint(event[10:])
				episodes = append(episodes, int(step)) //nolint:gosec // it is small
			}
			content = content[12+size+4:]
		}
	}
	slices.Sort(episodes)
	return episodes
}

// An experiment that is killed some time after its checkpoint, and resumes from there, leaves the same metrics as one
// that is never interrupted, and TensorBoard sees each episode once.
func TestSystemExperimentsResume(t *testing.T) {
	python := filepath.Join(acceptance.Python(t, "rl"), "python3")
	whole, killed := experiment{t, python, t.TempDir()}, experiment{t, python, t.TempDir()}
	whole.must(whole.start().Wait())

	attempt := killed.start()
	killed.goesOn()
	killed.must(attempt.Process.Signal(syscall.SIGTERM))
	if err := attempt.Wait(); !exitedWith(128 + int(syscall.SIGTERM))(err) {
		t.Fatalf("it ends with %v", err)
	}
	attempt = killed.start()
	killed.goesOn()
	killed.must(attempt.Process.Kill())
	if err := attempt.Wait(); err == nil {
		t.Fatal("it had ended already")
	}
	// It may have been killed in the middle of a line.
	file, err := os.OpenFile(killed.file("metrics.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	killed.must(err)
	_, err = file.WriteString(`{"episode": 9`)
	killed.must(err)
	killed.must(file.Close())
	killed.must(killed.start().Wait())

	if err := acceptance.Differences(whole.metrics(), killed.metrics()); err != nil {
		t.Errorf("the metrics of the killed one differ: %v", err)
	}
	for name, e := range map[string]experiment{"the whole one": whole, "the killed one": killed} {
		if want := e.reported(); len(want) != experimentEpisodes/10 || !slices.Equal(e.shown(), want) {
			t.Errorf("%s shows TensorBoard the episodes %v, want %v", name, e.shown(), want)
		}
	}
}
