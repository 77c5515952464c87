package systemd

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/install"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// TestSilentRelay: an attempt to connect to a host whose SSH server answers, and whose commands hang, ends, even if
// nobody ends it.
func TestSilentRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		dial := greeted(func(context.Context) (net.Conn, error) { return ours, nil })
		conn, err := dial(context.Background())
		if conn != nil || !errors.Is(err, sshclient.ErrTimeout) {
			t.Errorf("got %v, %v", conn, err)
		}
		if _, err := theirs.Write([]byte(relay.Greeting)); err == nil {
			t.Error("the connection is left open")
		}
	})
}

// saying is a connection that reads something else than what its other end writes.
type saying struct {
	net.Conn
	reader io.Reader
}

// Read reads that.
func (s saying) Read(p []byte) (int, error) { return s.reader.Read(p) }

// TestErrorsNameTheHost: whatever goes wrong until a host's relay answers, the error says which host, once. That the
// host has nothing of the cluster is left to callers, which know its name.
func TestErrorsNameTheHost(t *testing.T) {
	const address, unreachable = "ssh://ops@gpu1", " can't be reached: "
	failed := func(text string) error { return sshclient.At("ops@gpu1", sshclient.Failed(nil, "%s", text)) }
	says := func(text string) func(net.Conn) (net.Conn, error) {
		return func(conn net.Conn) (net.Conn, error) { return saying{conn, strings.NewReader(text)}, nil }
	}
	for name, test := range map[string]struct {
		dial func(net.Conn) (net.Conn, error)
		want string
		is   error
	}{
		"refused": {
			func(net.Conn) (net.Conn, error) { return nil, failed("port 22 refuses connections") },
			unreachable + "port 22 refuses connections", engine.ErrUnreachable,
		},
		"unknown": {
			func(net.Conn) (net.Conn, error) {
				return nil, sshclient.At("ops@gpu1", sshclient.Failed(sshclient.ErrHostKeyUnknown, "its key is unknown"))
			},
			unreachable + "its key is unknown", engine.ErrRefused,
		},
		"silent": {
			func(conn net.Conn) (net.Conn, error) { return conn, nil },
			unreachable + errNoGreeting.Error(), engine.ErrUnreachable,
		},
		"broken": {
			func(conn net.Conn) (net.Conn, error) {
				return saying{conn, iotest.ErrReader(failed("the command exited with status 127"))}, nil
			},
			unreachable + "the command exited with status 127", engine.ErrUnreachable,
		},
		"broken later": {
			func(conn net.Conn) (net.Conn, error) {
				return saying{conn, io.MultiReader(strings.NewReader(relay.Greeting),
					iotest.ErrReader(failed("the command exited with status 137")))}, nil
			},
			unreachable + "the command exited with status 137", engine.ErrUnreachable,
		},
		"over": {says("bye"), unreachable + `its relay exited at once, after printing "bye"`, engine.ErrUnreachable},
		"talkative": {
			says("Hello\n"), unreachable + `expected the relay, got "Hello\n"; does its shell print that at login?`,
			engine.ErrUnreachable,
		},
		"outside": {says(relay.Absent), "", relay.ErrOutside},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := relay.NewClient("the host at "+address, greeted(func(context.Context) (net.Conn, error) {
					ours, theirs := net.Pipe()
					t.Cleanup(func() { _ = ours.Close() })
					go func() { _, _ = io.Copy(io.Discard, theirs) }()
					return test.dial(ours)
				}))
				defer client.Close()
				_, err := relay.ReadLedger.Ask(t.Context(), client, "lab", none)
				want := "the host at " + address + test.want
				if test.want == "" {
					want = test.is.Error()
				}
				if !errors.Is(err, test.is) || err.Error() != want {
					t.Errorf("got  %v\nwant %s", err, want)
				}
			})
		})
	}
}

// rejecting is a host on which all commands fail.
type rejecting struct {
	facts.Runner
	err error
}

// Hold does nothing.
func (rejecting) Hold(context.Context) (release func(), err error) { return func() {}, nil }

// RunInput fails.
func (r rejecting) RunInput(context.Context, string, io.Reader) ([]byte, error) { return nil, r.err }

// TestUpdateErrors: errors of an update of a host, which its client names, don't name it again, and say what failed.
func TestUpdateErrors(t *testing.T) {
	to := rejecting{err: sshclient.At("ops@gpu1", sshclient.Failed(nil, "the connection broke"))}
	from := filepath.Join(t.TempDir(), "trainyard")
	if err := os.WriteFile(from, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := install.Open("trainyard", from)
	if err != nil {
		t.Fatal(err)
	}
	err = (&reach{}).update(t.Context(), to)
	if err == nil || err.Error() != "the connection broke" {
		t.Errorf("reading facts: %v", err)
	}
	err = install.Install(t.Context(), nameless{to}, facts.Facts{}, file)
	if err == nil || err.Error() != "copying "+file.From+": the connection broke" {
		t.Errorf("installing: %v", err)
	}
}

// echoing is a host that prints something else than the facts.
type echoing struct{ rejecting }

// Host is its name.
func (echoing) Host() sshclient.Host { return sshclient.Host{User: "ops", Name: "gpu1", Port: 22} }

// RunInput prints that.
func (echoing) RunInput(context.Context, string, io.Reader) ([]byte, error) {
	return []byte("Hello\n"), nil
}

// TestUpdateErrorsOfOurs: neither do errors of an update that no command has returned.
func TestUpdateErrorsOfOurs(t *testing.T) {
	err := (&reach{}).update(t.Context(), echoing{})
	if err == nil || !strings.HasPrefix(err.Error(), "querying the host: ") {
		t.Errorf("reading facts: %v", err)
	}
	file := install.File{From: "/srv/trainyard", Program: facts.Program{Bytes: 1}}
	err = install.Install(t.Context(), nameless{echoing{}}, facts.Facts{}, file)
	if err == nil || !strings.HasPrefix(err.Error(), "copying /srv/trainyard: the disk is full") {
		t.Errorf("installing: %v", err)
	}
}

// TestOfHost: errors about several hosts say which host, once.
func TestOfHost(t *testing.T) {
	for text, want := range map[string]string{
		"disk full": "host gpu1: disk full",
		"the host at ssh://ops@gpu1 can't be reached": "host gpu1: the host at ssh://ops@gpu1 can't be reached",
		"host gpu1 can't be reached":                  "host gpu1 can't be reached",
		"host gpu1: not the store host":               "host gpu1: not the store host",
		"host gpu10 took its place":                   "host gpu1: host gpu10 took its place",
	} {
		if err := joined(map[string]error{"gpu1": errors.New(text)}); err.Error() != want {
			t.Errorf("%q is %q, want %q", text, err, want)
		}
	}
}

// TestGreetedStaysOpen: the limit applies to the greeting only.
func TestGreetedStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		go func() { _, _ = theirs.Write([]byte(relay.Greeting + "more")) }()
		conn, err := greeted(func(context.Context) (net.Conn, error) { return ours, nil })(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		limited, cancel := context.WithTimeout(context.Background(), 2*greetingPatience)
		defer cancel()
		<-limited.Done()
		got := make([]byte, 4)
		if _, err := conn.Read(got); err != nil || string(got) != "more" {
			t.Errorf("read %q, %v", got, err)
		}
	})
}

// TestSlowRelay: a host may take more than a minute to start the relay, as with a slow sudo.
func TestSlowRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		time.AfterFunc(90*time.Second, func() { _, _ = theirs.Write([]byte(relay.Greeting)) })
		conn, err := greeted(func(context.Context) (net.Conn, error) { return ours, nil })(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	})
}

// TestInstallationHangs: an installation ends, even if nobody ends the attempt, and says what to check.
func TestInstallationHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := installing(
			func(context.Context) (net.Conn, error) { return nil, errOther },
			func(ctx context.Context) error {
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(2 * installPatience):
					return errors.New("it has no limit")
				}
			})
		if conn, err := dial(context.Background()); conn != nil || !errors.Is(err, errInstall) {
			t.Errorf("got %v, %v", conn, err)
		}
	})
}
