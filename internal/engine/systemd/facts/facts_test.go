package facts

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/sshd"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// TestShells: the script works in every shell, and with every variant of the commands.
func TestShells(t *testing.T) {
	needsLinux(t)
	for _, shell := range []string{"/bin/sh", "dash", "bash", "busybox"} {
		t.Run(filepath.Base(shell), func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(err)
			}
			// Commands are executed under the name sh, and those of busybox under their own.
			bin := t.TempDir()
			if shell == "busybox" {
				must(t, exec.Command(path, "--install", "-s", bin).Run())
			} else {
				must(t, os.Symlink(path, filepath.Join(bin, "sh")))
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			before := time.Now().Truncate(time.Second) // busybox reports whole seconds
			command := exec.Command("sh", "-s")
			command.Stdin = strings.NewReader(script)
			output, err := command.Output()
			must(t, err)
			f, err := Parse(output)
			must(t, err)
			hostname, err := os.Hostname()
			must(t, err)
			if f.UserID != os.Getuid() || f.Hostname != hostname || f.Architecture != runtime.GOARCH ||
				f.BootID == "" || f.Kernel == "" {
				t.Errorf("it is %+v", f)
			}
			if f.Capacity.CPUs != float64(runtime.NumCPU()) || f.Capacity.MemoryMiB < 1 || f.Home.FreeBytes < 1 ||
				f.Home.Mount == "" || f.Home.Folder == "" {
				t.Errorf("it has %+v, %+v", f.Capacity, f.Home)
			}
			if f.Clock.Before(before) || f.Clock.After(time.Now()) {
				t.Errorf("it says that it is %v", f.Clock)
			}
		})
	}
}

// TestRead: a user's rights are found out by trying.
func TestRead(t *testing.T) {
	needsLinux(t)
	sshd.Isolate(t)
	for name, test := range map[string]struct {
		commands map[string]string
		root     bool
		refusal  string
	}{
		"root": {commands: map[string]string{"id": "echo 0"}, root: true},
		"sudo": {
			commands: map[string]string{"id": `[ "$ROOT" ] && echo 0 || echo 1000`, "sudo": `shift; ROOT=1 exec "$@"`},
			root:     true,
		},
		"no password": {commands: map[string]string{
			"id": "echo 1000", "sudo": "printf 'We trust you\nsudo: a password is required\n' >&2; exit 1",
		}, refusal: "a password is required"},
		"not all commands": {
			commands: map[string]string{
				"id": "echo 1000", "sudo": `[ "$2" = true ] || { echo "sudo: no" >&2; exit 1; }`,
			},
			refusal: "no",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			for name, text := range test.commands {
				must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700)) //nolint:gosec // it is executed
			}
			server := sshd.Start(t, sshd.Options{Shell: true, Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}})
			f, err := Read(t.Context(), clientOf(t, server))
			must(t, err)
			if f.Root != test.root || f.Refusal != test.refusal || f.Apart != 0 || f.Address != server.Addr {
				t.Errorf("it is %+v", f)
			}
		})
	}
}

func TestReadFails(t *testing.T) {
	sshd.Isolate(t)
	nologin := sshd.Start(t,
		sshd.Options{Commands: map[string]sshd.Command{"sh -s": {Stdout: "This account is not available.\n"}}})
	if _, err := Read(t.Context(), clientOf(t, nologin)); !errors.Is(err, errNoShell) ||
		!strings.Contains(err.Error(), nologin.Addr+": ") {
		t.Errorf("the error is %v", err)
	}
	failing := sshd.Start(t, sshd.Options{})
	if _, err := Read(t.Context(), clientOf(t, failing)); err == nil || !strings.Contains(err.Error(), "status 127") {
		t.Errorf("the error is %v", err)
	}
}

// slowHost accepts a login, and then a command, only after a while each.
type slowHost struct {
	stranger
	login, command time.Duration
}

func (s *slowHost) Hold(ctx context.Context) (release func(), err error) {
	login := s.login
	s.login = 0
	return func() {}, takes(ctx, login)
}

func (s *slowHost) RunInput(ctx context.Context, command string, stdin io.Reader) ([]byte, error) {
	if _, err := s.Hold(ctx); err != nil {
		return nil, err
	}
	if err := takes(ctx, s.command); err != nil {
		return nil, err
	}
	return s.stranger.RunInput(ctx, command, stdin)
}

// takes returns after a while, or with the cause of the context's end.
func takes(ctx context.Context, while time.Duration) error {
	select {
	case <-time.After(while):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TestReadSlowHosts: the time that a host may take begins after the login, which may wait for those to many others.
func TestReadSlowHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, err := Read(t.Context(), &slowHost{full, 10 * patience, patience - 1}); err != nil {
			t.Errorf("one that lets us wait: %v", err)
		}
		_, err := Read(t.Context(), &slowHost{full, 0, 10 * patience})
		if !errors.Is(err, sshclient.ErrTimeout) {
			t.Errorf("one that hangs: %v", err)
		}
	})
}

func TestApart(t *testing.T) {
	from := time.Unix(1000, 0)
	to := from.Add(2 * time.Second)
	for clock, want := range map[time.Time]time.Duration{
		{}:                       0,
		from.Add(-time.Second):   -time.Second,
		from:                     0,
		from.Add(time.Second):    0,
		to:                       0,
		to.Add(time.Millisecond): time.Millisecond,
	} {
		if got := apart(clock, from, to); got != want {
			t.Errorf("%v is %v apart, want %v", clock, got, want)
		}
	}
}

func TestAsRoot(t *testing.T) {
	if got, want := (Facts{UserID: 1000}).AsRoot("sh", "-c", "echo $1"), "sudo -n sh -c 'echo $1'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := (Facts{}).AsRoot("true"), "true"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestLayout: the script repeats the constants, as it can't refer to them.
func TestLayout(t *testing.T) {
	for _, path := range []string{"place=" + layout.Home, layout.Programs + "/*/*", layout.Clusters + "/*"} {
		if !strings.Contains(script, path) {
			t.Errorf("the script lacks %s", path)
		}
	}
}

// stranger is a host that answers with only a text.
type stranger string

func (stranger) Host() sshclient.Host {
	return sshclient.Host{Name: "gpu1", Port: sshclient.DefaultPort}
}

func (stranger) Hold(context.Context) (release func(), err error) { return func() {}, nil }

func (s stranger) RunInput(context.Context, string, io.Reader) ([]byte, error) { return []byte(s), nil }

func TestReadClock(t *testing.T) {
	f, err := Read(t.Context(), stranger(full))
	must(t, err)
	if f.Apart == 0 || f.Address != "gpu1" {
		t.Errorf("it is %+v", f)
	}
}

func clientOf(t *testing.T, server *sshd.Server) *sshclient.Client {
	t.Helper()
	host, err := sshclient.ParseHost(server.Addr)
	must(t, err)
	client, err := sshclient.New(host, server.Credentials(t), 0)
	must(t, err)
	return client
}

func needsLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("hosts run Linux")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
