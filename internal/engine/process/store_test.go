//go:build linux

package process_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/process"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// storeHarness is the harness for the suite of stores. Nothing runs in its clusters.
func storeHarness() storetest.Harness {
	return storetest.Harness{
		Open: func(t *testing.T, cluster string) engine.Store {
			return opened{dir: t.TempDir(), cluster: cluster}.again(t)
		},
		Watch: func(t *testing.T, s engine.Store) <-chan struct{} {
			t.Helper()
			events, err := known(t, s).Watch(t.Context())
			must(t, err)
			return events
		},
		Corrupt: func(t *testing.T, s engine.Store, key engine.Key) string {
			t.Helper()
			file := known(t, s).files().Item(key)
			_, err := os.Stat(file)
			must(t, err)
			must(t, os.WriteFile(file, []byte("theirs\n{}"), 0o600))
			return file
		},
		Foreign: foreign,
		Dying:   dying,
	}
}

// foreign leaves files and folders beside the items, with names that items could have except for the suffix.
func foreign(t *testing.T, s engine.Store) (untouched func() error) {
	t.Helper()
	var files []string
	for _, folder := range []string{statedir.Documents, statedir.Records} {
		for _, kind := range storetest.Kinds {
			item := known(t, s).files().Path(folder, kind.Name)
			must(t, os.Mkdir(item+".folder", 0o700))
			files = append(files, item, item+".job", item+".job.json", item+".job.item~",
				filepath.Join(item+".folder", "note.item"))
		}
	}
	for _, file := range files {
		must(t, os.WriteFile(file, []byte(file), 0o600))
	}
	return func() error {
		for _, file := range files {
			if content, err := os.ReadFile(file); err != nil || string(content) != file {
				return fmt.Errorf("somebody's file %s now holds %q (%w)", file, content, err)
			}
		}
		return nil
	}
}

// orderVariable is the environment variable that makes this program perform one change of a store.
const orderVariable = "TRAINYARD_TEST_ORDER"

// order is its value.
type order struct {
	Dir, Cluster string
	Change       storetest.Change
}

// done is the last line of such a program; it begins with [ready]. Anything else is an error.
const done = "done"

// obey makes the change of an order once it reads a byte from standard input. The order may be based on a stale
// revision.
func obey(text string) {
	err := func() error {
		var o order
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			return err
		}
		e, err := process.Open(domain.ClusterRef{Name: o.Cluster}, engine.Settings{StateDir: o.Dir}, process.Program{})
		if err != nil {
			return err
		}
		fmt.Println(ready)
		if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
			return err
		}
		return o.Change.Make(context.Background(), e)
	}()
	if err != nil && !errors.Is(err, engine.ErrConflict) {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(done)
	os.Exit(0)
}

// dying has a process make a change, and kills it after a delay that grows with moment.
func dying(t *testing.T, s engine.Store, change storetest.Change, moment int) (survived bool) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	o := known(t, s)
	text, err := json.Marshal(order{o.dir, o.cluster, change})
	must(t, err)
	command := exec.CommandContext(t.Context(), self)
	command.Env = append(os.Environ(), orderVariable+"="+string(text))
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	must(t, err)
	stdout, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	lines := bufio.NewReader(stdout)
	begins, err := lines.ReadString('\n')
	if begins != ready+"\n" {
		t.Fatalf("who is to make a change said %q (%v)", begins, err)
	}
	var last string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		last, _ = lines.ReadString('\n') // empty if it dies
	}()
	_, err = stdin.Write([]byte{1})
	must(t, err)
	select {
	case <-ended:
	case <-time.After(after(moment)):
	}
	_ = command.Process.Kill() // even if it is done: under the race detector it takes a second to exit
	<-ended
	err = command.Wait()
	status, is := command.ProcessState.Sys().(syscall.WaitStatus)
	switch killed := is && status.Signal() == syscall.SIGKILL; {
	case last == done+"\n":
		return true
	case last != "" || !killed:
		t.Fatalf("a change failed: %q (%v)", last, err)
	}
	return false
}

// after returns the delay before the process is killed. It grows quadratically, so that a change soon survives even on
// a busy machine.
func after(moment int) time.Duration {
	return time.Duration(moment*moment) * 2 * time.Microsecond
}

// stored returns an engine with a cluster's document, and its state directory.
func stored(t *testing.T) (opened, statedir.Dir) {
	t.Helper()
	e := open(t)
	_, err := engine.Put(t.Context(), e,
		domain.ClusterDocument{Spec: domain.Cluster{Name: "lab", Engine: process.Name}})
	must(t, err)
	return e, e.files()
}

var workers = domain.AutoscalingPolicyDocument{
	Spec: domain.AutoscalingPolicy{Cluster: "lab", Group: "job", Role: "worker", Max: 4},
}

// TestCorruptPolicies: an unreadable document is an error that names its file, and is not overwritten.
func TestCorruptPolicies(t *testing.T) {
	e, files := stored(t)
	_, err := engine.Put(t.Context(), e, workers)
	must(t, err)
	file := files.Item(engine.Key{Kind: domain.PolicyKind, Name: workers.Spec.Key()})
	for content, reason := range map[string]string{
		"{\"revision\":1}\n{\"version\":":               "unexpected end",
		"{\"revision\":1}\n{\"version\":99,\"spec\":7}": "it has version 99",
		`{"version":`: "unexpected end", `{"version":1,"revision":0}`: "its first line has revision 0",
	} {
		must(t, os.WriteFile(file, []byte(content), 0o600))
		for what, do := range map[string]func() error{
			"List": func() error {
				_, err := engine.List[domain.AutoscalingPolicyDocument](t.Context(), e)
				return err
			},
			"Get": func() error {
				_, err := engine.Get[domain.AutoscalingPolicyDocument](t.Context(), e, workers.Spec.Key())
				return err
			},
		} {
			err := do()
			if _, corrupt := errors.AsType[*engine.CorruptError](err); !corrupt ||
				!strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s of %s: %v", what, content, err)
			}
		}
		if _, err := engine.Put(t.Context(), e, workers); err == nil {
			t.Errorf("%s was written over", content)
		}
		if left, err := os.ReadFile(file); err != nil || string(left) != content {
			t.Errorf("%s became %s (%v)", content, left, err)
		}
	}
	history, err := engine.Contents(t.Context(), e, autoscale.HistoryKind)
	if err != nil || len(history) != 0 {
		t.Errorf("items of another kind than a corrupt one are %v (%v)", history, err)
	}
}

// TestOlderStateDirectory: a state directory made by an earlier version lacks folders.
func TestOlderStateDirectory(t *testing.T) {
	e, files := stored(t)
	for _, folder := range []string{statedir.Records, statedir.Specs, statedir.Staged, statedir.States} {
		must(t, os.Remove(files.Path(folder)))
	}
	policies, policiesErr := engine.List[domain.AutoscalingPolicyDocument](t.Context(), e)
	history, historyErr := engine.Contents(t.Context(), e, autoscale.HistoryKind)
	if err := errors.Join(policiesErr, historyErr); err != nil || len(policies) != 0 || len(history) != 0 {
		t.Errorf("there are policies %v and parts of a history %v (%v)", policies, history, err)
	}
	chunk := engine.Item{Key: engine.Key{Kind: autoscale.HistoryKind, Name: "1"}, Data: []byte("a")}
	must(t, engine.Delete[domain.AutoscalingPolicyDocument](t.Context(), e, workers.Spec.Key()))
	must(t, e.Delete(t.Context(), chunk.Key))
	_, err := e.Put(t.Context(), chunk)
	must(t, err)

	events, err := e.Watch(t.Context())
	must(t, err)
	_, err = engine.Put(t.Context(), e, workers)
	must(t, err)
	select {
	case _, open := <-events:
		if !open {
			t.Error("the stream of events ended")
		}
	case <-time.After(patience.Limit):
		t.Error("no event came for a policy")
	}
}

// TestWatchOfNoCluster: watching does not create a cluster.
func TestWatchOfNoCluster(t *testing.T) {
	e := open(t)
	if _, err := e.Watch(t.Context()); err == nil {
		t.Error("a cluster that is not there is watched")
	}
	if _, err := os.Stat(e.files().Path()); !os.IsNotExist(err) {
		t.Errorf("its folder: %v", err)
	}
}
