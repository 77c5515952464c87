package facts

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/libc"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestCantStart: a host can start a program if it has its loader, and a recent enough glibc.
func TestCantStart(t *testing.T) {
	const glibcLoader, muslLoader = "/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"
	host := func(system, glibc string, loaders ...string) Facts {
		return Facts{OS: OS{Name: system, IDs: []string{"ubuntu"}}, Glibc: glibc, Loaders: loaders}
	}
	debian11 := host("Debian 11", "2.31", glibcLoader)
	alpine := host("Alpine 3.20", "", muslLoader)
	for name, test := range map[string]struct {
		host      Facts
		need      libc.Need
		why, mend string // "" if it can
	}{
		"static":       {Facts{}, libc.Need{}, "", ""},
		"the same":     {debian11, libc.Need{Loader: glibcLoader, Glibc: "2.31"}, "", ""},
		"an older one": {debian11, libc.Need{Loader: glibcLoader, Glibc: "2.2.5"}, "", ""},
		"a newer one": {
			debian11, libc.Need{Loader: glibcLoader, Glibc: "2.34"},
			"has glibc 2.31 (Debian 11), and agent needs glibc 2.34 or newer",
			"do-release-upgrade, or build the program with an older glibc",
		},
		"musl": {
			alpine, libc.Need{Loader: glibcLoader, Glibc: "2.17"},
			"has a different C library (Alpine 3.20) than agent needs: the program needs the loader " + glibcLoader +
				" of glibc 2.17 or newer, and the host's loader is " + muslLoader,
			"use a host with that C library",
		},
		"musl with a loader": {
			host("Alpine 3.20", "", glibcLoader, muslLoader), libc.Need{Loader: glibcLoader, Glibc: "2.17"},
			"has a different C library", "use a host",
		},
		"musl for musl": {alpine, libc.Need{Loader: muslLoader}, "", ""},
		"glibc for musl": {
			debian11, libc.Need{Loader: muslLoader},
			"the loader " + muslLoader + ", and the host's loader is " + glibcLoader, "use a host",
		},
		"no loader": {
			host("NixOS", "2.40"), libc.Need{Loader: glibcLoader, Glibc: "2.17"}, "and the host's loader is none",
			"use a host",
		},
	} {
		why, mend := test.host.CantStart("agent", test.need)
		if (why == "") != (test.why == "") || !strings.Contains(why, test.why) || !strings.Contains(mend, test.mend) {
			t.Errorf("%s: got %q, %q, want %q, %q", name, why, mend, test.why, test.mend)
		}
	}
}

// TestCheckLibrary: a host that can't start a program can't join; one that can't start the agent only lacks GPUs.
func TestCheckLibrary(t *testing.T) {
	old := Facts{
		Address: "ops@10.0.0.5", OS: OS{Name: "Debian 11"}, Glibc: "2.31", Loaders: []string{"/lib/ld.so"},
		NVIDIA: NVIDIA{Driver: "560.35"},
	}
	need := libc.Need{Loader: "/lib/ld.so", Glibc: "2.34"}
	without := old
	without.NVIDIA = NVIDIA{}
	newer := old
	newer.Glibc = "2.36"
	spec := domain.MemberSpec{Host: "gpu1", Role: "worker"}
	for name, test := range map[string]struct {
		check func(*domain.Problems)
		want  []string // the path, the summary and parts of the detail; none for no problem
	}{
		"a program": {func(ps *domain.Problems) { CheckProgram(ps, "gpu1", without, "/x/p", need) }, []string{
			`hosts["gpu1"].address`, "Program can't be started",
			`host "gpu1" (ops@10.0.0.5) has glibc 2.31 (Debian 11), and /x/p needs glibc 2.34`, "CGO_ENABLED=0",
		}},
		"a program on a newer host": {func(ps *domain.Problems) { CheckProgram(ps, "gpu1", newer, "/x/p", need) }, nil},
		"an agent": {func(ps *domain.Problems) { CheckAgent(ps, "gpu1", old, "/x/a", need) }, []string{
			`hosts["gpu1"].address`, noGPUs,
			`host "gpu1" (ops@10.0.0.5) has glibc 2.31 (Debian 11), and /x/a needs glibc 2.34`, "none can use its GPUs",
			"upgrade the system",
		}},
		"an agent without GPUs":    {func(ps *domain.Problems) { CheckAgent(ps, "gpu1", without, "/x/a", need) }, nil},
		"an agent on a newer host": {func(ps *domain.Problems) { CheckAgent(ps, "gpu1", newer, "/x/a", need) }, nil},
		"a role": {func(ps *domain.Problems) { CheckGPUs(ps, old, spec, "/x/a", need) }, []string{
			`roles["worker"].gpus`, noGPUs,
			`role "worker" requests GPUs of host "gpu1", which has glibc 2.31 (Debian 11), and /x/a needs glibc 2.34`,
			"upgrade the system",
		}},
		"a role on a newer host": {func(ps *domain.Problems) { CheckGPUs(ps, newer, spec, "/x/a", need) }, nil},
	} {
		var problems domain.Problems
		test.check(&problems)
		if len(test.want) == 0 {
			if len(problems) > 0 {
				t.Errorf("%s: %v", name, problems)
			}
			continue
		}
		if len(problems) != 1 || problems[0].Path.String() != test.want[0] || problems[0].Summary != test.want[1] ||
			problems[0].Warning != (name == "an agent") {
			t.Errorf("%s: got %+v, want one %v", name, problems, test.want)
			continue
		}
		for _, part := range test.want[2:] {
			if !strings.Contains(problems[0].Detail, part) {
				t.Errorf("%s: %q lacks %q", name, problems[0].Detail, part)
			}
		}
	}
}
