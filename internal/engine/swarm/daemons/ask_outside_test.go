package daemons

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/swarm/swarmtest"
)

// offering is an Engine whose containers write these frames.
type offering struct {
	agentContainer

	frames io.Reader
}

func (o *offering) ContainerExecCreate(
	context.Context, string, container.ExecOptions,
) (container.ExecCreateResponse, error) {
	return container.ExecCreateResponse{}, nil
}

func (o *offering) ContainerExecAttach(
	context.Context, string, container.ExecAttachOptions,
) (types.HijackedResponse, error) {
	here, there := net.Pipe()
	go func() {
		_, _ = io.Copy(there, o.frames)
		_ = there.Close()
	}()
	return types.HijackedResponse{Conn: here, Reader: bufio.NewReader(here)}, nil
}

// askedIn returns a function that queries an agent with this output, and returns the error.
func askedIn(frames io.Reader) func(*testing.T) error {
	return func(t *testing.T) error {
		_, err := askThrough(acctest.Bounded(t), &offering{frames: frames}, "id", nil, telemetry.Query{})
		return err
	}
}

// FuzzAskThrough: whatever an agent's output is, the result is reports or a short reason.
func FuzzAskThrough(f *testing.F) {
	framed := func(kind stdcopy.StdType, text string) []byte {
		var frames strings.Builder
		_, _ = io.WriteString(stdcopy.NewStdWriter(&frames, kind), text)
		return []byte(frames.String())
	}
	f.Add(framed(stdcopy.Stdout, `{"reports":{"node1":{"host":{"cpus":{"last":1}}}}}`))
	f.Add(framed(stdcopy.Stdout, `{"reports":`))
	f.Add(framed(stdcopy.Stderr, "no such file\n"))
	f.Add(framed(stdcopy.Systemerr, "gone"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frames []byte) {
		if _, err := askThrough(t.Context(), &offering{frames: strings.NewReader(string(frames))}, "id", nil,
			telemetry.Query{}); err != nil && len(err.Error()) > 8<<10 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}

// TestAskThroughOutside: memory for an agent's output is bounded, and the error says if there is more.
func TestAskThroughOutside(t *testing.T) {
	if !acctest.Alone(t) {
		return
	}
	for name, source := range map[string]struct {
		frames io.Reader
		most   int64
	}{
		"standard output":        {swarmtest.Frames(stdcopy.Stdout), 2 * bounded.Reports},
		"standard error":         {swarmtest.Frames(stdcopy.Stderr), 4 * bounded.Reports},
		"one frame":              {swarmtest.OneFrame(stdcopy.Stdout, "x\n"), 2 * bounded.Reports},
		"an error of the Engine": {swarmtest.OneFrame(stdcopy.Systemerr, "x\n"), 4 * bounded.Reports},
	} {
		t.Run(name, func(t *testing.T) { acctest.RefusesMore(t, askedIn(source.frames), source.most) })
	}
}
