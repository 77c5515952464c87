package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// Call is a call that takes a Q and returns an A.
type Call[Q, A any] struct {
	name string
	// once is set for a call that must not be repeated if it may have been carried out.
	once bool
}

// mostAsked bounds what a host reads of a request: all specifications of a large group, or the whole store.
const mostAsked = 64 << 20

// pattern is the path of a call or stream, for a server.
func pattern(name string) string { return "POST /{cluster}/" + name }

// path is the path of a call or stream about a cluster; "-" stands for none.
func path(cluster, name string) string {
	if cluster == "" {
		cluster = "-"
	}
	return "/" + cluster + "/" + name
}

// Ask makes the call to a host.
func (c Call[Q, A]) Ask(ctx context.Context, client *Client, cluster string, question Q) (answer A, err error) {
	q, err := c.Of(question)
	if err != nil {
		return answer, err
	}
	data, known, err := client.looked.answer(ctx, cluster, q)
	if !known {
		data, err = c.ask(ctx, client, cluster, q.Asked)
	}
	if _, broke := errors.AsType[*brokenError](err); broke && !c.once {
		data, err = c.ask(ctx, client, cluster, q.Asked) // over another connection
	}
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return answer, fmt.Errorf("decoding the answer of %s to %q: %w", client.name, c.name, err)
	}
	return answer, nil
}

// ask returns the encoded answer.
func (c Call[Q, A]) ask(ctx context.Context, client *Client, cluster string, asked []byte) ([]byte, error) {
	response, err := client.post(ctx, path(cluster, c.name), bytes.NewReader(asked))
	if err != nil {
		return nil, err
	}
	defer response.Close()
	data, err := bounded.ReadAll(response, mostAsked)
	if err != nil {
		err = client.failure(ctx, &brokenError{err})
	}
	return data, err
}

// Answer registers the call's handler with a server.
func (c Call[Q, A]) Answer(
	mux *http.ServeMux, answer func(ctx context.Context, cluster string, question Q) (A, error),
) {
	mux.HandleFunc(pattern(c.name), func(w http.ResponseWriter, r *http.Request) {
		var question Q
		asked, err := bounded.ReadAll(r.Body, mostAsked)
		if err == nil {
			err = json.Unmarshal(asked, &question)
		}
		var result A
		if err == nil {
			result, err = answer(r.Context(), r.PathValue("cluster"), question)
		}
		if err != nil {
			refuse(w, err)
			return
		}
		_ = json.NewEncoder(w).Encode(result) // otherwise the client is gone
	})
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	w.WriteHeader(http.StatusConflict)
	_ = json.NewEncoder(w).Encode(faultOf(err))
}

// readFault returns the error that a host answered with.
func readFault(body io.Reader) error {
	data, err := bounded.ReadAll(body, bounded.Answer)
	if err != nil {
		return err
	}
	var f fault
	if err := json.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("unexpected answer %.200q", data)
	}
	return f.err()
}
