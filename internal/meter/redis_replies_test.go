package meter

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// answering returns the address of a server that replies this to the first data of each client.
func answering(t testing.TB, answer func() io.Reader) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				_, _ = connection.Read(make([]byte, 4096))
				_, _ = io.Copy(connection, answer())
			}()
		}
	}()
	return listener.Addr().String()
}

// listAt returns the question for the length of a list.
func listAt(address string) Question {
	return Question{
		Source: domain.ScalingSource{
			Queue: &domain.QueueSource{Redis: &domain.RedisQueue{Address: address, Key: "jobs"}},
		},
	}
}

// TestHostileRedis: whatever length a Redis claims, and however long it goes on, it takes almost no memory, its metric
// is missing, and others are read.
func TestHostileRedis(t *testing.T) {
	if !acctest.Alone(t) {
		return
	}
	const refused, tooLong = "not a Redis reply", "a line of its answer has more than 4096 bytes"
	lines := func(text string) func() io.Reader {
		return func() io.Reader { return strings.NewReader("+OK\r\n" + text) }
	}
	type hostile struct {
		answer func() io.Reader
		why    string
	}
	servers := map[string]hostile{
		"a million nestings": {
			func() io.Reader { return io.LimitReader(acctest.Endless("*1\r\n"), 4_000_000) }, refused,
		},
		"an endless line": {func() io.Reader { return acctest.Endless("x") }, refused},
		"an endless status": {
			func() io.Reader { return io.MultiReader(strings.NewReader("+"), acctest.Endless("x")) }, tooLong,
		},
		"an endless error": {
			func() io.Reader { return io.MultiReader(strings.NewReader("-ERR "), acctest.Endless("x")) }, tooLong,
		},
		"an endless number": {
			func() io.Reader { return io.MultiReader(strings.NewReader("+OK\r\n:"), acctest.Endless("1")) }, tooLong,
		},
		"endless empty lines":   {func() io.Reader { return acctest.Endless("\r\n") }, refused},
		"a text of a version 3": {lines("=999999999999\r\ntxt:"), refused},
		"a map of a version 3":  {lines("%999999999999\r\n"), refused},
	}
	for _, length := range []int64{1 << 36, 1 << 40, 1 << 45, 1 << 62} {
		servers[fmt.Sprintf("a text of %d bytes", length)] = hostile{lines(fmt.Sprintf("$%d\r\n", length)), refused}
		servers[fmt.Sprintf("a list of %d", length)] = hostile{lines(fmt.Sprintf("*%d\r\n", length)), refused}
	}
	kind := answering(t, func() io.Reader { return strings.NewReader("+OK\r\n:7\r\n") })
	m := patient(&fake{})
	read(t, m, Observation{}, listAt(kind)) // allocations of the first read are no growth
	for name, server := range servers {
		t.Run(name, func(t *testing.T) {
			questions := []Question{listAt(answering(t, server.answer)), listAt(kind)}
			taken := acctest.Allocated(func() {
				got := m.Read(acctest.Bounded(t), noon, Observation{}, questions)
				missed(t, got[0], server.why)
				if got[1].Why != "" || got[1].Value != 7 {
					t.Errorf("the list of another Redis is %+v", got[1])
				}
			})
			if taken > 1<<20 {
				t.Errorf("%d bytes were taken", taken)
			}
		})
	}
}

// Whatever is replied, the client gets a status, an error, a number, or a connection error.
func FuzzReplies(f *testing.F) {
	for _, text := range []string{
		"+OK\r\n:3\r\n", "-ERR a\r\n-WRONGTYPE b\r\n", ":-5\r\n", ":\r\n", "+OK", "\r\n", "",
		":99999999999999999999\r\n", "$1\r\na\r\n", "$-1\r\n", "*1\r\n*1\r\n",
		"+" + strings.Repeat("x", 5000) + "\r\n", "+OK\n:1\n", "_\r\n",
		"(3492890328409238509324850943850943825024385\r\n", ",inf\r\n", "#t\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		here, there := net.Pipe()
		defer here.Close()
		go func() {
			defer there.Close()
			_, _ = there.Write(text) // until the reader has gone
		}()
		client := redis.NewConn(repliesOf(here), 0, 0)
		for {
			reply, err := client.Receive()
			if client.Err() != nil {
				return
			}
			if _, number := reply.(int64); err == nil && !number {
				if _, status := reply.(string); !status {
					t.Fatalf("%q is a reply of %T", text, reply)
				}
			}
		}
	})
}
