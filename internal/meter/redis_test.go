package meter

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// A real Redis returns the lengths of lists in several databases on one connection.
func TestRedisQueue(t *testing.T) {
	address := acctest.StartRedis(t)
	connection, err := redis.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	do := func(command string, args ...any) any {
		t.Helper()
		reply, err := connection.Do(command, args...)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	do("RPUSH", "jobs", "a", "b", "c")
	do("SET", "text", "a")
	do("SELECT", 3)
	do("RPUSH", "jobs", "d")

	m := patient(&fake{})
	var questions []Question
	ask := func(key string, database int) {
		questions = append(questions, Question{Source: domain.ScalingSource{
			Queue: &domain.QueueSource{Redis: &domain.RedisQueue{Address: address, Key: key, Database: database}},
		}})
	}
	for range 100 { // the same ones
		ask("jobs", 0)
		ask("jobs", 3)
	}
	ask("absent", 0)
	ask("text", 0)
	ask("jobs", 16)
	ask("jobs", 15)
	connections := func() string {
		text, err := redis.String(connection.Do("INFO", "stats"))
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(text, "total_connections_received:")
		number, _, _ := strings.Cut(after, "\r\n")
		return number
	}
	before, err := strconv.Atoi(connections())
	if err != nil {
		t.Fatal(err)
	}
	got := m.Read(acctest.Bounded(t), noon, Observation{}, questions)
	if after := connections(); after != strconv.Itoa(before+1) {
		t.Errorf("there were %d connections, and are %s", before, after)
	}
	for i, want := range []float64{3, 1} {
		for _, measured := range []autoscale.Measurement{got[i], got[198+i]} {
			if measured.Value != want || measured.Why != "" || !measured.At.Equal(noon) {
				t.Errorf("list %d is %+v, want %v", i, measured, want)
			}
		}
	}
	if got[200].Why != "" || got[200].Value != 0 || !got[200].At.Equal(noon) { // Redis keeps no empty lists
		t.Errorf("a list that is not there is %+v", got[200])
	}
	missed(t, got[201], "the Redis at "+address+`: list "text": WRONGTYPE`)
	missed(t, got[202], `list "jobs": ERR DB index is out of range`)
	if got[203].Why != "" || got[203].Value != 0 {
		t.Errorf("the list after a database that there is not is %+v", got[203])
	}

	do("CONFIG", "SET", "requirepass", "hunter2")
	missed(t, m.Read(acctest.Bounded(t), noon, Observation{}, questions)[0],
		`list "jobs": NOAUTH Authentication required`)
}

// A server that is no Redis has no lists, whatever it replies.
func TestNoRedis(t *testing.T) {
	for name, test := range map[string]struct{ answer, why string }{
		"HTTP": {
			"HTTP/1.1 400 Bad Request\r\n\r\n", `request failed: not a Redis reply to LLEN: it begins with 'H'`,
		},
		"nothing":          {"", "request failed: EOF"},
		"half an answer":   {"+OK\r\n:", "request failed"},
		"text":             {"+OK\r\n$1\r\na\r\n", "not a Redis reply to LLEN: it begins with '$'"},
		"a vast text":      {"+OK\r\n$999999999999999999\r\n", "not a Redis reply"},
		"a vast list":      {"+OK\r\n*999999999999999999\r\n", "not a Redis reply"},
		"a negative one":   {"+OK\r\n:-5\r\n", `list "jobs": invalid length -5`},
		"null":             {"+OK\r\n$-1\r\n", "not a Redis reply to LLEN: it begins with '$'"},
		"an error of both": {"-LOADING a\r\n-LOADING b\r\n", `list "jobs": LOADING a`},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				defer connection.Close()
				_, _ = connection.Read(make([]byte, 4096))
				_, _ = io.WriteString(connection, test.answer)
			}()
			missed(t, read(t, patient(&fake{}), Observation{}, Question{Source: domain.ScalingSource{
				Queue: &domain.QueueSource{Redis: &domain.RedisQueue{Address: listener.Addr().String(), Key: "jobs"}},
			}}), test.why)
		})
	}
	missed(t, read(t, patient(&fake{}), Observation{}, Question{Source: domain.ScalingSource{
		Queue: &domain.QueueSource{Redis: &domain.RedisQueue{Address: "127.0.0.1:1", Key: "jobs"}},
	}}), "the Redis at 127.0.0.1:1: request failed: dial tcp")
}
