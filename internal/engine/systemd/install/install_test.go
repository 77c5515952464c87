package install

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// moved is a host that keeps everything of ours in another folder, so that it can be this machine.
type moved struct {
	*sshclient.Client
	home string
}

func (m moved) RunInput(ctx context.Context, command string, stdin io.Reader) ([]byte, error) {
	return m.Client.RunInput(ctx, strings.ReplaceAll(command, layout.Home, m.home), stdin)
}

// programs returns what is on the host, by path, and fails if anything else is there.
func (m moved) programs(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(m.home, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if info, err := entry.Info(); err != nil || info.Mode() != 0o755 {
			t.Errorf("%s has the mode %v (%v)", path, info.Mode(), err)
		}
		all[strings.Replace(path, m.home, layout.Home, 1)] = string(content)
		return nil
	}))
	return all
}

// startHost returns a host whose shell finds these programs in addition to its own.
func startHost(t *testing.T, stubs map[string]string) (moved, *sshd.Server) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("hosts run Linux")
	}
	sshd.Isolate(t)
	bin := t.TempDir()
	for name, text := range stubs {
		must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700)) //nolint:gosec // it is executed
	}
	server := sshd.Start(t, sshd.Options{Shell: true, Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}})
	host, err := sshclient.ParseHost(server.Addr)
	must(t, err)
	client, err := sshclient.New(host, server.Credentials(t), 0)
	must(t, err)
	return moved{client, filepath.Join(t.TempDir(), "trainyard")}, server
}

// fileOf returns a file of this machine with a content.
func fileOf(t *testing.T, name, content string) File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "built")
	must(t, os.WriteFile(path, []byte(content), 0o600))
	file, err := Open(name, path)
	must(t, err)
	return file
}

// bare is a host without programs, with root access and free space.
var bare = facts.Facts{Root: true, Home: facts.Home{FreeBytes: 1 << 30}}

// noise is incompressible content.
func noise(size int) string {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // never fails
	return string(content)
}

func TestInstall(t *testing.T) {
	host, _ := startHost(t, map[string]string{"sudo": `[ "$1" = -n ] && shift && exec "$@"`})
	program, agent := fileOf(t, "trainyard", noise(3<<20)), fileOf(t, "trainyard-agent", "")
	want := map[string]string{program.Path(): noise(3 << 20), agent.Path(): ""}
	for name, f := range map[string]facts.Facts{"root": bare, "sudo": {UserID: 1000, Root: true, Home: bare.Home}} {
		t.Run(name, func(t *testing.T) {
			host := moved{host.Client, filepath.Join(t.TempDir(), "trainyard")}
			for range 2 { // the facts may be outdated
				must(t, Install(t.Context(), host, f, program, agent))
				same(t, host, want)
			}
		})
	}
}

// same fails unless a host has exactly these programs.
func same(t *testing.T, host moved, want map[string]string) {
	t.Helper()
	got := host.programs(t)
	for path, content := range want {
		if got[path] != content {
			t.Errorf("%s has %d bytes, not as they should be", path, len(got[path]))
		}
		delete(got, path)
	}
	for path := range got {
		t.Errorf("%s is there, too", path)
	}
}

// TestInstalled: what is installed according to the facts is not uploaded.
func TestInstalled(t *testing.T) {
	host, server := startHost(t, nil)
	file := fileOf(t, "trainyard", "program")
	f := bare
	f.Programs = []facts.Program{file.Program}
	must(t, Install(t.Context(), host, f, file))
	if len(server.Users()) > 0 {
		t.Error("somebody logged in")
	}
	f.Programs[0].Bytes-- // as after a crash
	must(t, Install(t.Context(), host, f, file))
	same(t, host, map[string]string{file.Path(): "program"})
}

// TestTogether: concurrent installations of the same program are safe.
func TestTogether(t *testing.T) {
	host, _ := startHost(t, nil)
	release, err := host.Hold(t.Context())
	must(t, err)
	defer release()
	file := fileOf(t, "trainyard", noise(1<<20))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := Install(t.Context(), host, bare, file); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	same(t, host, map[string]string{file.Path(): noise(1 << 20)})
}

// TestInterrupted: an interrupted installation leaves nothing behind, and the next attempt works like the first.
func TestInterrupted(t *testing.T) {
	host, server := startHost(t, nil)
	file := fileOf(t, "trainyard", noise(8<<20))
	for name, end := range map[string]func(context.CancelFunc){
		"the caller":     func(cancel context.CancelFunc) { cancel() },
		"the connection": func(context.CancelFunc) { server.Drop() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			half := &interrupted{Runner: host, after: 4 << 20, end: func() { end(cancel) }}
			if err := Install(ctx, half, bare, file); err == nil {
				t.Error("there is no error")
			}
			acctest.Eventually(t, "the host to clean up", func() bool {
				left, err := filepath.Glob(host.home + "/bin/.upload.*")
				return err == nil && len(left) == 0
			})
			same(t, host, nil)
		})
	}
	must(t, Install(t.Context(), host, bare, file))
	same(t, host, map[string]string{file.Path(): noise(8 << 20)})
}

// interrupted is a host to which something happens after a number of bytes was read for it. Nothing more is read then.
type interrupted struct {
	facts.Runner
	after int64
	end   func()
}

func (i *interrupted) RunInput(ctx context.Context, command string, stdin io.Reader) ([]byte, error) {
	return i.Runner.RunInput(ctx, command, io.MultiReader(io.LimitReader(stdin, i.after), ends{i.end}))
}

type ends struct{ end func() }

func (e ends) Read([]byte) (int, error) {
	e.end()
	select {}
}

func TestInstallFails(t *testing.T) {
	full := map[string]string{"gzip": `echo "gzip: stdout: No space left on device" >&2; exit 1`}
	for name, test := range map[string]struct {
		stubs   map[string]string
		f       facts.Facts
		changed bool
		parts   []string
	}{
		"a full disk": {stubs: full, f: bare, parts: []string{
			"the disk is full, and /var/lib/trainyard/bin needs 2 MiB", "No space left on device", "free some space",
		}},
		"too little room": {
			f:     facts.Facts{Root: true, Home: facts.Home{FreeBytes: 1<<20 - 1}},
			parts: []string{"the disk is full", "0 MiB free"},
		},
		"a file that changed": {
			f: bare, changed: true,
			parts: []string{"the file has changed during the apply: run terraform apply again"},
		},
		"content that was damaged on the way": {
			stubs: map[string]string{"sha256sum": `echo "0000  $1"`}, f: bare,
			parts: []string{"exited with status 65: received digest 0000"},
		},
		"a host without sudo": {
			stubs: map[string]string{"sudo": `echo "sudo: a password is required" >&2; exit 1`},
			f:     facts.Facts{UserID: 1000, Home: bare.Home},
			parts: []string{"exited with status 1: sudo: a password is required"},
		},
		"a host without digests": {
			stubs: map[string]string{"sha256sum": "exit 127"}, f: bare, parts: []string{"exited with status 127"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			host, server := startHost(t, test.stubs)
			file := fileOf(t, "trainyard", noise(1<<20)+name)
			if test.changed {
				must(t, os.WriteFile(file.From, []byte("other"), 0o600))
			}
			err := Install(t.Context(), host, test.f, file)
			for _, part := range append(test.parts, file.From) {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("the error lacks %q: %v", part, err)
				}
			}
			if err != nil && strings.Count(err.Error(), server.Addr) > 1 {
				t.Errorf("the error names the host twice: %v", err)
			}
			if _, err := os.Stat(host.home); err == nil {
				same(t, host, nil)
			}
		})
	}
	host, _ := startHost(t, nil)
	gone := fileOf(t, "trainyard", "gone")
	must(t, os.Remove(gone.From))
	if err := Install(t.Context(), host, bare, gone); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

// TestScript: no login shell interprets it differently.
func TestScript(t *testing.T) {
	if strings.ContainsAny(receive, "'\\!\n") {
		t.Errorf("it has more than all shells take the same: %s", receive)
	}
}

func TestPack(t *testing.T) {
	broken := errors.New("broken disk")
	if _, err := pack(io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
}

// TestPackedOnce: a file is read once for all hosts, and again if that failed.
func TestPackedOnce(t *testing.T) {
	file := fileOf(t, "trainyard", strconv.FormatInt(time.Now().UnixNano(), 10))
	aside := file.From + ".aside"
	must(t, os.Rename(file.From, aside))
	if _, err := packedFile(t.Context(), file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
	must(t, os.Rename(aside, file.From))
	first, err := packedFile(t.Context(), file)
	must(t, err)
	must(t, os.Remove(file.From))
	if again, err := packedFile(t.Context(), file); err != nil || !bytes.Equal(again, first) {
		t.Errorf("it is read again: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
