package swarm

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
	"github.com/trainyard/terraform-provider-trainyard/internal/meter"
	"github.com/trainyard/terraform-provider-trainyard/internal/prometheus"
)

const (
	// gibibyte is what each source offers, and mostTaken what it may take of memory.
	gibibyte  = 1 << 30
	mostTaken = 192 << 20
)

// offer is so much text, after a beginning.
func offer(beginning, text string) io.Reader {
	return io.MultiReader(strings.NewReader(beginning), io.LimitReader(acctest.Endless(text), gibibyte))
}

// inFrames is so much text as an Engine sends it, of one kind, a line in each frame.
func inFrames(kind stdcopy.StdType) io.Reader {
	const size = 16 << 10
	frame := make([]byte, frameHeader, frameHeader+size)
	frame[0] = byte(kind)
	binary.BigEndian.PutUint32(frame[4:], uint32(size))
	frame = append(frame, strings.Repeat("x", size-1)+"\n"...)
	return io.LimitReader(acctest.Endless(string(frame)), gibibyte/int64(len(frame))*int64(len(frame)))
}

// oneFrame is one that has all of the text.
func oneFrame(kind stdcopy.StdType) io.Reader {
	return offer(string([]byte{byte(kind), 0, 0, 0, 0x40, 0, 0, 0}), "x\n")
}

// offering is an Engine whose containers write so much.
type offering struct {
	agentContainer

	frames io.Reader
}

func (o *offering) ContainerExecCreate(context.Context, string, container.ExecOptions) (container.ExecCreateResponse, error) {
	return container.ExecCreateResponse{}, nil
}

func (o *offering) ContainerExecAttach(context.Context, string, container.ExecAttachOptions) (types.HijackedResponse, error) {
	here, there := net.Pipe()
	go func() {
		_, _ = io.Copy(there, o.frames)
		_ = there.Close()
	}()
	return types.HijackedResponse{Conn: here, Reader: bufio.NewReader(here)}, nil
}

// askedIn is what comes of asking an agent that writes these frames.
func askedIn(frames io.Reader) func(*testing.T) error {
	return func(t *testing.T) error {
		_, err := askThrough(acctest.Bounded(t), &offering{frames: frames}, "id", nil, telemetry.Query{})
		return err
	}
}

// readLog is what comes of reading a member's log in these frames.
func readLog(frames io.Reader, options engine.LogOptions) func(*testing.T) error {
	return func(*testing.T) error {
		lines := options.Lines()
		return demultiplex(lines, lines, frames)
	}
}

// serving is a server that answers with this, and its client's error.
func serving(ask func(t *testing.T, url string) error, write func(w http.ResponseWriter)) func(*testing.T) error {
	return func(t *testing.T) error {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { write(w) }))
		defer server.Close()
		return ask(t, server.URL)
	}
}

func plain(w http.ResponseWriter) { _, _ = io.Copy(w, offer("", " ")) }

// squeezed offers it in a thousandth of the bytes.
func squeezed(w http.ResponseWriter) {
	w.Header().Set("Content-Encoding", "gzip")
	packed := gzip.NewWriter(w)
	_, _ = io.Copy(packed, offer("", " "))
	_ = packed.Close()
}

// measured is why a source's metric is missing.
func measured(source func(url string) domain.ScalingSource) func(*testing.T, string) error {
	return func(t *testing.T, url string) error {
		m := meter.New(nil)
		m.Limit = time.Minute
		got := m.Read(acctest.Bounded(t), time.Now(), meter.Scene{}, []meter.Question{{Source: source(url)}})
		return errors.New(got[0].Why)
	}
}

func queue(q domain.QueueSource) domain.ScalingSource { return domain.ScalingSource{Queue: &q} }

// queried is a cluster of which a Prometheus is asked.
type queried struct{ storetest.Memory }

func (*queried) Observe(context.Context, string) ([]domain.Observed, error) { return nil, nil }

func newQueried(t *testing.T) *queried {
	t.Helper()
	of := &queried{}
	_, err := engine.Put(t.Context(), of, domain.ClusterDocument{Spec: domain.Cluster{Name: "lab", Hosts: map[string]domain.Host{"gpu1": {}}}})
	must(t, err)
	return of
}

// TestOutside: whatever a source outside of this program offers, it takes memory up to a bound, and says of more that
// it is more.
func TestOutside(t *testing.T) {
	if !acctest.Alone(t) {
		return
	}
	page := func(url string) domain.ScalingSource {
		return queue(domain.QueueSource{HTTP: &domain.HTTPQueue{URL: url}})
	}
	value := func(url string) domain.ScalingSource {
		return domain.ScalingSource{Prometheus: &domain.PrometheusSource{URL: url, Query: "up"}}
	}
	usage := func(t *testing.T, url string) error {
		_, err := prometheus.Usage(acctest.Bounded(t), prometheus.Settings{URL: url, Timeout: time.Minute}, newQueried(t), time.Minute)
		return err
	}
	series := func(t *testing.T, url string) error {
		r := prometheus.Range{Query: "up", Start: time.Unix(0, 0), End: time.Unix(600, 0), Step: time.Minute}
		_, err := prometheus.Settings{URL: url, Timeout: time.Minute}.Range(acctest.Bounded(t), r)
		return err
	}
	for name, source := range map[string]struct {
		read func(*testing.T) error
		most int64
	}{
		"HTTP":       {serving(measured(page), plain), bounded.Answer},
		"HTTP, gzip": {serving(measured(page), squeezed), bounded.Answer},
		"a command": {serving(measured(func(string) domain.ScalingSource {
			return queue(domain.QueueSource{Command: []string{"cat", "/dev/zero"}})
		}), nil), bounded.Answer},
		"a hook":                       {serving(callHook, plain), bounded.Answer},
		"Redis":                        {redisServer(offer("+", "x")), bounded.ReplyLine},
		"Prometheus, a value":          {serving(measured(value), plain), bounded.Answer},
		"Prometheus, a value, gzip":    {serving(measured(value), squeezed), bounded.Answer},
		"Prometheus, usage":            {serving(usage, plain), bounded.Series},
		"Prometheus, usage, gzip":      {serving(usage, squeezed), bounded.Series},
		"Prometheus, a range, gzip":    {serving(series, squeezed), bounded.Series},
		"a log":                        {readLog(inFrames(stdcopy.Stdout), engine.LogOptions{}), bounded.Log},
		"a log of empty lines":         {readLog(oneFrameOf("\n"), engine.LogOptions{}), bounded.Log},
		"a log for a policy":           {readLog(inFrames(stdcopy.Stderr), engine.LogOptions{Tail: 20_000, Most: bounded.ProgressLog}), bounded.ProgressLog},
		"a log in one frame":           {readLog(oneFrame(stdcopy.Stdout), engine.LogOptions{}), bounded.Log},
		"the log of a process":         {fileLog, bounded.Log},
		"exec, standard output":        {askedIn(inFrames(stdcopy.Stdout)), 2 * bounded.Reports},
		"exec, standard error":         {askedIn(inFrames(stdcopy.Stderr)), 4 * bounded.Reports},
		"exec, one frame":              {askedIn(oneFrame(stdcopy.Stdout)), 2 * bounded.Reports},
		"exec, an error of the Engine": {askedIn(oneFrame(stdcopy.Systemerr)), 4 * bounded.Reports},
		"the agent of a host":          {agentSocketOffer, bounded.Report},
		"peers":                        {peers, bounded.Report},
		"a build":                      {func(*testing.T) error { _, err := built(offer(`{"stream":"`, "x")); return err }, bounded.Message},
		"a build's result":             {func(*testing.T) error { _, err := built(offer(`{"aux":{"ID":"`, "x")); return err }, bounded.Message},
		"a pull":                       {func(*testing.T) error { return done(offer(`{"status":"`, "x")) }, bounded.Message},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			if took := acctest.Allocated(func() { err = source.read(t) }); took > mostTaken {
				t.Errorf("%d MiB were taken", took>>20)
			}
			if want := fmt.Sprintf("more than %d bytes", source.most); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 16<<10 {
				t.Errorf("the error is %.2000v, want that there are %s", err, want)
			}
		})
	}
	// What goes on for long may go on: of a log only the last lines are kept, of a build the last text.
	for name, read := range map[string]func() error{
		"the end of a log": func() error { return readLog(inFrames(stdcopy.Stdout), engine.LogOptions{Tail: 100})(t) },
		"a long build": func() error {
			id, err := built(io.MultiReader(io.LimitReader(acctest.Endless(`{"stream":"`+strings.Repeat("x", 1000)+`"}`+"\r\n"), 64*1015<<8), strings.NewReader(`{"aux":{"ID":"sha256:a"}}`)))
			if err == nil && id != "sha256:a" {
				err = fmt.Errorf("the image is %q", id)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := read(); err != nil {
				t.Error(err)
			}
		})
	}
}

func oneFrameOf(text string) io.Reader {
	return offer(string([]byte{byte(stdcopy.Stdout), 0, 0, 0, 0x40, 0, 0, 0}), text)
}

func callHook(t *testing.T, url string) error {
	_, err := meter.Call(acctest.Bounded(t), domain.ScalingHook{URL: url}, nil)
	return err
}

// redisServer is what comes of asking a Redis that replies this.
func redisServer(reply io.Reader) func(*testing.T) error {
	return func(t *testing.T) error {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer listener.Close()
		go func() {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			defer connection.Close()
			_, _ = io.Copy(connection, reply)
		}()
		return measured(func(address string) domain.ScalingSource {
			return queue(domain.QueueSource{Redis: &domain.RedisQueue{Address: address, Key: "jobs"}})
		})(t, listener.Addr().String())
	}
}

// fileLog is what comes of reading a log that a process has filled.
func fileLog(t *testing.T) error {
	d := statedir.Dir{Root: t.TempDir(), Cluster: "lab"}
	if err := d.Create(); err != nil {
		return err
	}
	file, err := d.OpenLog("job-worker-0")
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.CopyN(file, acctest.Endless("some text\n"), 64<<20); err != nil {
		return err
	}
	if err := file.Truncate(gibibyte); err != nil { // the rest is one line of zeros
		return err
	}
	_, err = d.ReadLog("job-worker-0", engine.LogOptions{})
	return err
}

// agentSocketOffer is what comes of asking the agent of this host.
func agentSocketOffer(t *testing.T) error {
	socket := filepath.Join(t.TempDir(), "agent.sock")
	listener, err := telemetry.Listen(socket)
	if err != nil {
		return err
	}
	defer answerAt(listener)()
	_, err = telemetry.Ask(acctest.Bounded(t), socket, telemetry.Query{})
	return err
}

// peers is what comes of asking agents of other hosts.
func peers(t *testing.T) error {
	key, err := telemetry.NewKey()
	if err != nil {
		return err
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "agent.pem"), key, 0o600); err != nil {
		return err
	}
	const address = "127.94.64.1" // where nobody else listens
	listener, err := telemetry.ListenToPeers(fmt.Sprintf("%s:%d", address, telemetry.PeerPort), folder)
	if err != nil {
		return err
	}
	defer answerAt(listener)()
	reports, err := telemetry.AskPeers(acctest.Bounded(t), []telemetry.Peer{{Node: "node1", Address: address}}, folder, telemetry.Query{})
	if err != nil || len(reports.Reports) > 0 {
		return fmt.Errorf("%d reports: %w", len(reports.Reports), err)
	}
	return errors.New(reports.Failures["node1"])
}

// answerAt answers at a listener until it is done.
func answerAt(listener net.Listener) (done func()) {
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { plain(w) }), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // until it is closed
	return func() { _ = server.Close() }
}

// Frames that an Engine has written are read as they were written.
func TestDemultiplex(t *testing.T) {
	var written strings.Builder
	for i, text := range []string{"one\n", "", "two\n", strings.Repeat("x", 100_000) + "\n"} {
		kind := stdcopy.Stdout
		if i%2 == 0 {
			kind = stdcopy.Stderr
		}
		_, err := io.WriteString(stdcopy.NewStdWriter(&written, kind), text)
		must(t, err)
	}
	var out, complaint strings.Builder
	must(t, demultiplex(&out, &complaint, strings.NewReader(written.String())))
	if out.String() != strings.Repeat("x", 100_000)+"\n" || complaint.String() != "one\ntwo\n" {
		t.Errorf("%d bytes and %q", out.Len(), complaint.String())
	}
	for name, test := range map[string]struct{ frames, want string }{
		"a header that breaks off": {"\x01\x00\x00", "broke off"},
		"a frame that breaks off":  {"\x01\x00\x00\x00\x00\x00\x00\x05abc", "broke off"},
		"an unknown kind":          {"\x07\x00\x00\x00\x00\x00\x00\x01a", "a frame of kind 7"},
		"a fault of the Engine":    {"\x03\x00\x00\x00\x00\x00\x00\x06no log", "no log"},
	} {
		if err := demultiplex(io.Discard, io.Discard, strings.NewReader(test.frames)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDemultiplex: what is read of frames is what Docker's own reader makes of them, but for what it overlooks: streams
// that break off.
func FuzzDemultiplex(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x02a\n\x02\x00\x00\x00\x00\x00\x00\x01b"))
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xffa\n"))
	f.Add([]byte("\x03\x00\x00\x00\x00\x00\x00\x05fault"))
	f.Add([]byte("\x04\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x00\x01\x02\x03\x00\x00\x00\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, frames []byte) {
		out, complaint := &bounded.Buffer{Most: 1 << 10}, &bounded.Tail{Most: 1 << 10}
		err := demultiplex(out, complaint, strings.NewReader(string(frames)))
		lines := engine.LogOptions{Tail: 3}.Lines()
		_ = demultiplex(lines, lines, strings.NewReader(string(frames)))
		if n := len(lines.All()); n > 3 {
			t.Errorf("%d lines", n)
		}
		if err != nil || len(frames) > 1<<10 {
			return
		}
		var theirOut, theirComplaint strings.Builder
		if _, err := stdcopy.StdCopy(&theirOut, &theirComplaint, strings.NewReader(string(frames))); err != nil {
			t.Errorf("Docker's own reader fails with %v", err)
		}
		if theirOut.String() != string(out.Bytes()) {
			t.Errorf("it is %q, and to Docker's own reader %q", out.Bytes(), theirOut.String())
		}
	})
}

// FuzzAskThrough: whatever an agent answers in its frames, there are reports, or a short reason.
func FuzzAskThrough(f *testing.F) {
	framed := func(kind stdcopy.StdType, text string) []byte {
		var frames strings.Builder
		_, _ = io.WriteString(stdcopy.NewStdWriter(&frames, kind), text)
		return []byte(frames.String())
	}
	f.Add(framed(stdcopy.Stdout, `{"reports":{"node1":{"host":{"cpus":{"last":1}}}}}`))
	f.Add(framed(stdcopy.Stdout, `{"reports":`))
	f.Add(framed(stdcopy.Stderr, "no such file\n"))
	f.Add(framed(stdcopy.Systemerr, "gone"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frames []byte) {
		if _, err := askThrough(t.Context(), &offering{frames: strings.NewReader(string(frames))}, "id", nil, telemetry.Query{}); err != nil && len(err.Error()) > 8<<10 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}

// FuzzBuilt: whatever an Engine reports of a build, there is an image, or a reason why not, of which no more is kept
// than its end.
func FuzzBuilt(f *testing.F) {
	f.Add(`{"stream":"Step 1/2 : FROM scratch\n"}` + "\r\n" + `{"aux":{"ID":"sha256:0123"}}` + "\r\n" + `{"stream":"Successfully built 0123\n"}`)
	f.Add(`{"stream":"a\n"}{"errorDetail":{"code":1,"message":"it broke"},"error":"it broke"}`)
	f.Add(`{"aux":{"ID":7}}{"aux":[]}{"aux":null}`)
	f.Add(`{"stream":"` + strings.Repeat(`\n`, 100) + `"}{"stream":`)
	f.Add(`[]`)
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := built(strings.NewReader(text))
		if (id == "") != (err != nil) {
			t.Errorf("the image is %q: %v", id, err)
		}
		if failed := done(strings.NewReader(text)); failed != nil && err == nil {
			t.Errorf("a build without an error reports %v", failed)
		}
	})
}
