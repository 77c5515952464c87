package dockerapi_test

import (
	"io"
	"testing"

	"github.com/docker/docker/pkg/stdcopy"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/dockerapi"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// readLog reads a member's log from these frames.
func readLog(frames io.Reader, options engine.LogOptions) error {
	lines := options.Lines()
	return dockerapi.Demultiplex(lines, lines, frames)
}

// TestLogOutside: memory for a member's log is bounded, and the error says if there is more.
func TestLogOutside(t *testing.T) {
	if !acctest.Alone(t) {
		return
	}
	for name, source := range map[string]struct {
		frames  io.Reader
		options engine.LogOptions
		most    int64
	}{
		"a log":                {swarmtest.Frames(stdcopy.Stdout), engine.LogOptions{}, bounded.Log},
		"a log of empty lines": {swarmtest.OneFrame(stdcopy.Stdout, "\n"), engine.LogOptions{}, bounded.Log},
		"a log for a policy": {
			swarmtest.Frames(stdcopy.Stderr), engine.LogOptions{Tail: 20_000, Most: bounded.ProgressLog},
			bounded.ProgressLog,
		},
		"a log in one frame": {swarmtest.OneFrame(stdcopy.Stdout, "x\n"), engine.LogOptions{}, bounded.Log},
	} {
		t.Run(name, func(t *testing.T) {
			acctest.RefusesMore(t, func(*testing.T) error { return readLog(source.frames, source.options) },
				source.most)
		})
	}
	// Only the end of a long log is kept.
	t.Run("the end of a log", func(t *testing.T) {
		if err := readLog(swarmtest.Frames(stdcopy.Stdout), engine.LogOptions{Tail: 100}); err != nil {
			t.Error(err)
		}
	})
}
