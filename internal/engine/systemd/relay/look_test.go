package relay

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestLooking: a client that looks answers from the look, including errors, and makes all other calls. Another client
// makes all calls.
func TestLooking(t *testing.T) {
	counts := map[string]int{}
	counted, failing, other := Call[string, int]{
		name: "counted",
	}, Call[None, int]{name: "failing"}, Call[None, int]{name: "other"}
	mux := http.NewServeMux()
	counted.Answer(mux, func(_ context.Context, _, question string) (int, error) {
		counts[question]++
		return counts[question], nil
	})
	failing.Answer(mux, func(context.Context, string, None) (int, error) { return 0, engine.ErrNotFound })
	other.Answer(mux, func(context.Context, string, None) (int, error) {
		counts["other"]++
		return counts["other"], nil
	})
	looks := 0
	AnswerLook(mux, func(context.Context, string) ([]Question, error) {
		looks++
		first, err := counted.Of("first")
		second, err2 := failing.Of(None{})
		return []Question{first, second}, errors.Join(err, err2)
	})
	live := NewClient("gpu1", func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() { _ = Serve(t.Context(), theirs, mux) }()
		return ours, nil
	})
	client := live.Looking("lab")
	expect := func(what string, client *Client, cluster, question string, want int) {
		t.Helper()
		if got, err := counted.Ask(t.Context(), client, cluster, question); err != nil || got != want {
			t.Errorf("%s: got %d (%v), want %d", what, got, err, want)
		}
	}
	expect("the first call", client, "lab", "first", 1)
	expect("the same again", client, "lab", "first", 1)
	expect("another question", client, "lab", "second", 1)
	expect("another question again", client, "lab", "second", 2)
	expect("of another cluster", client, "rack", "first", 2)
	expect("past the look", live, "lab", "first", 3)
	if _, err := failing.Ask(t.Context(), client, "lab", None{}); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("an error of the look became %v", err)
	}
	if got, err := other.Ask(t.Context(), client, "lab", None{}); err != nil || got != 1 {
		t.Errorf("a call that was not among them: got %d (%v)", got, err)
	}
	if looks != 1 {
		t.Errorf("the host was looked at %d times", looks)
	}
}

// TestLookingInVain: a host without a look, as it is not in the cluster yet, gets call by call.
func TestLookingInVain(t *testing.T) {
	call, asked := Call[None, int]{name: "again"}, 0
	mux := http.NewServeMux()
	call.Answer(mux, func(context.Context, string, None) (int, error) { asked++; return asked, nil })
	AnswerLook(mux, func(context.Context, string) ([]Question, error) { return nil, engine.ErrNotFound })
	client := NewClient("gpu1", func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() { _ = Serve(t.Context(), theirs, mux) }()
		return ours, nil
	}).Looking("lab")
	for want := 1; want <= 2; want++ {
		if got, err := call.Ask(t.Context(), client, "lab", None{}); err != nil || got != want {
			t.Errorf("got %d (%v), want %d", got, err, want)
		}
	}
}
