//go:build linux

package testbed

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// proxied returns a proxy for a shared bed's first node, and a client of the proxy that has sent nothing yet.
func proxied(t *testing.T) (*Proxy, *client.Client) {
	t.Helper()
	node := Shared(t, three).Nodes[0]
	proxy := NewProxy(t, node)
	through, err := client.NewClientWithOpts(client.WithHost(proxy.Host()),
		client.WithVersion(node.Client().ClientVersion()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := through.Close(); err != nil {
			t.Error(err)
		}
	})
	return proxy, through
}

func TestProxyFaults(t *testing.T) {
	proxy, through := proxied(t)
	create := Matching("POST", "/volumes/create")
	for _, test := range []struct {
		name    string
		fault   Fault
		failed  []int  // of five calls that each create a volume
		missing []int  // of the five volumes
		message string // in the errors
	}{
		{name: "none", fault: Fault{Nth: 6, Do: Drop()}},
		{
			name: "fail the second", fault: Fault{Nth: 2, Do: Fail(`no "luck"`)}, failed: []int{2}, missing: []int{2},
			message: `no "luck"`,
		},
		{
			name: "fail from the fourth", fault: Fault{Nth: 4, Onwards: true, Do: Fail("gone")}, failed: []int{4, 5},
			missing: []int{4, 5}, message: "gone",
		},
		{
			name: "drop the third", fault: Fault{Match: create, Nth: 3, Do: Drop()}, failed: []int{3},
			missing: []int{3}, message: "EOF",
		},
		{
			name: "drop from the first", fault: Fault{Nth: 1, Onwards: true, Do: Drop()}, failed: []int{1, 2, 3, 4, 5},
			missing: []int{1, 2, 3, 4, 5}, message: "EOF",
		},
		{name: "drop an answer", fault: Fault{Nth: 5, Do: DropAnswer()}, failed: []int{5}, message: "EOF"},
		{name: "delay", fault: Fault{Nth: 1, Do: Delay(time.Millisecond)}},
		{
			name:  "another method",
			fault: Fault{Match: Matching("GET", "/volumes/create"), Nth: 1, Onwards: true, Do: Drop()},
		},
		{
			name:  "another path",
			fault: Fault{Match: Matching("POST", "/volumes/*/create"), Nth: 1, Onwards: true, Do: Drop()},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := limited(t)
			engine := Shared(t, three).Nodes[0].Client()
			proxy.Reset()
			proxy.On(test.fault)
			var failed, missing []int
			for number := 1; number <= 5; number++ {
				name := fmt.Sprintf("%s-%d", strings.ReplaceAll(test.name, " ", "-"), number)
				if _, err := through.VolumeCreate(ctx, volume.CreateOptions{Name: name}); err != nil {
					failed = append(failed, number)
					if !strings.Contains(err.Error(), test.message) {
						t.Errorf("call %d: %v, want an error with %q", number, err, test.message)
					}
				}
				if err := engine.VolumeRemove(ctx, name, false); err != nil {
					missing = append(missing, number)
				}
			}
			if !slices.Equal(failed, test.failed) {
				t.Errorf("calls %v failed, want %v", failed, test.failed)
			}
			if !slices.Equal(missing, test.missing) {
				t.Errorf("volumes %v are missing, want %v", missing, test.missing)
			}
			if want := slices.Repeat([]Call{{"POST", "/volumes/create"}}, 5); !slices.Equal(proxy.Calls(), want) {
				t.Errorf("calls are %v, want %v", proxy.Calls(), want)
			}
		})
	}
}

// TestProxyDelay: a delayed call has arrived but not reached the engine, and the client can give up.
func TestProxyDelay(t *testing.T) {
	proxy, through := proxied(t)
	came := make(chan struct{})
	proxy.On(Fault{Nth: 1, Do: Delay(time.Hour)})
	proxy.On(Fault{Nth: 1, Do: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(came)
			next.ServeHTTP(w, r)
		})
	}})
	ctx, cancel := context.WithCancel(limited(t))
	failed := make(chan error)
	go func() {
		_, err := through.VolumeCreate(ctx, volume.CreateOptions{Name: "delayed"})
		failed <- err
	}()
	<-came
	cancel()
	if err := <-failed; err == nil {
		t.Error("a call that was delayed for an hour returned")
	}
	if _, err := Shared(t, three).Nodes[0].Client().VolumeInspect(t.Context(), "delayed"); err == nil {
		t.Error("the engine has carried out a call that was delayed for an hour")
	}
}

// TestProxyStreams: the proxy streams data both ways as it arrives.
func TestProxyStreams(t *testing.T) {
	proxy, through := proxied(t)
	ctx := limited(t)
	loadPeer(t, Shared(t, three))

	// The engine starts to listen only after the request, and also sends events about its nodes.
	messages, failures := through.Events(ctx, events.ListOptions{
		Since: strconv.FormatInt(time.Now().Unix(), 10),
		Filters: filters.NewArgs(filters.Arg("type", string(events.VolumeEventType)),
			filters.Arg("volume", "streamed")),
	})
	acctest.Eventually(t, "the events to be asked for", func() bool { return len(proxy.Calls()) == 1 })
	if _, err := through.VolumeCreate(ctx, volume.CreateOptions{Name: "streamed"}); err != nil {
		t.Fatal(err)
	}
	select {
	case message := <-messages:
		if message.Type != events.VolumeEventType || message.Actor.ID != "streamed" {
			t.Errorf("the event is %+v", message)
		}
	case err := <-failures:
		t.Fatal(err)
	}
	if err := through.VolumeRemove(ctx, "streamed", false); err != nil {
		t.Fatal(err)
	}

	created, err := through.ContainerCreate(ctx, &container.Config{
		Image: peerRef, Cmd: []string{"echo"}, Tty: true, OpenStdin: true, StdinOnce: true,
	}, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := Shared(t, three).Nodes[0].Client().ContainerRemove(context.Background(), created.ID,
			container.RemoveOptions{Force: true})
		if err != nil {
			t.Error(err)
		}
	})
	attached, err := through.ContainerAttach(ctx, created.ID,
		container.AttachOptions{Stream: true, Stdin: true, Stdout: true})
	if err != nil {
		t.Fatal(err)
	}
	defer attached.Close()
	if err := through.ContainerStart(ctx, created.ID, container.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	if line, err := attached.Reader.ReadString('\n'); err != nil || line != "peer starts\r\n" {
		t.Fatalf("the container begins with %q, %v", line, err)
	}
	if _, err := io.WriteString(attached.Conn, "there and back\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := attached.Reader.ReadString('\n'); err != nil || line != "there and back\r\n" {
		t.Errorf("the container answers %q, %v", line, err)
	}

	logs, err := through.ContainerLogs(ctx, created.ID, container.LogsOptions{ShowStdout: true, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	if line, err := bufio.NewReader(logs).ReadString('\n'); err != nil || line != "peer starts\r\n" {
		t.Errorf("the log of a container that runs begins with %q, %v", line, err)
	}
}

func TestProxyOfDeadEngine(t *testing.T) {
	t.Parallel()
	bed := New(t, Options{Nodes: 1})
	proxy := NewProxy(t, bed.Nodes[0])
	through, err := client.NewClientWithOpts(client.WithHost(proxy.Host()))
	if err != nil {
		t.Fatal(err)
	}
	defer through.Close()
	if _, err := through.Ping(limited(t)); err != nil {
		t.Fatal(err)
	}
	if err := bed.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := through.Info(limited(t)); err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Errorf("a call to an engine that is gone gives %v", err)
	}
}

func TestMatching(t *testing.T) {
	match := Matching("POST", "/services/*/update")
	for call, want := range map[Call]bool{
		{"POST", "/services/abc/update"}: true,
		{"GET", "/services/abc/update"}:  false,
		{"POST", "/services/a/b/update"}: false,
		{"POST", "/services/create"}:     false,
	} {
		if match(call) != want {
			t.Errorf("%s matches: %t, want %t", call, !want, want)
		}
	}
}
