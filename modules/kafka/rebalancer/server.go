package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/modules/kafka/internal/serve"
)

// answerLimit is the timeout for Kafka's answers that a response depends on.
const answerLimit = 20 * time.Second

// The hooks' names.
const (
	beforeRemoval = "before_removal"
	afterAddition = "after_addition"
)

// hook is the request body of an autoscaling policy's hook.
type hook struct {
	ID      string   `json:"id"`
	Hook    string   `json:"hook"`
	Group   string   `json:"group"`
	Role    string   `json:"role"`
	From    int      `json:"from"`
	To      int      `json:"to"`
	Members []string `json:"members"`
}

// leaves reports whether the members are about to leave.
func (h hook) leaves() bool { return h.Hook == beforeRemoval }

// most is the maximum number of members in a hook's request.
const most = 10_000

// brokers returns the broker IDs of a hook's members: the index at the end of their names, <group>-<role>-<index>.
func (h hook) brokers(role, want string) ([]int32, error) {
	refuse := func(format string, args ...any) ([]int32, error) {
		return nil, serve.Problemf(http.StatusBadRequest, format, args...)
	}
	switch {
	case h.ID == "" || len(h.ID) > 200:
		return refuse("id must have 1 to 200 characters, got %.200q", h.ID)
	case h.Hook != want:
		return refuse("hook must be %s here, got %.200q", want, h.Hook)
	case h.Role != role:
		return refuse("role is %.200q: brokers are the members of role %s", h.Role, role)
	case h.From < 0 || h.To < 0 || h.From > most || h.To > most:
		return refuse("from and to must be 0 to %d, got %d and %d", most, h.From, h.To)
	case len(h.Members) > most:
		return refuse("at most %d members are allowed, got %d", most, len(h.Members))
	case h.leaves() && len(h.Members) == 0:
		return refuse("members is empty: it must name the brokers to remove")
	case h.To == 0 && len(h.Members) == 0:
		return refuse("it must have to, the new number of brokers, or members, the names of those that were added")
	}
	var brokers []int32
	for _, member := range h.Members {
		index, ok := strings.CutPrefix(member, h.Group+"-"+role+"-")
		id, err := strconv.ParseUint(index, 10, 31)
		if !ok || err != nil {
			return refuse("member %.200q must have a name like %s-%s-0", member, h.Group, role)
		}
		brokers = append(brokers, int32(id)) //nolint:gosec // has 31 bits
	}
	return brokers, nil
}

// handler serves the hooks and the cluster's status.
func (r *rebalancer) handler(role string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /leaving",
		func(w http.ResponseWriter, q *http.Request) { r.handle(w, q, role, beforeRemoval) })
	mux.HandleFunc("POST /joined", func(w http.ResponseWriter, q *http.Request) { r.handle(w, q, role, afterAddition) })
	mux.HandleFunc("GET /changes/{id}", func(w http.ResponseWriter, q *http.Request) {
		c, known := r.look(q.PathValue("id"))
		switch {
		case !known:
			serve.Fail(w, serve.Problemf(http.StatusNotFound, "no change with this ID"))
		case c.failed != nil:
			serve.Fail(w, c.failed)
		case c.done:
			w.Header().Set("Location", "/status")
			w.WriteHeader(http.StatusSeeOther)
		default:
			accept(w, c)
		}
	})
	mux.HandleFunc("DELETE /changes/{id}", func(w http.ResponseWriter, q *http.Request) {
		r.callOff(q.PathValue("id"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, q *http.Request) {
		ctx, cancel := context.WithTimeout(q.Context(), answerLimit)
		defer cancel()
		s, err := r.kafka.state(ctx)
		if err != nil {
			serve.Fail(w, err)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		serve.JSON(w, http.StatusOK, statusOf(s, r.moved))
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return mux
}

// handle answers a hook's request.
func (r *rebalancer) handle(w http.ResponseWriter, q *http.Request, role, want string) {
	body, err := bounded.ReadAll(q.Body, bounded.Answer)
	if _, tooMuch := errors.AsType[*bounded.Error](err); tooMuch {
		serve.Fail(w, serve.Problemf(http.StatusRequestEntityTooLarge, "the request has %v", err))
		return
	}
	var h hook
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(body)).Decode(&h)
	}
	if err != nil {
		serve.Fail(w, serve.Problemf(http.StatusBadRequest, "invalid request: %v", err))
		return
	}
	brokers, err := h.brokers(role, want)
	ctx, cancel := context.WithTimeout(q.Context(), answerLimit)
	defer cancel()
	if err == nil {
		err = r.start(ctx, h, brokers)
	}
	if err != nil {
		serve.Fail(w, err)
		return
	}
	c, _ := r.look(h.ID)
	w.Header().Set("Location", "/changes/"+url.PathEscape(h.ID))
	accept(w, c)
}

// accept answers that a change is in progress.
func accept(w http.ResponseWriter, c change) {
	w.Header().Set("Retry-After", "2")
	serve.JSON(w, http.StatusAccepted, map[string]string{"progress": c.progress()})
}
