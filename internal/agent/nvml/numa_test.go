package nvml

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyNode(t *testing.T) {
	for name, test := range map[string]struct {
		nodes []uint
		want  int
		only  bool
	}{
		"none":           {nodes: []uint{0, 0}},
		"no set":         {},
		"the first":      {nodes: []uint{1, 0}, want: 0, only: true},
		"one of many":    {nodes: []uint{0, 1 << 5}, want: 69, only: true},
		"two":            {nodes: []uint{3}},
		"two far apart":  {nodes: []uint{1, 1}},
		"all of a first": {nodes: []uint{^uint(0), 0}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, only := onlyNode(test.nodes); only != test.only || only && got != test.want {
				t.Errorf("%d, %v", got, only)
			}
		})
	}
}

func TestKernelNUMANode(t *testing.T) {
	devices := t.TempDir()
	for id, text := range map[string]string{"0000:3b:00.0": "1\n", "0000:3c:00.0": "-1\n", "0000:3d:00.0": "?\n"} {
		if err := os.Mkdir(filepath.Join(devices, id), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(devices, id, "numa_node"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]*int{
		"00000000:3B:00.0": new(1),
		"00000000:3C:00.0": nil, // the host has one node
		"00000000:3D:00.0": nil,
		"00000000:3E:00.0": nil,
		"":                 nil,
	} {
		if diff := cmp.Diff(want, kernelNUMANode(devices, id)); diff != "" {
			t.Errorf("node of %q (-want +got):\n%s", id, diff)
		}
	}
}

func TestKernelBusID(t *testing.T) {
	for id, want := range map[string]string{
		"00000000:3B:00.0": "0000:3b:00.0",
		"0000:af:1F.7":     "0000:af:1f.7",
		"00010000:01:00.0": "10000:01:00.0",
		"":                 "",
		"3B:00.0":          "",
		"../../etc":        "",
	} {
		if got := kernelBusID(id); got != want {
			t.Errorf("%q is %q, want %q", id, got, want)
		}
	}
}

// FuzzKernelBusID: only a bus ID can become part of a path.
func FuzzKernelBusID(f *testing.F) {
	f.Add("00000000:3B:00.0")
	f.Add("0:0:0.0/../..")
	f.Add("ffffffff:ff:1f.7")
	valid := regexp.MustCompile(`^([0-9a-f]{4,8}:[0-9a-f]{2,8}:[0-9a-f]{2,8}\.[0-9a-f]{1,8})?$`)
	f.Fuzz(func(t *testing.T, id string) {
		got := kernelBusID(id)
		if !valid.MatchString(got) {
			t.Errorf("%q is %q", id, got)
		}
		if again := kernelBusID(got); again != got {
			t.Errorf("%q is %q, and that %q", id, got, again)
		}
	})
}
