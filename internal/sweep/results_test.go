package sweep

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

var (
	// onHosts has members as processes of their hosts, each with its own folder; inContainers has members without one.
	onHosts = Site{
		Address:  func(_, host string) string { return host },
		FilesDir: func(member, _ string) string { return "/state/files/" + member },
		WorkDir:  func(member string) string { return "/state/own/" + member },
	}
	inContainers = Site{
		Address:  func(member, _ string) string { return member },
		FilesDir: func(_, _ string) string { return domain.FilesDir },
	}
	// bare has members in containers of their hosts, with a folder for each.
	bare = Site{
		Address: onHosts.Address, FilesDir: inContainers.FilesDir, WorkDir: onHosts.WorkDir,
		InContainer: func(string) bool { return true },
	}
)

// TestResults checks what a run learns about where its results go, and what the engine has to keep for it.
func TestResults(t *testing.T) {
	volume := domain.Mount{Type: domain.MountVolume, Source: "lr", Target: "/data"}
	inner := domain.Mount{Type: domain.MountBind, Source: "/mnt/nas", Target: "/data/nas/"}
	for name, test := range map[string]struct {
		path   string
		mounts []domain.Mount
		at     Site
		env    string
		kept   string
		in     *domain.Mount
	}{
		"below the run's own folder": {
			"results", nil, onHosts, "/state/own/lr-r0-0/results", "/state/own/lr-r0-0/results", nil,
		},
		"in a folder of the host": {"/data/", nil, onHosts, "/data/lr/r0", "/data/lr/r0", nil},
		"in a mount of the host": {
			"/data", []domain.Mount{volume}, onHosts, "/data/lr/r0", "/data/lr/r0", &volume,
		},
		"in a volume of its own": {
			"/results/", []domain.Mount{volume}, inContainers, "/results", "/results", nil,
		},
		"at a declared mount": {"/data", []domain.Mount{volume}, inContainers, "/data/lr/r0", "", &volume},
		"below a declared mount": {
			"/data/a/b", []domain.Mount{inner, volume}, inContainers, "/data/a/b/lr/r0", "", &volume,
		},
		"in a mount within a mount": {
			"/data/nas", []domain.Mount{volume, inner}, inContainers, "/data/nas/lr/r0", "", &inner,
		},
		"below a folder of the host's": {
			"results", nil, bare, "/state/own/lr-r0-0/results", "/state/own/lr-r0-0/results", nil,
		},
		"in a folder that is the host's":  {"/data/", nil, bare, "/data/lr/r0", "/data/lr/r0", nil},
		"in a mount of a host's folder":   {"/data/nas", []domain.Mount{inner}, bare, "/data/nas/lr/r0", "", &inner},
		"beside a mount of a like target": {"/data2", []domain.Mount{volume}, inContainers, "/data2", "/data2", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := sweepOf("lr", 1)
			s.Mounts, s.Results = test.mounts, &domain.Results{Path: test.path}
			run := Start(documentOf(s), s.Run("r0"), domain.Run{}, domain.Assignment{Host: "gpu1"}, 1, noon)
			run.Results = ResultsOf(s, "r0", test.at)
			spec, err := Spec(s, "r0", run, test.at)
			if err != nil {
				t.Fatal(err)
			}
			if spec.Env[resultsVariable] != test.env || spec.Kept != test.kept {
				t.Errorf("its variable is %q, and %q is kept", spec.Env[resultsVariable], spec.Kept)
			}
			folder, kept := Folder("lr", "r0", run)
			if diff := cmp.Diff(domain.KeptFolder{Member: "lr-r0-0", Host: "gpu1", Path: test.env, Mount: test.in},
				folder); diff != "" || !kept {
				t.Errorf("the folder (-want +got):\n%s", diff)
			}
			if ps := CheckResults(s, test.at, "some"); len(ps) > 0 {
				t.Error(ps)
			}
		})
	}
}

func TestNoResults(t *testing.T) {
	s := sweepOf("lr", 1)
	run := Start(documentOf(s), s.Run("r0"), domain.Run{}, domain.Assignment{Host: "gpu1"}, 1, noon)
	run.Results = ResultsOf(s, "r0", inContainers)
	spec, err := Spec(s, "r0", run, inContainers)
	if err != nil {
		t.Fatal(err)
	}
	if _, found := spec.Env[resultsVariable]; found || spec.Kept != "" || len(spec.Files) > 0 {
		t.Errorf("it is given %+v", spec)
	}
	if folder, kept := Folder("lr", "r0", run); kept {
		t.Errorf("it has a folder %+v", folder)
	}
}

func TestCheckResults(t *testing.T) {
	in := func(m domain.Mount) func(s *domain.Sweep) {
		m.Target = "/data"
		return func(s *domain.Sweep) { s.Mounts, s.Results.Path = []domain.Mount{m}, "/data/results" }
	}
	for name, test := range map[string]struct {
		change func(s *domain.Sweep)
		at     Site
		path   string
		says   []string
	}{
		"relative in a container": {
			func(s *domain.Sweep) { s.Results.Path = "results" }, inContainers, "results.path",
			[]string{`"results" is relative`, `"some"`, `"/results"`, "named volume", "shared by all hosts"},
		},
		"in a tmpfs": {
			in(domain.Mount{Type: domain.MountTmpfs}), inContainers, "results.path",
			[]string{`"/data/results"`, `"/data"`, "tmpfs"},
		},
		"in what can't be written": {
			in(domain.Mount{Type: domain.MountVolume, Source: "lr", ReadOnly: true}), inContainers, "results.path",
			[]string{`"/data/results"`, `"/data"`, "read-only"},
		},
		"in a volume of the host's": {
			in(domain.Mount{Type: domain.MountVolume, Source: "lr"}), bare, "results.path",
			[]string{`"/data/results"`, `"some"`, "named volumes", `type = "bind"`},
		},
		"deleted in a mount": {func(s *domain.Sweep) {
			in(domain.Mount{Type: domain.MountBind, Source: "/mnt"})(s)
			s.Results.OnDestroy = domain.DeleteResults
		}, inContainers, "results.on_destroy", []string{`"some"`, `"keep"`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sweepOf("lr", 1)
			s.Results = &domain.Results{}
			test.change(&s)
			ps := CheckResults(s, test.at, "some")
			if len(ps) != 1 || ps[0].Path.String() != test.path {
				t.Fatalf("problems: %v", ps)
			}
			for _, says := range test.says {
				if !strings.Contains(ps[0].Detail, says) {
					t.Errorf("%q is not in: %s", says, ps[0].Detail)
				}
			}
		})
	}
}

// TestConfig checks that a run finds its own file, and no other run does.
func TestConfig(t *testing.T) {
	s := sweepOf("lr", 3)
	s.Config = map[string]string{"r0": `{"episodes": 3}`, "r1": "episodes: 3\n"}
	for key, want := range map[string]domain.File{
		"r0": {Name: "config.json", Content: `{"episodes": 3}`}, "r1": {Name: "config", Content: "episodes: 3\n"},
		"r2": {},
	} {
		run := Start(documentOf(s), s.Run(key), domain.Run{}, domain.Assignment{Host: "gpu1"}, 1, noon)
		spec, err := Spec(s, key, run, onHosts)
		if err != nil {
			t.Fatal(err)
		}
		var files []domain.File
		path := ""
		if want.Name != "" {
			files, path = []domain.File{want}, "/state/files/lr-"+key+"-0/"+want.Name
		}
		if diff := cmp.Diff(files, spec.Files); diff != "" || spec.Env[configVariable] != path {
			t.Errorf("%s gets %q; files (-want +got):\n%s", key, spec.Env[configVariable], diff)
		}
	}
}
