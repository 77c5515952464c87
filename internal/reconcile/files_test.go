package reconcile_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// keeper is an engine whose one host keeps files.
type keeper struct {
	*fake
	versions map[string][]engine.FileFault
	failure  error
}

func newKeeper() *keeper {
	f := newFake()
	f.setHosts(map[string]domain.Host{"a": {}})
	return &keeper{fake: f, versions: map[string][]engine.FileFault{}}
}

func (k *keeper) FilesPath(digest string) string {
	return "/content/" + strings.TrimPrefix(digest, "sha256:")
}

func (k *keeper) FindFiles(context.Context) (map[string]engine.HostFiles, error) {
	return map[string]engine.HostFiles{"a": {Versions: maps.Clone(k.versions)}}, nil
}

func (k *keeper) ProvideFiles(_ context.Context, spec engine.FilesSpec) error {
	if k.failure == nil {
		k.versions[spec.Tree.Digest()] = nil
	}
	return k.failure
}

func (k *keeper) RemoveFiles(_ context.Context, digests []string) error {
	for _, digest := range digests {
		delete(k.versions, digest)
	}
	return nil
}

// program returns a version of files and its path.
func (k *keeper) program(says string) (version engine.FilesSpec, path string) {
	tree := domain.FileTree{{Path: "train.py", Size: int64(len(says)), SHA256: says}}
	return engine.FilesSpec{
		Tree: tree, Content: func() (io.ReadCloser, error) { return nil, errors.ErrUnsupported },
	}, k.FilesPath(tree.Digest())
}

// expect fails unless exactly these versions are there.
func (k *keeper) expect(t *testing.T, when string, says ...string) {
	t.Helper()
	want := []string{}
	for _, text := range says {
		version, _ := k.program(text)
		want = append(want, version.Tree.Digest())
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(k.versions)); !slices.Equal(got, want) {
		t.Errorf("%s: there are %q, want those of %q", when, got, says)
	}
}

func filesNamed(name string) domain.Files {
	return domain.Files{Cluster: "lab", Name: name, Source: "./train"}
}

func TestPutFiles(t *testing.T) {
	k := newKeeper()
	r := reconcile.Reconciler{Engine: k}
	one, path := k.program("one")
	two, _ := k.program("two")
	put := func(name string, version engine.FilesSpec, created bool) (bool, error) {
		return r.PutFiles(t.Context(), filesNamed(name), version, created)
	}
	k.failure = errors.New("disk full")
	if _, err := put("code", one, true); !errors.Is(err, k.failure) ||
		!documents[domain.FilesDocument](k.fake)["code"].Applying {
		t.Errorf("on a full disk: got %v", err)
	}
	k.failure = nil
	// The creation never finished, so the next one takes over, even with another source.
	if adopted, err := put("code", one, true); err != nil || adopted {
		t.Errorf("the next creation: got %v (adopted: %t)", err, adopted)
	}
	want := domain.FilesDocument{
		Header: domain.Header{Version: 1, Revision: 3}, Spec: filesNamed("code"), Digest: one.Tree.Digest(),
		SizeBytes: 3,
	}
	if diff := cmp.Diff(want, documents[domain.FilesDocument](k.fake)["code"]); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	if adopted, err := put("code", one, true); err != nil || !adopted {
		t.Errorf("created as it is: got %v (adopted: %t)", err, adopted)
	}
	if _, err := put("code", two, true); err == nil ||
		!strings.Contains(err.Error(), `cluster "lab" already has files "code", from "./train"`) {
		t.Errorf("created with another content: got %v", err)
	}
	found, err := r.Files(t.Context(), "code")
	if err != nil || found.Path != path || found.Hosts["a"].Versions == nil {
		t.Errorf("read as %+v (%v)", found, err)
	}
	if _, err := r.Files(t.Context(), "data"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("other files are read: %v", err)
	}
	if _, err := put("code", two, false); err != nil {
		t.Error(err)
	}
	k.expect(t, "updated", "two")
	k.locks[reconcile.FilesLock("code")] = engine.Holder{Who: "ops", Process: 1}
	if _, locked := errors.AsType[*engine.LockedError](r.DeleteFiles(t.Context(), "lab", "code")); !locked {
		t.Error("files were removed in the middle of another apply")
	}
	drop[domain.ClusterDocument](k.fake)
	if _, err := put("data", one, true); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("without a cluster: got %v", err)
	}
}

// A version stays as long as any stored specification contains its path, and files in use are not removed.
func TestFilesInUse(t *testing.T) {
	_, path := newKeeper().program("one")
	for name, test := range map[string]struct {
		store func(k *keeper)
		users string
	}{
		"nothing": {func(*keeper) {}, ""},
		"a group": {func(k *keeper) {
			set(k.fake, domain.GroupDocument{
				Spec: domain.Group{Name: "job", Template: domain.Template{Command: []string{"sh", path + "/run.sh"}}},
			})
		}, "group job"},
		"a group that may go back": {func(k *keeper) {
			set(k.fake, domain.GroupDocument{
				Spec:   domain.Group{Name: "job"},
				Before: &domain.GroupDocument{Spec: domain.Group{Template: domain.Template{WorkingDir: path}}},
			})
		}, "group job"},
		"a sweep": {func(k *keeper) {
			set(k.fake, domain.SweepDocument{Spec: domain.Sweep{
				Name: "lr", Template: domain.Template{Env: map[string]string{"PYTHONPATH": "/opt:" + path}},
			}})
		}, "sweep lr"},
		"a run of a sweep": {func(k *keeper) {
			set(k.fake,
				domain.SweepRuns{Sweep: "lr", Name: "c1", Runs: map[string]map[string]string{"one": {"CODE": path}}})
		}, "sweep lr"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper()
			r := reconcile.Reconciler{Engine: k}
			one, _ := k.program("one")
			two, _ := k.program("two")
			put := func(name string, version engine.FilesSpec, created bool) {
				t.Helper()
				if _, err := r.PutFiles(t.Context(), filesNamed(name), version, created); err != nil {
					t.Fatal(err)
				}
			}
			put("code", one, true)
			test.store(k)
			put("twin", one, true)
			if err := r.DeleteFiles(t.Context(), "lab", "twin"); err != nil {
				t.Errorf("others have the same version: %v", err)
			}
			err := r.DeleteFiles(t.Context(), "lab", "code")
			if test.users == "" {
				if err != nil {
					t.Error(err)
				}
				k.expect(t, "removed")
				put("code", one, true)
			} else if _, used := errors.AsType[*reconcile.FilesInUseError](err); !used ||
				!strings.Contains(err.Error(), "in use by "+test.users+", which refer to "+path) {
				t.Errorf("in use: got %v", err)
			}
			put("code", two, false)
			if test.users == "" {
				k.expect(t, "updated", "two")
			} else {
				k.expect(t, "updated", "one", "two")
			}
			drop[domain.GroupDocument](k.fake)
			drop[domain.SweepDocument](k.fake)
			drop[domain.SweepRuns](k.fake)
			put("code", two, false)
			k.expect(t, "no longer in use", "two")
		})
	}
}

// The plan does not look for programs that arrive with files of the same apply.
func TestArrivingFiles(t *testing.T) {
	for name, test := range map[string]struct {
		spec domain.Template
		says bool
	}{
		"another command":    {domain.Template{Command: []string{"absent"}}, true},
		"a command in it":    {domain.Template{Command: []string{"/content/1/run.sh"}}, false},
		"a folder in it":     {domain.Template{Command: []string{"absent"}, WorkingDir: "/content/1/a"}, false},
		"a folder of others": {domain.Template{Command: []string{"absent"}, WorkingDir: "/content/2"}, true},
		"found by the PATH": {
			domain.Template{Command: []string{"absent"}, Env: map[string]string{"PATH": "/bin:/content/1/bin"}}, false,
		},
		"an argument is no reason": {domain.Template{Command: []string{"absent", "/content/1/train.py"}}, true},
	} {
		k := newKeeper()
		k.absent = "absent"
		r := reconcile.Reconciler{Engine: k, Arriving: []string{"/content/1"}}
		one := 1
		spec := domain.Group{
			Cluster: "lab", Name: "job", Framework: "none", Template: test.spec,
			Roles: map[string]domain.Role{"worker": {Replicas: &one}},
		}
		view, err := r.View(t.Context(), domain.Cluster{Name: "lab", Hosts: map[string]domain.Host{"a": {}}}, spec)
		if err != nil {
			t.Fatal(err)
		}
		decision, problems, err := r.Decide(t.Context(), view, spec)
		if err := errors.Join(err, problems.Err()); err != nil {
			t.Fatal(err)
		}
		problems, err = r.Preflight(t.Context(), decision, nil)
		if err != nil || (problems.Err() != nil) != test.says {
			t.Errorf("%s: got %v (%v)", name, problems, err)
		}
	}
}
