package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/meter"
)

// testContext returns a context that a test can cancel.
func testContext(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(acctest.Bounded(t))
}

// someFactors are the replication factors of three topics, one of them Kafka's own.
func someFactors() map[partition]int {
	factors := map[partition]int{}
	for topic, shape := range map[string][2]int{"__consumer_offsets": {5, 2}, "clicks": {6, 1}, "orders": {4, 3}} {
		for n := range shape[0] {
			factors[partition{topic, int32(n)}] = shape[1]
		}
	}
	return factors
}

// hookCall is the call of a hook of the group kafka.
func hookCall(name, id string, from, to int, brokers ...int) hook {
	h := hook{ID: id, Hook: name, Group: "kafka", Role: "broker", From: from, To: to, Members: []string{}}
	for _, b := range brokers {
		h.Members = append(h.Members, fmt.Sprintf("kafka-broker-%d", b))
	}
	return h
}

// path is the path that a hook calls.
func (h hook) path() string {
	if h.leaves() {
		return "/leaving"
	}
	return "/joined"
}

// send calls a hook through the controller's client, or asks for its progress.
func send(t *testing.T, address, location string, h hook) (meter.Reply, error) {
	t.Helper()
	return meter.CallHook(acctest.Bounded(t), domain.ScalingHook{URL: address + h.path()}, h.ID, location, h)
}

// follow calls a hook, and polls until it is done.
func follow(t *testing.T, address string, h hook) {
	t.Helper()
	location := ""
	acctest.Eventually(t, h.Hook+" to be done", func() bool {
		reply, err := send(t, address, location, h)
		if _, transient := errors.AsType[*meter.TransientError](err); transient {
			return false // retried, as by the controller
		}
		if err != nil {
			t.Fatal(err)
		}
		location = reply.Location
		return reply.Done
	})
}

// balanced fails unless partitions and leaders are round robin over these brokers, and nothing is throttled.
func (b *bed) balanced(brokers ...int32) {
	b.t.Helper()
	partitions, configs := b.now()
	want, err := layout(someFactors(), brokers, b.racks)
	if err != nil {
		b.t.Fatal(err)
	}
	got := map[partition][]int32{}
	for p, h := range partitions {
		got[p] = h.replicas
		if h.leader != h.replicas[0] || h.moving() {
			b.t.Errorf("%v is %+v", p, h)
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(partition{})); diff != "" {
		b.t.Errorf("(-want +got):\n%s", diff)
	}
	if len(configs) > 0 {
		b.t.Errorf("it is still throttled: %q", configs)
	}
	b.set(func() {
		if b.atOnce > 1 {
			b.t.Errorf("%d were reassigned at once", b.atOnce)
		}
	})
}

// TestRacks: replicas stay on different racks while a broker joins one of them, and leaves again.
func TestRacks(t *testing.T) {
	b := newBed(t, someFactors())
	b.racks = map[int32]string{0: "x", 1: "y", 2: "z", 3: "x"}
	b.brokers[3] = true
	address, _ := b.start()
	for _, h := range []hook{hookCall(afterAddition, "up", 3, 4, 3), hookCall(beforeRemoval, "down", 4, 3, 3)} {
		follow(t, address, h)
		partitions, _ := b.now()
		for p, held := range partitions {
			if slices.Contains(held.replicas, 0) && slices.Contains(held.replicas, 3) {
				t.Errorf("after %s, %v has two replicas on a rack: %v", h.Hook, p, held.replicas)
			}
		}
	}
	b.balanced(0, 1, 2)
}

// TestUpAndDown: a broker that joins gets its share; one that leaves is emptied, and unregistered once it is gone.
func TestUpAndDown(t *testing.T) {
	b := newBed(t, someFactors())
	address, _ := b.start()
	up := hookCall(afterAddition, "up", 3, 4, 3)
	reply, err := send(t, address, "", up)
	if err != nil || reply.Done || reply.Location != address+"/changes/up" {
		t.Fatalf("it is %+v, %v", reply, err)
	}
	acctest.Eventually(t, "the broker to be waited for", func() bool {
		reply, err := send(t, address, reply.Location, up)
		return err == nil && reply.Progress == "waiting for broker 3"
	})
	b.set(func() { b.brokers[3] = true })
	follow(t, address, up)
	b.balanced(0, 1, 2, 3)

	follow(t, address, hookCall(beforeRemoval, "down", 4, 3, 3))
	b.balanced(0, 1, 2)
	b.set(func() {
		if len(b.unregistered) > 0 {
			t.Errorf("%v are unregistered before they went", b.unregistered)
		}
		b.brokers[3] = false
	})
	acctest.Eventually(t, "the broker to be unregistered", func() (gone bool) {
		b.set(func() { gone = slices.Equal(b.unregistered, []int32{3}) })
		return gone
	})
	if got := statusFrom(t, address); got.Brokers != 3 || got.ReplicationFactor != 3 || got.Reassigning != 0 ||
		got.MovedBytes == 0 || got.MovedBytes%100 != 0 {
		t.Errorf("the status is %+v", got)
	}
}

func statusFrom(t *testing.T, address string) (got status) {
	t.Helper()
	response, err := http.Get(address + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", response.Status, err)
	}
	return got
}

// TestKilled: a new rebalancer knows of no change; when called again, it continues from the state of the cluster.
func TestKilled(t *testing.T) {
	b := newBed(t, someFactors())
	b.brokers[3], b.stuck = true, true
	address, kill := b.start()
	up := hookCall(afterAddition, "up", 3, 4, 3)
	if _, err := send(t, address, "", up); err != nil {
		t.Fatal(err)
	}
	begun := func() (count int) {
		b.set(func() { count = b.begun })
		return count
	}
	acctest.Eventually(t, "a reassignment", func() bool { return begun() == 1 })
	kill()
	address, kill = b.start()
	if reply, err := send(t, address, address+"/changes/up", up); err != nil || reply.Done || reply.Location != "" {
		t.Errorf("the next one says %+v, %v", reply, err)
	}
	reply, err := send(t, address, "", up)
	if err != nil {
		t.Fatal(err)
	}
	acctest.Eventually(t, "the reassignment to be found", func() bool {
		reply, err := send(t, address, reply.Location, up)
		return err == nil && strings.HasPrefix(reply.Progress, "0 of ")
	})
	if begun() != 1 {
		t.Error("what is in progress was begun again")
	}
	b.set(func() { b.stuck = false })
	follow(t, address, up)
	b.balanced(0, 1, 2, 3)

	// If it is killed, and its successor is not called, no throttle remains.
	b.set(func() { b.stuck = true })
	before := begun()
	if _, err := send(t, address, "", hookCall(beforeRemoval, "down", 4, 3, 3)); err != nil {
		t.Fatal(err)
	}
	acctest.Eventually(t, "a reassignment", func() bool { return begun() > before })
	kill()
	b.start()
	b.set(func() { b.stuck = false })
	acctest.Eventually(t, "the throttle to be removed", func() bool {
		_, configs := b.now()
		return len(configs) == 0
	})
}

// TestCalledOff: a broker that is no longer to leave gets its replicas back, through DELETE or through the next hook.
func TestCalledOff(t *testing.T) {
	for name, test := range map[string]struct {
		callOff func(t *testing.T, address string)
	}{
		"by DELETE": {func(t *testing.T, address string) {
			if err := meter.CallOff(acctest.Bounded(t), address+"/changes/down"); err != nil {
				t.Error(err)
			}
		}},
		"by the next hook": {
			func(t *testing.T, address string) { follow(t, address, hookCall(afterAddition, "up", 2, 3)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			factors := someFactors()
			for p := range factors {
				if p.topic == "orders" {
					delete(factors, p)
				}
			}
			b := newBed(t, factors)
			address, _ := b.start()
			down := hookCall(beforeRemoval, "down", 3, 2, 2)
			follow(t, address, down)
			if got := statusFrom(t, address).Skew; got == 0 {
				t.Error("there is no skew while a broker has nothing")
			}
			test.callOff(t, address)
			acctest.Eventually(t, "all brokers to have as much",
				func() bool { return statusFrom(t, address).Skew < 0.2 })
			if reply, err := send(t, address, address+"/changes/down", down); err != nil || reply.Done ||
				reply.Location != "" {
				t.Errorf("of what was called off, it says %+v, %v", reply, err)
			}
		})
	}
}

// TestBrokerDown: moves wait while the broker to copy to is down.
func TestBrokerDown(t *testing.T) {
	b := newBed(t, someFactors())
	b.brokers[3], b.stuck = true, true
	address, _ := b.start()
	up := hookCall(afterAddition, "up", 3, 4, 3)
	if _, err := send(t, address, "", up); err != nil {
		t.Fatal(err)
	}
	acctest.Eventually(t, "a reassignment", func() (moving bool) {
		b.set(func() { moving = b.begun > 0 })
		return moving
	})
	b.set(func() { b.brokers[3], b.stuck = false, false })
	acctest.Eventually(t, "the broker to be waited for", func() bool {
		reply, err := send(t, address, address+"/changes/up", up)
		return err == nil && reply.Progress == "waiting for broker 3"
	})
	b.set(func() { b.brokers[3] = true })
	follow(t, address, up)
	b.balanced(0, 1, 2, 3)
}

// TestRefused: invalid requests are refused at once, with a reason.
func TestRefused(t *testing.T) {
	b := newBed(t, someFactors())
	b.doubt = 0
	address, _ := b.start()
	worker := hookCall(afterAddition, "1", 1, 2, 1)
	worker.Role = "worker"
	stranger := hookCall(beforeRemoval, "1", 3, 2, 2)
	stranger.Members = []string{"other-broker-2"}
	for name, test := range map[string]struct {
		call hook
		want string
	}{
		"too few are left": {
			hookCall(beforeRemoval, "1", 3, 2, 2),
			"HTTP 409 Conflict: 2 brokers would be left, and topic orders has 3 replicas of each partition",
		},
		"no ID":         {hookCall(afterAddition, "", 3, 4, 3), `HTTP 400 Bad Request: id must have`},
		"another role":  {worker, `role is "worker": brokers are the members of role broker`},
		"another group": {stranger, `member "other-broker-2" must have a name like kafka-broker-0`},
		"no names":      {hookCall(beforeRemoval, "1", 3, 2), "it must name the brokers to remove"},
		"no number":     {hookCall(afterAddition, "1", 0, 0), "it must have to, the new number of brokers, or members"},
		"negative":      {hookCall(afterAddition, "1", -1, 2, 1), "from and to must be 0 to 10000, got -1 and 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if reply, err := send(t, address, "", test.call); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it is %+v, %v", reply, err)
			}
		})
	}
	for body, want := range map[string]int{
		"{": http.StatusBadRequest, `"` + strings.Repeat("x", 2<<20): http.StatusRequestEntityTooLarge,
		"{}": http.StatusBadRequest,
	} {
		response, err := http.Post(address+"/joined", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%.10q is answered %s, want %d", body, response.Status, want)
		}
	}
	b.set(func() {
		if b.begun > 0 {
			t.Errorf("%d partitions were moved", b.begun)
		}
	})
}

// TestReadme: the module's README calls the hook by hand, maybe before the added broker is up.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`curl -d '(.*)' `).FindSubmatch(readme)
	if call == nil {
		t.Fatal("it calls no hook")
	}
	var up hook
	if err := json.Unmarshal(call[1], &up); err != nil {
		t.Fatal(err)
	}
	b := newBed(t, someFactors())
	address, _ := b.start()
	if _, err := send(t, address, "", up); err != nil {
		t.Fatal(err)
	}
	acctest.Eventually(t, "the broker to be waited for", func() bool {
		reply, err := send(t, address, address+"/changes/"+up.ID, up)
		return err == nil && reply.Progress == "waiting for broker 4 of 4"
	})
	b.set(func() { b.brokers[3] = true })
	follow(t, address, up)
	b.balanced(0, 1, 2, 3)
}

// TestUnreachable: while Kafka is unreachable, hooks are asked to retry.
func TestUnreachable(t *testing.T) {
	b := newBed(t, someFactors())
	address, _ := b.start()
	b.cluster.Close()
	_, err := send(t, address, "", hookCall(beforeRemoval, "1", 4, 3, 3))
	if _, transient := err.(*meter.TransientError); !transient { //nolint:errorlint // exactly this type
		t.Errorf("the error is %v", err)
	}
}
