//go:build linux

package supervisor

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestWithdrawnUnread: a withdrawn member is forgotten even if its files can't be read. Otherwise its supervisor would
// never end.
func TestWithdrawnUnread(t *testing.T) {
	const name = "job-worker-0"
	for _, unread := range []string{statedir.Specs, statedir.States} {
		t.Run(unread, func(t *testing.T) {
			dir, log := statedir.Dir{Root: t.TempDir(), Cluster: "lab"}, slog.New(slog.DiscardHandler)
			s := &supervisor{
				dir: dir, log: log, members: map[string]*member{}, launcher: &processes{dir: dir, log: log},
			}
			if err := dir.Create(); err != nil {
				t.Fatal(err)
			}
			spec := domain.MemberSpec{Group: "job", Name: name, Command: []string{"sleep", "1"}}
			if err := statedir.Write(dir.Document(statedir.Specs, name), spec, statedir.Volatile); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir.Document(unread, name), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := s.adopt(); err != nil {
				t.Fatal(err)
			}
			if s.reload() {
				t.Fatal("everything was read")
			}
			s.step(time.Now())
			if m := s.members[name]; m == nil || m.instance != nil {
				t.Fatalf("the member is not left as it is: %+v", m)
			}
			if err := statedir.Delete(dir.Document(statedir.Specs, name)); err != nil {
				t.Fatal(err)
			}
			if !s.reload() {
				t.Error("there is something left to read")
			}
			s.step(time.Now())
			if m := s.members[name]; m != nil {
				t.Errorf("the withdrawn member is still known: %+v", m)
			}
			if _, err := os.Stat(dir.Document(statedir.States, name)); err == nil {
				t.Error("its state is still there")
			}
		})
	}
}
