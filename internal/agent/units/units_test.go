//go:build linux

package units

import (
	"bytes"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("a-", 31) + "a"
	for _, c := range []struct{ got, want string }{
		{Name("lab", "job", "ABC"), "trainyard-lab-job-ABC.service"},
		{Name("my-lab", "job-worker-0", "ABC"), `trainyard-my\x2dlab-job\x2dworker\x2d0-ABC.service`},
		{
			Name(long, long, "ABC"),
			"trainyard-" + strings.ReplaceAll(long, "-", `\x2d`) + "-_278dc351d19064ba-ABC.service",
		},
		{Slice("lab", ""), "trainyard-lab.slice"},
		{Slice("my-lab", "a-job"), `trainyard-my\x2dlab-a\x2djob.slice`},
		{InstanceOf(Name("my-lab", "job-worker-0", "ABC")), "ABC"},
		{InstanceOf(Name(long, long, "ABC")), "ABC"},
		{pattern("my-lab"), `trainyard-my?x2dlab-*.service`},
	} {
		if c.got != c.want {
			t.Errorf("%s\ninstead of %s", c.got, c.want)
		}
	}
}

// TestNamesDiffer: names of instances are unique, and short enough for systemd.
func TestNamesDiffer(t *testing.T) {
	label := rapid.StringMatching(`[a-z]([a-z0-9-]{0,61}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		a := []string{label.Draw(t, "cluster"), label.Draw(t, "member"), "A"}
		b := []string{label.Draw(t, "cluster"), label.Draw(t, "member"), "A"}
		nameA, nameB := Name(a[0], a[1], a[2]), Name(b[0], b[1], b[2])
		if len(nameA) > maxName || (nameA == nameB) != slices.Equal(a, b) {
			t.Errorf("%s and %s of %s and %s", nameA, nameB, a, b)
		}
	})
}

func TestProperties(t *testing.T) {
	place := Place{
		Environment: "/s/m.env", Script: "/s/m.sh", Log: "/s/m.log", Record: "/s/m",
		Helpers: Helpers{stop: "/s/stop.sh", record: "/s/record.sh"},
	}
	base := map[string]any{
		"Description": "Trainyard: member job-worker-0 of cluster lab", "Slice": "trainyard-lab-job.slice",
		"Type": "simple", "CollectMode": "inactive-or-failed", "Restart": "no",
		"ExecStart":            []execution{{"/bin/sh", []string{"sh", "/s/m.sh"}, false}},
		"ExecStop":             []execution{{"/bin/sh", []string{"sh", "/s/stop.sh", "/s/m", "15"}, true}},
		"ExecStopPost":         []execution{{"/bin/sh", []string{"sh", "/s/record.sh", "/s/m"}, true}},
		"PermissionsStartOnly": true, "EnvironmentFiles": []environmentFile{{"/s/m.env", true}},
		"StandardOutputFileToAppend": "/s/m.log", "StandardErrorFileToAppend": "/s/m.log", "IgnoreSIGPIPE": false,
		"KillMode": "mixed", "KillSignal": int32(18), "SendSIGKILL": true, "TimeoutStopUSec": uint64(35e6),
		"MemoryAccounting": true, "IPAccounting": true, "TasksMax": uint64(math.MaxUint64), "OOMPolicy": "kill",
		"DevicePolicy": "closed", "DeviceAllow": devices(GPUs{}),
	}
	own := GPUs{Minors: []string{"1"}}
	spec := domain.MemberSpec{
		Cluster: "lab", Group: "job", Name: "job-worker-0", GracePeriod: domain.Duration(30 * time.Second),
	}
	for name, c := range map[string]struct {
		change func(spec *domain.MemberSpec, place *Place)
		want   map[string]any
	}{
		"plain": {func(*domain.MemberSpec, *Place) {}, nil},
		"resident": {func(s *domain.MemberSpec, _ *Place) { s.Group = "" },
			map[string]any{"Slice": "trainyard-lab.slice", "DevicePolicy": nil, "DeviceAllow": nil}},
		"GPUs": {func(_ *domain.MemberSpec, p *Place) { p.GPUs = own }, map[string]any{"DeviceAllow": devices(own)}},
		"GPUs and InfiniBand": {func(_ *domain.MemberSpec, p *Place) { p.GPUs, p.Fabric = own, true },
			map[string]any{"DeviceAllow": devices(own), "LimitMEMLOCK": uint64(math.MaxUint64)}},
		"InfiniBand alone": {func(_ *domain.MemberSpec, p *Place) { p.Fabric = true }, nil},
		"in a unit": {
			func(_ *domain.MemberSpec, p *Place) { p.Supervisor = "s.service" },
			map[string]any{"Before": []string{"s.service"}},
		},
		"user": {
			func(s *domain.MemberSpec, _ *Place) { s.Container.User = "ops" }, map[string]any{"User": "ops"},
		},
		"user and group": {
			func(s *domain.MemberSpec, _ *Place) { s.Container.User = "1000:100" },
			map[string]any{"User": "1000", "Group": "100"},
		},
		"memory": {func(s *domain.MemberSpec, _ *Place) { s.Resources.Limits.MemoryMiB = 2 },
			map[string]any{"MemoryMax": uint64(2 << 20), "MemorySwapMax": uint64(0)}},
		"CPUs": {
			func(s *domain.MemberSpec, _ *Place) { s.Resources.Limits.CPUs = 1.5 },
			map[string]any{"CPUQuotaPerSecUSec": uint64(1500000)},
		},
		"requests are no limits": {func(s *domain.MemberSpec, _ *Place) {
			s.Resources.CPUs, s.Resources.MemoryMiB = 1, 1
		}, nil},
		"no grace period": {
			func(s *domain.MemberSpec, _ *Place) { s.GracePeriod = 0 }, map[string]any{"TimeoutStopUSec": uint64(5e6)},
		},
		"signal": {func(s *domain.MemberSpec, _ *Place) { s.Container.StopSignal = "SIGRTMIN+3" },
			map[string]any{"ExecStop": []execution{{"/bin/sh", []string{"sh", "/s/stop.sh", "/s/m", "37"}, true}}}},
		"ulimits": {func(s *domain.MemberSpec, _ *Place) {
			s.Container.Ulimits = map[string]domain.Ulimit{
				"nofile": {Soft: 1, Hard: 2}, "memlock": {Soft: -1, Hard: -1},
			}
		}, map[string]any{
			"LimitNOFILE": uint64(2), "LimitNOFILESoft": uint64(1),
			"LimitMEMLOCK": uint64(math.MaxUint64), "LimitMEMLOCKSoft": uint64(math.MaxUint64),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			spec, place := spec, place
			c.change(&spec, &place)
			want := maps.Clone(base)
			maps.Copy(want, c.want)
			maps.DeleteFunc(want, func(_ string, value any) bool { return value == nil })
			got := map[string]any{}
			for _, property := range Properties(spec, place) {
				got[property.Name] = property.Value.Value()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecords(t *testing.T) {
	rest := strings.Repeat("\n", 100)
	for name, c := range map[string]struct {
		content  string
		want     Record
		complete bool
		code     int
		known    bool
	}{
		"exit code": {"\nresult=exit-code\ncode=exited\nstatus=203\noom_kills=0\ngroup=/a/b\ncomplete\n" + rest,
			Record{Result: "exit-code", Code: "exited", Status: "203", Group: "/a/b"}, true, 203, true},
		"signal, asked": {"asked\nresult=success\ncode=killed\nstatus=TERM\noom_kills=0\ngroup=/a\ncomplete\n",
			Record{Asked: true, Result: "success", Code: "killed", Status: "TERM", Group: "/a"}, true, 143, true},
		"out of memory": {"\nresult=signal\ncode=killed\nstatus=KILL\noom_kills=2\ngroup=/a\ncomplete\n",
			Record{Result: "signal", Code: "killed", Status: "KILL", OOMKills: 2, Group: "/a"}, true, 137, true},
		"out of the host's memory": {"\ncode=killed\nstatus=KILL\noom_kills=1\nooms=0\ngroup=/a\ncomplete\n",
			Record{Code: "killed", Status: "KILL", OOMKills: 1, NeverFull: true, Group: "/a"}, true, 137, true},
		"out of its own memory": {"\ncode=killed\nstatus=KILL\noom_kills=1\nooms=1\ngroup=/a\ncomplete\n",
			Record{Code: "killed", Status: "KILL", OOMKills: 1, Group: "/a"}, true, 137, true},
		"out of memory by version 1": {"\ncode=killed\nstatus=KILL\noom_kills=1\nooms=\ngroup=/a\ncomplete\n",
			Record{Code: "killed", Status: "KILL", OOMKills: 1, Group: "/a"}, true, 137, true},
		"real-time signal": {"\ncode=dumped\nstatus=RTMIN+2\ncomplete\n",
			Record{Code: "dumped", Status: "RTMIN+2"}, true, 164, true},
		"failed at once": {"\ncode=exited\nstatus=3\ncomplete\n", Record{Code: "exited", Status: "3"}, true, 3, true},
		"without a code": {
			"\nresult=resources\ncode=\nstatus=\ncomplete\n", Record{Result: "resources"}, true, 0, false,
		},
		"running":      {rest, Record{}, false, 0, false},
		"half written": {"\nresult=exit-code\ncode=exited\nsta", Record{}, false, 0, false},
		"empty":        {"", Record{}, false, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, complete := parseRecord(c.content)
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" || complete != c.complete {
				t.Errorf("complete: %v (-want +got):\n%s", complete, diff)
			}
			if code, known := got.ExitCode(); code != c.code || known != c.known {
				t.Errorf("the exit code is %d, %v", code, known)
			}
		})
	}
}

// TestHelpers: the scripts work without systemd, in any shell.
func TestHelpers(t *testing.T) {
	helpers, err := WriteHelpers(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, shell := range []string{"dash", "bash", "busybox"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue // it may be missing; /bin/sh is one of them
		}
		record := filepath.Join(t.TempDir(), "record")
		if err := Prepare(record); err != nil {
			t.Fatal(err)
		}
		run := func(script string, environment ...string) {
			t.Helper()
			args := []string{script, record, "0"} // the signal that only checks for existence
			if shell == "busybox" {
				args = append([]string{"sh"}, args...)
			}
			command := exec.Command(path, args...)
			command.Env = environment
			if output, err := command.CombinedOutput(); err != nil || len(output) > 0 {
				t.Errorf("%s %s: %v: %s", shell, filepath.Base(script), err, output)
			}
		}
		run(helpers.stop)
		if _, complete := ReadRecord(record); complete {
			t.Errorf("%s: it is complete before its end", shell)
		}
		run(helpers.record, "SERVICE_RESULT=exit-code", "EXIT_CODE=exited", "EXIT_STATUS=7")
		got, complete := ReadRecord(record)
		code, known := got.ExitCode()
		if !complete || got.Asked || code != 7 || !known || got.Group == "" {
			t.Errorf("%s: %+v, complete: %v", shell, got, complete)
		}
	}
	if _, err := WriteHelpers("/an odd/path"); err == nil {
		t.Error("an odd path is taken")
	}
}

// TestHelpersAfterPowerLoss: scripts that a power loss has emptied are written again.
func TestHelpersAfterPowerLoss(t *testing.T) {
	folder := t.TempDir()
	before, err := WriteHelpers(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{before.stop, before.record} {
		if err := os.Truncate(file, 0); err != nil {
			t.Fatal(err)
		}
	}
	after, err := WriteHelpers(folder)
	if err != nil || after != before {
		t.Fatalf("they are at %+v, then at %+v, %v", before, after, err)
	}
	for file, want := range map[string][]byte{after.stop: stopScript, after.record: recordScript} {
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %q, %v", filepath.Base(file), got, err)
		}
	}
}

// TestStart: the shell passes on exactly what was given. What systemd passes on is tested on real hosts.
func TestStart(t *testing.T) {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("ab$`\"'\\\n\t\r\x01\x1b\x7f\u0085%;# é日")), 0, 20, -1)
	folder := filepath.Join(t.TempDir(), "a'b $HOME")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "start.sh")
	rapid.Check(t, func(t *rapid.T) {
		want := map[string]string{
			"MAINPID": text.Draw(t, "MAINPID"), "EXIT_STATUS": text.Draw(t, "EXIT_STATUS"),
			"ODD": "\x01" + text.Draw(t, "ODD"),
		}
		if rapid.Bool().Draw(t, "OLDPWD is given") {
			want["OLDPWD"] = text.Draw(t, "OLDPWD")
		}
		arguments := rapid.SliceOf(text).Draw(t, "arguments")
		show := `pwd >&2; env -0; printf 'argument=%s\0' "$@"`
		_, script, err := Start(folder, append([]string{"/bin/sh", "-c", show, "sh"}, arguments...), want)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, script, 0o600); err != nil {
			t.Fatal(err)
		}
		command := exec.Command("/bin/sh", path)
		command.Env = []string{"PATH=/usr/bin:/bin"}
		var where strings.Builder
		command.Stderr = &where
		output, err := command.Output()
		if err != nil || where.String() != folder+"\n" {
			t.Fatalf("%v in %s", err, where.String())
		}
		got, received := map[string]string{}, []string{}
		for entry := range strings.SplitSeq(strings.TrimSuffix(string(output), "\x00"), "\x00") {
			name, value, _ := strings.Cut(entry, "=")
			if _, ours := want[name]; ours || name == "OLDPWD" {
				got[name] = value
			} else if name == "argument" {
				received = append(received, value)
			}
		}
		if len(arguments) == 0 {
			arguments = []string{""} // as printf has it
		}
		if diff := cmp.Diff(want, got) + cmp.Diff(arguments, received); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
	for _, wrong := range []map[string]string{{"a.b": ""}, {"": ""}, {"1A": ""}, {"A": "\x00"}} {
		if _, _, err := Start("/", []string{"true"}, wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
	if _, _, err := Start("/", []string{"true", "\x00"}, nil); err == nil {
		t.Error("an argument with a zero byte is taken")
	}
}
