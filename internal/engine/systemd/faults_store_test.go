//go:build linux

package systemd_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/relay"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// ledger returns the ledger of a host.
func (f faulty) ledger(host int) (ledger relay.Ledger) {
	f.Helper()
	f.must(json.Unmarshal([]byte(f.sh(host, "cat "+f.dir().Path("ledger.json"))), &ledger))
	return ledger
}

// copied waits until the other hosts have the store host's last change.
func (f faulty) copied() {
	f.Helper()
	f.eventually("the copies to be up to date", func() bool {
		last := f.ledger(0).Sequence
		return f.ledger(1).Sequence == last && f.ledger(2).Sequence == last
	})
}

// relayOn returns a client for one host, whichever has the store.
func (f faulty) relayOn(host int) *relay.Client {
	f.Helper()
	to, err := sshclient.ParseHost("ops@" + f.host(host).SSH)
	f.must(err)
	client, err := sshclient.New(to, sshclient.Credentials{
		IdentityFiles: []string{f.bed.KeyFile}, KnownHosts: []string{f.bed.KnownHosts},
	}, 0)
	f.must(err)
	return relay.NewClient(f.host(host).Name, func(ctx context.Context) (net.Conn, error) {
		conn, err := client.Exec(ctx, "sudo -n "+f.dir().Path("program")+" relay")
		if err != nil {
			return nil, err
		}
		answers := bufio.NewReader(conn)
		_, err = answers.ReadString('\n')
		return &readAhead{conn, answers}, err
	})
}

// readAhead is a connection from which a line was read already.
type readAhead struct {
	net.Conn
	answers io.Reader
}

func (r *readAhead) Read(p []byte) (int, error) { return r.answers.Read(p) }

// dying returns an engine that calls happen before the first call with this name.
func dying(e engine.Engine, name string, happen func()) engine.Engine {
	happened := false
	return engine.Intercept(e, func(_ context.Context, call engine.Call, do func() error) error {
		if call.Name == name && !happened {
			happened = true
			happen()
		}
		return do()
	})
}

// refused returns why a write is refused.
func (f faulty) refused(e engine.Engine) error {
	f.Helper()
	document, err := engine.Get[domain.GroupDocument](f.bounded(), e, "job")
	f.must(err)
	_, err = engine.Put(f.bounded(), e, document)
	return err
}

// readable fails unless an engine can read the cluster, and every write fails with advice.
func (f faulty) readable(e engine.Engine, store string, groups int) {
	f.Helper()
	documents, err := engine.List[domain.GroupDocument](f.bounded(), e)
	f.must(err)
	if len(documents) != groups {
		f.Errorf("there are %d groups, not %d", len(documents), groups)
	}
	f.observed(e, "job")
	err = f.refused(e)
	if err == nil || !strings.Contains(err.Error(), "its store host "+store+" ") ||
		!strings.Contains(err.Error(), "trainyard promote ") {
		f.Errorf("a write without the store host: %v", err)
	}
}

// TestStoreHostLost: without the store host, everything works except changes, until another host takes its place; when
// it is back, it accepts that.
func TestStoreHostLost(t *testing.T) {
	f := newFaulty(t)
	g := f.group("job", everyHost, "wait")
	f.update(g)
	f.update(f.group("brief", []int{1}, "until:/var/tmp/go"))
	late := f.group("late", []int{1, 2}, "wait")
	err := reconcile.Reconciler{Engine: dying(f.Engine, "Stage", func() {
		f.copied()
		f.suffers(0, powerCut)
	})}.Update(f.bounded(), late)
	t.Logf("the apply: %v", err)
	if err == nil || !strings.Contains(err.Error(), "host1") {
		t.Errorf("an apply whose store host dies: %v", err)
	}

	second := f.open(1, f.provider)
	f.readable(second, "host1", 3)
	f.sh(2, fmt.Sprintf("pkill -KILL -f '^%s wait'", f.member))
	f.sh(1, "touch /var/tmp/go")
	f.eventually("a restart and a completion", func() bool {
		restarted := f.observed(second, "job")["job-on3-0"]
		return restarted.State == domain.StateRunning && restarted.Restarts == 1 &&
			f.observed(second, "brief")["brief-on2-0"].State == domain.StateCompleted
	})

	if output := f.runs(f.refused(second),
		"promote"); !strings.Contains(output, "Host host2 now keeps the store of cluster lab, in place of host1.") {
		t.Errorf("the command says %q", output)
	}
	// The new one goes down, too, before it could inform the old one.
	f.suffers(1, powerCut)
	f.must(f.host(0).Start(f.bounded()))
	f.readable(f.open(0, f.provider), "host2", 3)

	f.must(f.host(1).Start(f.bounded()))
	f.eventually("the old store host to obey", func() bool {
		return f.ledger(0).Store == "host2" && f.ledger(0).Sequence == f.ledger(1).Sequence &&
			f.sh(0, "pgrep -f '/[^ ]* controller --engine systemd' || true") == ""
	})
	if _, err := relay.Put.Ask(f.bounded(), f.relayOn(0), "lab", engine.Item{
		Key: engine.Key{Kind: domain.GroupKind, Name: "stale"}, Data: []byte("{}"),
	}); !errors.Is(err, relay.ErrDeposed) {
		t.Errorf("a write to the old store host: %v", err)
	}
	f.Engine = f.open(0, f.provider)
	f.update(late)
	f.startedOnce(late)
	f.tally.lookAt(f.running("job", 3))
	found, err := reconcile.Reconciler{Engine: f.Engine}.AwaitResidents(f.bounded())
	f.must(err)
	if found.Controller.Host != "host2" {
		t.Errorf("the controller runs on %s", found.Controller.Host)
	}
	if brief := f.observed(f.Engine, "brief")["brief-on2-0"]; brief.State != domain.StateCompleted {
		t.Errorf("what completed without the store host is %+v", brief)
	}
	f.finish()
}

// TestStoreHostReturns: a store host that was only cut off while another took its place ends none of the members that
// were started meanwhile, even if it reaches their hosts before the new one notifies it.
func TestStoreHostReturns(t *testing.T) {
	f := newFaulty(t)
	f.update(f.group("job", []int{1}, "wait"))
	// reaches reports whether the old one's controller is connected to another host.
	reaches := func(host int) bool {
		return f.sh(0, "ss -Htn state established dst "+f.host(host).Address.String()+":22") != ""
	}
	f.eventually("the controller to reach the others", func() bool { return reaches(1) && reaches(2) })
	f.suffers(0, networkCut)
	f.Engine = f.open(1, f.provider)
	f.runs(f.refused(f.Engine), "promote")
	late := f.group("late", []int{1, 2}, "wait")
	f.update(late)
	const controller = `pkill -%s -f '/[^ ]* controller --engine systemd .*--cluster lab$'`
	f.eventually("the new one's controller to be stopped", func() bool {
		_, err := f.host(1).Run(f.bounded(), fmt.Sprintf(controller, "STOP"))
		return err == nil
	})
	f.eventually("the old store host to notice the cut", func() bool { return !reaches(1) && !reaches(2) })
	f.must(f.host(0).Heal())
	f.eventually("the old store host to reach the others", func() bool { return reaches(1) && reaches(2) })
	f.sh(1, fmt.Sprintf(controller, "CONT"))
	f.eventually("the old store host to obey", func() bool { return f.ledger(0).Store == "host2" })
	f.startedOnce(late)
	f.finish()
}

// TestStoreMoves: an apply moves the store to another host; the former one is a copy from then on.
func TestStoreMoves(t *testing.T) {
	f := newFaulty(t)
	g := f.group("job", everyHost, "wait")
	f.update(g)
	f.spec.Hosts = maps.Clone(f.spec.Hosts)
	for name, host := range f.spec.Hosts {
		host.Role = ""
		if name == "host2" {
			host.Role = domain.HostManager
		}
		f.spec.Hosts[name] = host
	}
	f.form(f.spec)
	if _, err := relay.Put.Ask(f.bounded(), f.relayOn(0), "lab", engine.Item{
		Key: engine.Key{Kind: domain.GroupKind, Name: "stale"}, Data: []byte("{}"),
	}); !errors.Is(err, relay.ErrDeposed) {
		t.Errorf("a write to the former store host: %v", err)
	}
	f.eventually("the copies to be up to date", func() bool {
		store := f.ledger(1)
		return store.Host == store.Store && f.ledger(0).Equal(store) && f.ledger(2).Equal(store)
	})
	f.update(f.group("after", []int{0, 1}, "wait"))
	f.startedOnce(g)
	f.finish()
}

// TestNoCopy: a change that no second host has copied causes a warning that names the hosts; the next one that is
// copied does not.
func TestNoCopy(t *testing.T) {
	f := newFaulty(t)
	put := func() []engine.Warning {
		t.Helper()
		ctx, warnings := engine.WithWarnings(f.bounded())
		document, err := engine.Cluster(ctx, f.Engine)
		f.must(err)
		_, err = engine.Put(ctx, f.Engine, document)
		f.must(err)
		return warnings.All()
	}
	// A host that is busy may have it later than is waited for.
	copied := func() bool {
		warnings := put()
		if len(warnings) > 0 {
			t.Log(warnings)
		}
		return len(warnings) == 0
	}
	f.eventually("a change to have a copy, with all hosts", copied)
	f.suffers(1, powerCut)
	f.eventually("a change to have a copy, with a second host", copied)
	f.suffers(2, powerCut)
	warnings := put()
	t.Log(warnings)
	if len(warnings) != 1 || !strings.Contains(warnings[0].Detail, "stored only on host host1") ||
		!strings.Contains(warnings[0].Detail, "host host2: ") || !strings.Contains(warnings[0].Detail, "host host3: ") {
		t.Errorf("without a second host: %v", warnings)
	}
	f.must(f.host(1).Start(f.bounded()))
	f.eventually("a change to have a copy again", copied)
	f.must(f.host(2).Start(f.bounded()))
	f.eventually("all to be back", func() bool { return f.ledger(2).Sequence == f.ledger(0).Sequence })
	f.finish()
}

// TestCrossing: a plan reports, by name and address, that the controller could not reach a host; for a host of the
// cluster with unchanged addresses, it is a warning.
func TestCrossing(t *testing.T) {
	f := newHosts(t)
	check := func() domain.Problems {
		t.Helper()
		_, problems, err := f.Complete(f.bounded(), f.spec)
		f.must(err)
		return problems
	}
	if problems := check(); len(problems) > 0 {
		t.Errorf("of hosts that reach each other: %v", problems)
	}
	spec := f.spec
	f.spec.Hosts = maps.Clone(f.spec.Hosts)
	host := f.spec.Hosts["host2"]
	closed := f.host(1).Address.String() + ":4711"
	host.AdvertiseAddress = closed
	f.spec.Hosts["host2"] = host
	own := f.spec.Hosts["host3"]
	own.AdvertiseAddress = "" // the bed's address for it, which only this machine knows
	f.spec.Hosts["host3"] = own
	problems := check()
	t.Log(problems)
	if len(problems) != 2 || problems.Err() == nil ||
		problems[0].Path.String() != `hosts["host2"].advertise_address` ||
		!strings.Contains(problems[0].Detail, closed) ||
		problems[1].Path.String() != `hosts["host3"].address` || !strings.Contains(problems[1].Detail, f.host(2).SSH) {
		t.Errorf("of hosts that are not reached: %v", problems)
	}

	f.spec = spec
	f.form(f.spec)
	route := "unreachable " + f.host(1).Address.String()
	f.sh(0, "ip route add "+route)
	problems = check()
	t.Log(problems)
	if len(problems) != 1 || problems.Err() != nil || problems[0].Path.String() != `hosts["host2"].advertise_address` {
		t.Errorf("of a host of the cluster that is not reached: %v", problems)
	}
	f.sh(0, "ip route del "+route)
	f.finish()
}
