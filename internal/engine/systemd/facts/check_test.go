package facts

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// good is a host that lacks nothing.
func good() Facts {
	f := fullFacts()
	f.Address, f.Lacks, f.Home.MountOptions = "ops@10.0.0.5", nil, []string{"rw"}
	return f
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*Facts)
		want    string // the summary; "" for no problem
		warning bool
		parts   []string // parts of the detail: what was found, what is allowed, and the command
	}{
		"nothing":      {change: func(*Facts) {}},
		"root itself":  {change: func(f *Facts) { f.User, f.UserID = "root", 0 }},
		"a minute off": {change: func(f *Facts) { f.Apart = time.Minute }},
		"no sudo without a password": {
			change: func(f *Facts) { f.Root, f.Refusal = false, "a password is required" }, want: "No root access",
			parts: []string{
				`does not allow ops (user ID 1000) to use sudo without a password (a password is required)`,
				"needs root or", "echo 'ops ALL=(ALL) NOPASSWD: ALL' | sudo tee /etc/sudoers.d/trainyard",
			},
		},
		"no sudo at all": {
			change: func(f *Facts) { f.Root, f.Refusal, f.OS.IDs = false, noSudo, []string{"rocky", "rhel"} },
			want:   "No root access",
			parts: []string{
				"has no sudo", `address = "root@…"`,
				"dnf install -y sudo && echo 'ops ALL=(ALL) NOPASSWD: ALL' | tee /etc/sudoers.d/trainyard",
			},
		},
		"sudo with a terminal": {
			change: func(f *Facts) { f.Root, f.Refusal = false, "sorry, you must have a tty to run sudo" },
			want:   "No root access",
			parts: []string{
				"only from a terminal", "echo 'Defaults:ops !requiretty' | sudo tee /etc/sudoers.d/trainyard-tty",
			},
		},
		"no systemd": {
			change: func(f *Facts) {
				f.Systemd, f.SystemdRuns, f.Init, f.OS.Name = 0, false, "init", "Alpine Linux v3.20"
			}, want: "No systemd",
			parts: []string{"Alpine Linux v3.20, with init as PID 1", "systemd 247 or newer", "Use another host"},
		},
		"systemd not first": {
			change: func(f *Facts) { f.SystemdRuns, f.Init = false, "sh" }, want: "No systemd",
			parts: []string{"systemd 255, but PID 1 is sh", "systemd 247 or newer", "init=/lib/systemd/systemd"},
		},
		"old systemd": {
			change: func(f *Facts) { f.Systemd, f.OS.Name = 245, "Ubuntu 20.04 LTS" }, want: "systemd too old",
			parts: []string{"systemd 245 (Ubuntu 20.04 LTS)", "systemd 247 or newer", "sudo do-release-upgrade"},
		},
		"another architecture": {
			change: func(f *Facts) { f.Machine, f.Architecture = "aarch64", "arm64" },
			want:   "No program for the architecture",
			parts:  []string{"arm64 (aarch64)", "programs for amd64", `agent_binaries = { arm64 = "PATH" }`},
		},
		"an unknown architecture": {
			change: func(f *Facts) { f.Machine, f.Architecture = "vax", "" }, want: "Unknown architecture",
			parts: []string{`"vax"`, "programs for amd64"},
		},
		"missing commands": {
			change: func(f *Facts) { f.Lacks = []string{"sha256sum", "mktemp", "gzip"} }, want: "Commands missing",
			parts: []string{"lacks gzip, mktemp, sha256sum", "sudo apt-get install -y coreutils gzip"},
		},
		"no machine ID": {
			change: func(f *Facts) { f.MachineID = "" }, want: "No machine ID",
			parts: []string{"/etc/machine-id", "sudo systemd-machine-id-setup"},
		},
		"a read-only disk": {
			change: func(f *Facts) { f.Home.Writable, f.Home.MountOptions = false, []string{"ro", "noexec"} },
			want:   "Read-only disk",
			parts: []string{
				"mounted at /data/my disk (ro,noexec)", "/var/lib/trainyard",
				"sudo mount -o remount,rw '/data/my disk'",
			},
		},
		"a disk without programs": {
			change: func(f *Facts) { f.Home.MountOptions = []string{"rw", "noexec"} }, want: "Disk mounted noexec",
			parts: []string{"(rw,noexec)", "/var/lib/trainyard/bin", "sudo mount -o remount,exec '/data/my disk'"},
		},
		"a full disk": {
			change: func(f *Facts) { f.Home.FreeBytes = 499 << 20 }, want: "Disk full",
			parts: []string{
				"499 MiB free in /data/my disk/trainyard", "at least 500", "sudo du -xh --max-depth=2 '/data/my disk'",
			},
		},
		"a disk that can't be looked at": {
			change: func(f *Facts) { f.Root, f.Home = false, Home{Folder: "/var/lib"} }, want: "No root access",
		},
		"no control groups": {
			change: func(f *Facts) { f.ControlGroups = "" }, want: "No control groups", warning: true,
			parts: []string{"systemd.unified_cgroup_hierarchy=1"},
		},
		"no limits of memory": {
			change: func(f *Facts) { f.Controllers = []string{"cpu"} }, want: "Limits not enforced", warning: true,
			parts: []string{"(version 2) without memory (available: cpu)", "Add cgroup_enable=memory"},
		},
		"no limits": {
			change: func(f *Facts) { f.Controllers = nil }, want: "Limits not enforced", warning: true,
			parts: []string{"without cpu, memory (available: none)", "Add cgroup_enable=cpu cgroup_enable=memory"},
		},
		"a clock ahead": {
			change: func(f *Facts) { f.Apart = time.Minute + time.Second }, want: "Clock skew", warning: true,
			parts: []string{
				"1m1s ahead of", "2026-11-24T13:59:05Z", "a minute is allowed", "sudo timedatectl set-ntp true",
			},
		},
		"a clock behind": {
			change: func(f *Facts) { f.User, f.UserID, f.Apart = "root", 0, -time.Hour }, want: "Clock skew",
			warning: true,
			parts:   []string{"1h0m0s behind", ": timedatectl set-ntp true"},
		},
		"no clock": {change: func(f *Facts) { f.Clock = time.Time{} }, want: "Clock unknown", warning: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := good()
			test.change(&f)
			problems := Check("gpu1", f, []string{"amd64"})
			if test.want == "" {
				if problems != nil {
					t.Error(problems)
				}
				return
			}
			if len(problems) != 1 || problems[0].Summary != test.want || problems[0].Warning != test.warning {
				t.Fatalf("the problems are %+v, want one: %s", problems, test.want)
			}
			if at := problems[0].Path.String(); at != `hosts["gpu1"].address` {
				t.Errorf("it is at %s", at)
			}
			for _, part := range append(test.parts, `host "gpu1" (ops@10.0.0.5) `) {
				if !strings.Contains(problems[0].Detail, part) {
					t.Errorf("it lacks %q: %s", part, problems[0].Detail)
				}
			}
		})
	}
}

// TestCheckAtOnce: all problems are reported together.
func TestCheckAtOnce(t *testing.T) {
	got := summaries(Check("gpu1",
		Facts{UserID: 1000, Root: true, Home: Home{Folder: "/var/lib"}, Lacks: []string{"gzip"}}, nil))
	want := []string{
		"No systemd", "Unknown architecture", "Commands missing", "No machine ID", "Read-only disk", "Disk full",
		"No control groups", "Clock unknown",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheckAll(t *testing.T) {
	one, other, copied, apart := good(), good(), good(), good()
	other.Address = "gpu1.lab.example"
	copied.Address, copied.BootID = "ops@10.0.0.6", "0d3ce464-2bb7-4f44-81a9-828529dee982"
	apart.MachineID = strings.Repeat("0", 32)
	broken := good()
	broken.MachineID = ""
	problems := CheckAll(map[string]Facts{"a": one, "b": other, "c": copied, "d": apart, "e": broken, "f": broken},
		[]string{"amd64"})
	want := []string{"Host declared twice", "Duplicate machine ID", "No machine ID", "No machine ID"}
	if diff := cmp.Diff(want, summaries(problems)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for i, parts := range [][]string{
		{
			`hosts["b"].address`, `"a" (ops@10.0.0.5) and "b" (gpu1.lab.example) are the same machine`, "gpu1",
			someMachine, "10.0.0.5, fd00::2", "Remove one of them",
		},
		{
			`hosts["c"].address`, `"a" (ops@10.0.0.5) and "c" (ops@10.0.0.6) have the same machine ID`,
			"sudo systemd-machine-id-setup && sudo systemctl reboot",
		},
	} {
		for _, part := range parts {
			if !strings.Contains(problems[i].Error(), part) {
				t.Errorf("it lacks %q: %v", part, problems[i])
			}
		}
	}
	if problems[0].Warning || !problems[1].Warning {
		t.Error("one machine twice is an error, a copy is a warning")
	}
}

func summaries(problems domain.Problems) []string {
	var all []string
	for _, problem := range problems {
		all = append(all, problem.Summary)
	}
	return all
}
