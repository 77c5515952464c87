package swarm

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/system"
)

func TestRuntimeAdvice(t *testing.T) {
	const configure = `is "runc" there: to use its GPUs, make it "nvidia" (`
	for name, test := range map[string]struct {
		runtimes  []string
		byDefault string
		want      string
	}{
		"NVIDIA's is the default":    {runtimes: []string{"nvidia", "runc"}, byDefault: "nvidia"},
		"it is not the default":      {runtimes: []string{"nvidia", "runc"}, byDefault: "runc", want: configure + "nvidia-ctk runtime configure --runtime=docker --set-as-default, "},
		"it is not installed":        {runtimes: []string{"runc"}, byDefault: "runc", want: configure + "install NVIDIA's container toolkit, then nvidia-ctk runtime configure "},
		"there are none of any name": {byDefault: "runc", want: configure + "install NVIDIA's container toolkit"},
	} {
		t.Run(name, func(t *testing.T) {
			info := system.Info{DefaultRuntime: test.byDefault, Runtimes: map[string]system.RuntimeWithStatus{}}
			for _, runtime := range test.runtimes {
				info.Runtimes[runtime] = system.RuntimeWithStatus{}
			}
			if got := runtimeAdvice(info); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want it to say %q", got, test.want)
			}
		})
	}
}
