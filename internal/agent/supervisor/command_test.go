//go:build linux

package supervisor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCommand looks up programs in a folder with these files, of which bin/train and work/run.sh are executable:
//
//	bin/train  bin/notes  bin/folder/  more/train  more/only  work/run.sh  work/bin/train
func TestCommand(t *testing.T) {
	root := t.TempDir()
	at := func(elements ...string) string { return filepath.Join(append([]string{root}, elements...)...) }
	for _, dir := range []string{at("bin", "folder"), at("more"), at("work", "bin")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for path, mode := range map[string]os.FileMode{
		at("bin", "train"): 0o700, at("bin", "notes"): 0o600, at("more", "train"): 0o700, at("more", "only"): 0o700,
		at("more", "notes"): 0o700, at("work", "run.sh"): 0o700, at("work", "bin", "train"): 0o700,
	} {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	both := map[string]string{"PATH": at("bin") + ":" + at("more")}

	for name, c := range map[string]struct {
		command []string
		env     map[string]string
		want    []string
	}{
		"the first in PATH": {
			[]string{"train", "-v", "train"}, both, []string{at("bin", "train"), "-v", "train"},
		},
		"the second in PATH":            {[]string{"only"}, both, []string{at("more", "only")}},
		"past a file that can't be run": {[]string{"notes"}, both, []string{at("more", "notes")}},
		"PATH relative to the folder": {
			[]string{"train"}, map[string]string{"PATH": "bin"}, []string{at("work", "bin", "train")},
		},
		"an empty entry of PATH": {
			[]string{"run.sh"}, map[string]string{"PATH": ":" + at("bin")}, []string{at("work", "run.sh")},
		},
		"absolute":                   {[]string{at("more", "only")}, nil, []string{at("more", "only")}},
		"relative to the folder":     {[]string{"./run.sh", "x"}, both, []string{at("work", "run.sh"), "x"}},
		"relative, above the folder": {[]string{"../bin/train"}, nil, []string{at("bin", "train")}},
		"with a slash it is not in PATH": {
			[]string{"bin/train"}, map[string]string{"PATH": root}, []string{at("work", "bin", "train")},
		},
		"this program, whatever its name": {[]string{Self, "controller"}, nil, []string{Executable(), "controller"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Command(c.command, at("work"), c.env)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
		})
	}

	for name, c := range map[string]struct {
		command []string
		env     map[string]string
		want    string
	}{
		"nothing":           {nil, both, "no command"},
		"not in PATH":       {[]string{"absent"}, both, `"absent" not found in PATH "` + both["PATH"] + `"`},
		"not in the folder": {[]string{"run.sh"}, both, `"run.sh" not found in PATH "` + both["PATH"] + `"`},
		"without a PATH":    {[]string{"train"}, nil, `"train" not found in PATH ""`},
		"absolute, not executable": {
			[]string{at("bin", "notes")}, both,
			`"` + at("bin", "notes") + `" is not an executable file (working directory "` + at("work") + `")`,
		},
		"absolute, a folder": {
			[]string{at("bin", "folder")}, both,
			`"` + at("bin", "folder") + `" is not an executable file (working directory "` + at("work") + `")`,
		},
		"a folder in PATH": {[]string{"folder"}, both, `"folder" not found in PATH "` + both["PATH"] + `"`},
		"relative to another folder": {
			[]string{"./train"}, both, `"./train" is not an executable file (working directory "` + at("work") + `")`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Command(c.command, at("work"), c.env)
			if err == nil || err.Error() != c.want {
				t.Errorf("%q (%v); the error should be: %s", got, err, c.want)
			}
		})
	}
}

// TestCommandLeavesItsArgumentAlone: the argument is not modified, as specifications share their commands.
func TestCommandLeavesItsArgumentAlone(t *testing.T) {
	command := []string{"sh", "-c", "true"}
	got, err := Command(command, "/", map[string]string{"PATH": "/usr/bin:/bin"})
	if err != nil {
		t.Fatal(err)
	}
	got[0], got[2] = "x", "x"
	if diff := cmp.Diff([]string{"sh", "-c", "true"}, command); diff != "" {
		t.Errorf("the command was changed (-want +got):\n%s", diff)
	}
}
