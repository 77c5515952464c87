//go:build linux

package systemd

import (
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc/libctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
)

// TestProgramsByLibrary: a host gets the agent if its C library can start it, and otherwise reads no GPUs: a plan says
// so, and requests for GPUs get the reason.
func TestProgramsByLibrary(t *testing.T) {
	const loader = "/lib/ld-linux.so.2"
	folder := t.TempDir()
	provider := programFor(t, filepath.Join(folder, "provider"), architectures[runtime.GOARCH])
	libctest.Program(t, filepath.Join(folder, telemetry.AgentName+"_linux_"+runtime.GOARCH), loader, "GLIBC_2.17",
		"GLIBC_2.34")
	p := Program{File: provider}
	needs, err := p.Needs()
	if got := needs[runtime.GOARCH]; err != nil || got.Program != provider || got.ForProgram != (libc.Need{}) ||
		filepath.Dir(got.Agent) != folder || got.ForAgent != (libc.Need{Loader: loader, Glibc: "2.34"}) {
		t.Errorf("hosts run %+v, %v", needs, err)
	}
	driver := facts.NVIDIA{Driver: "560.35.03"}
	specs := []domain.MemberSpec{
		{Host: "h", Role: "worker", Env: map[string]string{"NVIDIA_VISIBLE_DEVICES": "GPU-1"}}, {Host: "h", Role: "ps"},
	}
	for name, test := range map[string]struct {
		host   facts.Facts
		brings []string // the names of the files
		why    string   // why the host reads no GPUs; "" if it does
		warns  bool
	}{
		"the same": {
			facts.Facts{Glibc: "2.34", Loaders: []string{loader}, NVIDIA: driver},
			[]string{"trainyard", telemetry.AgentName}, "", false,
		},
		"older": {
			facts.Facts{Glibc: "2.31", Loaders: []string{loader}, NVIDIA: driver}, []string{"trainyard"},
			"has glibc 2.31", true,
		},
		"older, no GPUs": {
			facts.Facts{Glibc: "2.31", Loaders: []string{loader}}, []string{"trainyard"}, "has glibc 2.31", false,
		},
		"musl": {
			facts.Facts{Loaders: []string{"/lib/ld-musl.so.1"}, NVIDIA: driver}, []string{"trainyard"},
			"has a different C library", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.host.Architecture = runtime.GOARCH
			files, err := p.filesFor(test.host)
			var brings []string
			for _, file := range files {
				brings = append(brings, file.Name)
			}
			if err != nil || !reflect.DeepEqual(brings, test.brings) {
				t.Errorf("it gets %q, %v, want %q", brings, err, test.brings)
			}
			e := &Engine{reach: &reach{program: p}, seen: &seenHosts{}}
			e.seen.set(map[string]facts.Facts{"h": test.host})
			problems, err := p.check(map[string]facts.Facts{"h": test.host})
			if err != nil || problems.Err() != nil || (len(problems) == 1) != test.warns {
				t.Errorf("the problems are %v, %v", problems, err)
			}
			gpus := domain.HostGPUs{Unknown: "built without cgo"}
			e.explainGPUs("h", &gpus)
			asked := e.checkGPUs("h", specs)
			if test.why == "" {
				if gpus.Unknown != "built without cgo" || len(asked) > 0 {
					t.Errorf("its GPUs can't be read: %q, %v", gpus.Unknown, asked)
				}
				return
			}
			if !strings.HasPrefix(gpus.Unknown, "it "+test.why) {
				t.Errorf("its GPUs are not known: %q, want as it %s", gpus.Unknown, test.why)
			}
			if len(asked) != 1 || asked[0].Path.String() != `roles["worker"].gpus` ||
				!strings.Contains(asked[0].Detail, test.why) {
				t.Errorf("a request for its GPUs has the problems %v, want one that it %s", asked, test.why)
			}
		})
	}
}

// TestProgramThatHostsCantStart: a host that can't start the main program can't join.
func TestProgramThatHostsCantStart(t *testing.T) {
	folder := t.TempDir()
	own := programFor(t, filepath.Join(folder, "provider"), architectures[runtime.GOARCH])
	dynamic := libctest.Program(t, filepath.Join(folder, "dynamic"), "/lib/ld-linux.so.2", "GLIBC_2.34")
	old := map[string]facts.Facts{
		"h": {Architecture: runtime.GOARCH, Glibc: "2.31", Loaders: []string{"/lib/ld-linux.so.2"}},
	}
	for name, test := range map[string]struct {
		program Program
		starts  bool
	}{
		"static":            {Program{File: own}, true},
		"the provider":      {Program{File: dynamic}, false},
		"what is given":     {Program{File: own, Binaries: map[string]string{runtime.GOARCH: dynamic}}, false},
		"static, and given": {Program{File: dynamic, Binaries: map[string]string{runtime.GOARCH: own}}, true},
	} {
		problems, err := test.program.check(old)
		if err != nil || (problems.Err() == nil) != test.starts {
			t.Errorf("%s: %v, %v", name, problems, err)
		}
	}
}
