package enginetest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// filesOf returns a version that consists of these files.
func filesOf(contents map[string]string) engine.FilesSpec {
	var spec engine.FilesSpec
	for name, content := range contents {
		sum := sha256.Sum256([]byte(content))
		spec.Tree = append(spec.Tree,
			domain.TreeFile{Path: name, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])})
	}
	spec.Tree.Sort()
	spec.Content = func() (io.ReadCloser, error) {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		for name, content := range contents {
			if err := w.WriteHeader(
				&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o600},
			); err != nil {
				return nil, err
			}
			if _, err := io.WriteString(w, content); err != nil {
				return nil, err
			}
		}
		return io.NopCloser(&archive), w.Close()
	}
	return spec
}

// code returns a version of a program's files.
func code(says string) engine.FilesSpec {
	return filesOf(map[string]string{"train.py": says, "lib/data.py": "data"})
}

// wholeVersions returns the digests of the versions that all hosts have. Damaged files on any host fail the test.
func wholeVersions(t *testing.T, e engine.Engine, store engine.FileStore) []string {
	t.Helper()
	cluster, err := engine.Cluster(t.Context(), e)
	must(t, err)
	found, err := store.FindFiles(acctest.Bounded(t))
	must(t, err)
	if len(found) != len(cluster.Spec.Hosts) {
		t.Fatalf("of hosts %v these were looked at: %v", cluster.Spec.HostNames(), found)
	}
	hosts := map[string]int{}
	for host, has := range found {
		for digest, faults := range has.Versions {
			if hosts[digest]++; len(faults) > 0 {
				t.Errorf("host %s: %s has damaged files %v", host, digest, faults)
			}
		}
	}
	maps.DeleteFunc(hosts, func(_ string, on int) bool { return on < len(found) })
	return slices.Sorted(maps.Keys(hosts))
}

// testFiles tests the lifecycle of versions of files, on engines that have a file store.
func testFiles(t *testing.T, h Harness) {
	e := h.cluster(t)
	store, err := engine.Files(e)
	if err != nil {
		return // the engine has no file store
	}
	one, two := code("one"), code("two")
	first, second := one.Tree.Digest(), two.Tree.Digest()
	expect := func(when string, want ...string) {
		t.Helper()
		slices.Sort(want)
		if got := wholeVersions(t, e, store); !slices.Equal(got, want) {
			t.Errorf("%s: there are %q, want %q", when, got, want)
		}
	}
	expect("at first")
	must(t, store.RemoveFiles(acctest.Bounded(t), []string{first}))
	for range 2 {
		must(t, store.ProvideFiles(acctest.Bounded(t), one))
		expect("brought", first)
	}
	broken := two
	broken.Content = func() (io.ReadCloser, error) { return nil, errors.New("disk on fire") }
	if err := store.ProvideFiles(acctest.Bounded(t), broken); err == nil ||
		!strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("what can't be read was brought: %v", err)
	}
	broken.Content = code("three").Content
	if err := store.ProvideFiles(acctest.Bounded(t), broken); err == nil || !strings.Contains(err.Error(), "train.py") {
		t.Errorf("another content than announced was brought: %v", err)
	}
	expect("after failures", first)
	must(t, store.ProvideFiles(acctest.Bounded(t), two))
	expect("another version", first, second)
	if path := store.FilesPath(first); path == store.FilesPath(second) || !strings.HasPrefix(path, "/") ||
		strings.Contains(path, ":") {
		t.Errorf("two versions are in %s and %s", path, store.FilesPath(second))
	}

	// A version can't be removed while a member runs from it.
	start(t, e, h.member(0, "file:"+store.FilesPath(first)+"/lib/data.py", "wait"))
	h.awaitStates(t, e, domain.StateRunning)
	acctest.Eventually(t, "the member reads a file", func() bool {
		lines := logs(t, e, h.memberName(0), engine.LogOptions{})
		return slices.Equal(lines, []string{fmt.Sprintf("%s/lib/data.py 444 %q", store.FilesPath(first), "data")})
	})
	must(t, store.RemoveFiles(acctest.Bounded(t), []string{first, second}))
	expect("while a member runs from it", first)
	must(t, e.Remove(acctest.Bounded(t), []string{h.memberName(0)}))
	h.await(t, e, "nobody", func(observed []domain.Observed) bool { return len(observed) == 0 })
	must(t, store.RemoveFiles(acctest.Bounded(t), []string{first}))
	expect("at last")
}

// testFilesAfterDeath: if an apply or a removal of files dies after any of its changes, the next one completes it, with
// no version left over.
func testFilesAfterDeath(t *testing.T, h Harness) {
	e := h.cluster(t)
	store, err := engine.Files(e)
	if err != nil {
		return
	}
	r := reconcile.Reconciler{Engine: e}
	spec := domain.Files{Cluster: h.lab, Name: "code", Source: "./train"}
	// One after the other, as unused versions are removed from the whole cluster.
	each := func(do func(r reconcile.Reconciler) error, then func(when string)) {
		t.Helper()
		for k := 0; ; k++ {
			mortal := NewMortal(e, k)
			err := do(reconcile.Reconciler{Engine: mortal})
			if err != nil && !errors.Is(err, ErrDead) {
				t.Fatalf("after %v: %v", mortal.Calls(), err)
			}
			mortal.dead()
			then(fmt.Sprintf("after %d changes of %v", k, mortal.Calls()))
			if mortal.Changes() < k {
				return
			}
		}
	}
	put := func(r reconcile.Reconciler, version engine.FilesSpec, created bool) error {
		_, err := r.PutFiles(acctest.Bounded(t), spec, version, created)
		return err
	}
	expect := func(when string, want ...string) {
		t.Helper()
		if got := wholeVersions(t, e, store); !slices.Equal(got, want) {
			t.Errorf("%s: there are %q, want %q", when, got, want)
		}
	}
	each(func(r reconcile.Reconciler) error { return put(r, code("one"), true) }, func(when string) {
		must(t, put(r, code("one"), true))
		expect(when, code("one").Tree.Digest())
		must(t, r.DeleteFiles(acctest.Bounded(t), h.lab, "code"))
		expect(when)
	})
	must(t, put(r, code("one"), true))
	from, to := code("one"), code("two")
	each(func(r reconcile.Reconciler) error { return put(r, to, false) }, func(when string) {
		must(t, put(r, to, false))
		expect(when, to.Tree.Digest())
		from, to = to, from
	})
	each(func(r reconcile.Reconciler) error { return r.DeleteFiles(acctest.Bounded(t), h.lab, "code") },
		func(when string) {
			must(t, r.DeleteFiles(acctest.Bounded(t), h.lab, "code"))
			must(t, put(r, code("one"), true))
			expect(when, code("one").Tree.Digest())
		})
}
