package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// look requests everything that plans ask a host, at once.
var look = Call[None, []answered]{name: "look"}

// Question is a call with its parameter.
type Question struct {
	Call  string          `json:"call"`
	Asked json.RawMessage `json:"asked"`
}

// Of returns the call with a parameter.
func (c Call[Q, A]) Of(question Q) (Question, error) {
	asked, err := json.Marshal(question)
	return Question{c.name, asked}, err
}

// key identifies a question.
func (q Question) key() string { return q.Call + " " + string(q.Asked) }

// answered is a question with its answer.
type answered struct {
	Question
	Answer json.RawMessage `json:"answer,omitempty"`
	Fault  *fault          `json:"fault,omitempty"`
}

// Looking returns a client over the same connection for the many calls of a plan: its first call requests everything
// that plans ask every host, as one request, and later calls are answered from that. All other calls are made as usual.
func (c *Client) Looking(cluster string) *Client {
	return &Client{link: c.link,
		looked: &looked{cluster: cluster, answers: engine.Once(func(ctx context.Context) (map[string]answered, error) {
			answers, err := look.Ask(ctx, c, cluster, None{})
			if err != nil {
				return nil, nil //nolint:nilerr,nilnil // each call gets the error itself
			}
			byKey := make(map[string]answered, len(answers))
			for _, t := range answers {
				byKey[t.key()] = t
			}
			return byKey, nil
		})}}
}

// looked are the answers from a host's look.
type looked struct {
	cluster string
	answers func(ctx context.Context) (map[string]answered, error)
}

// answer returns the answer to a question about a cluster from the look; known is false if that did not include it.
func (l *looked) answer(ctx context.Context, cluster string, q Question) (answer []byte, known bool, err error) {
	if l == nil || cluster != l.cluster {
		return nil, false, nil
	}
	answers, err := l.answers(ctx)
	if err != nil {
		return nil, true, err
	}
	t, known := answers[q.key()]
	if t.Fault != nil {
		err = t.Fault.err()
	}
	return t.Answer, known, err
}

// AnswerLook registers the handler of [Client.Looking] with a server. The host decides which questions plans ask about
// a cluster.
func AnswerLook(mux *http.ServeMux, questions func(ctx context.Context, cluster string) ([]Question, error)) {
	look.Answer(mux, func(ctx context.Context, cluster string, _ None) ([]answered, error) {
		asked, err := questions(ctx, cluster)
		if err != nil {
			return nil, err
		}
		answers := make([]answered, len(asked))
		var all sync.WaitGroup
		for i, q := range asked {
			all.Go(func() { answers[i] = answerTo(ctx, mux, cluster, q) })
		}
		all.Wait()
		return answers, ctx.Err()
	})
}

// answerTo has a server answer a question as if it were a request of its own.
func answerTo(ctx context.Context, mux *http.ServeMux, cluster string, q Question) answered {
	t := answered{Question: q}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://host"+path(cluster, q.Call),
		bytes.NewReader(q.Asked))
	if err == nil {
		w := &kept{header: http.Header{}}
		mux.ServeHTTP(w, request)
		if w.status != 0 {
			err = readFault(&w.body)
		}
		t.Answer = w.body.Bytes()
	}
	if err != nil {
		t.Answer, t.Fault = nil, new(faultOf(err))
	}
	return t
}

// kept is a response that is kept in memory.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *kept) Header() http.Header { return k.header }

func (k *kept) Write(p []byte) (int, error) { return k.body.Write(p) }

func (k *kept) WriteHeader(status int) { k.status = status }
