//go:build linux

package process

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestFollowARun: a run's log begins with what the member wrote before the supervisor noticed that it runs.
func TestFollowARun(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	e, err := Open(domain.ClusterRef{Name: "lab"}, engine.Settings{StateDir: t.TempDir()}, Program{})
	must(err)
	const member = "job-ps-0"
	begin := time.Now()
	state := statedir.State{Name: member, Run: 2, LogFrom: new(begin), RunStartedAt: new(begin.Add(2 * time.Second))}
	for _, document := range []struct {
		folder string
		value  any
	}{{statedir.Specs, domain.MemberSpec{Name: member, Run: 2}}, {statedir.States, state}} {
		path := e.dir.Document(document.folder, member)
		must(os.MkdirAll(filepath.Dir(path), 0o700))
		must(statedir.Write(path, document.value, statedir.Volatile))
	}
	must(os.MkdirAll(filepath.Dir(e.dir.Log(member)), 0o700))
	size := int64(0)
	for _, wrote := range []struct {
		text string
		at   time.Duration
	}{{"run 1\n", 0}, {"run 2\n", time.Second}} {
		log, err := e.dir.OpenLog(member)
		must(err)
		_, err = log.WriteString(wrote.text)
		must(err)
		must(log.Close())
		size, err = e.dir.KeepLog(member, size, begin.Add(wrote.at))
		must(err)
	}
	part, err := e.Follow(t.Context(), member, engine.LogPlace{Run: 2})
	must(err)
	if !slices.Equal(part.Lines, []string{"run 2"}) {
		t.Errorf("its log is %q", part.Lines)
	}
}
