package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const (
	// quietPause is the minimum time before entries without a change of count are stored, and quietRate bounds how many
	// bytes of them are stored per second: a Swarm keeps written data in its managers' memory for a while.
	quietPause = 30 * time.Second
	quietRate  = 1024
)

// historyKeeper stores the decisions of policies with the cluster. It is not safe for concurrent use.
type historyKeeper struct {
	items   engine.Store
	added   autoscale.History // since the last Flush
	due     time.Time
	stored  time.Time // time of the last Flush
	resting time.Duration

	archive   *autoscale.Archive // nil until it has been read
	revisions map[string]int
	// doubtful is the content of chunks whose write may or may not have succeeded.
	doubtful map[string][]byte
}

func newHistoryKeeper(items engine.Store) *historyKeeper {
	return &historyKeeper{items: items, resting: quietPause}
}

// Load reads the stored history, again if another controller may have added to it. A chunk that can't be read is an
// [autoscale.ChunkError]; the history continues without it.
func (h *historyKeeper) Load(ctx context.Context, now time.Time) error {
	found, err := h.items.List(ctx, autoscale.HistoryKind)
	if err != nil {
		return fmt.Errorf("reading the scaling history: %w", err)
	}
	h.revisions, h.doubtful = make(map[string]int, len(found)), map[string][]byte{}
	data := make(map[string][]byte, len(found))
	for _, item := range found {
		h.revisions[item.Name], data[item.Name] = item.Revision, item.Data
	}
	h.archive, err = autoscale.OpenArchive(data, now)
	return err
}

// Add adds an entry.
func (h *historyKeeper) Add(e autoscale.Entry) {
	h.added.Add(e)
	due := h.stored.Add(h.resting)
	if e.Scaled() || e.Resized != "" {
		due = e.Until
	}
	if h.due.IsZero() || due.Before(h.due) {
		h.due = due
	}
}

// Due returns when the added entries should be stored: at once after a change of count or size, and otherwise from time
// to time. It is zero if there is nothing to store.
func (h *historyKeeper) Due() time.Time { return h.due }

// Flush stores the added entries. After an error they are due again soon. The error is [engine.ErrConflict] if another
// controller has stored its own; those have to be loaded before this one continues.
func (h *historyKeeper) Flush(ctx context.Context, now time.Time) error {
	var unread error
	if h.archive == nil {
		if unread = h.Load(ctx, now); h.archive == nil {
			h.due = now.Add(afterFault)
			return unread
		}
	}
	for _, e := range h.take(now) {
		h.archive.Add(e)
	}
	put, remove, unfit := h.archive.Pack(now)
	unstored := h.store(ctx, put, remove)
	if unstored != nil {
		h.due = now.Add(afterFault)
	}
	h.resting = max(quietPause, time.Duration(h.archive.Newest())*time.Second/quietRate)
	return errors.Join(unread, unfit, unstored)
}

// take returns the entries added since the last call.
func (h *historyKeeper) take(now time.Time) []autoscale.Entry {
	added := h.added.All()
	h.added, h.due, h.stored = autoscale.History{}, time.Time{}, now
	return added
}

// store stores chunks and then removes others.
func (h *historyKeeper) store(ctx context.Context, put []autoscale.Chunk, remove []string) error {
	for _, chunk := range put {
		if err := h.put(ctx, chunk); err != nil {
			return fmt.Errorf("storing the scaling history: %w", err)
		}
		h.archive.Stored(chunk.Name)
	}
	for _, name := range remove {
		if err := h.items.Delete(ctx, chunkKey(name)); err != nil {
			return fmt.Errorf("shortening the scaling history: %w", err)
		}
		delete(h.revisions, name)
		h.archive.Removed(name)
	}
	return nil
}

func chunkKey(name string) engine.Key { return engine.Key{Kind: autoscale.HistoryKind, Name: name} }

// put stores a chunk over the revision that this controller stored last. If a failed write left that unclear,
// it reads the chunk first.
func (h *historyKeeper) put(ctx context.Context, chunk autoscale.Chunk) error {
	if former := h.doubtful[chunk.Name]; former != nil {
		found, err := h.items.Get(ctx, chunkKey(chunk.Name))
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return err
		}
		if bytes.Equal(found.Data, former) {
			h.revisions[chunk.Name] = found.Revision
		}
		delete(h.doubtful, chunk.Name)
	}
	stored, err := h.items.Put(ctx,
		engine.Item{Key: chunkKey(chunk.Name), Revision: h.revisions[chunk.Name], Data: chunk.Data})
	switch {
	case err == nil:
		h.revisions[chunk.Name] = stored.Revision
	case !errors.Is(err, engine.ErrConflict):
		h.doubtful[chunk.Name] = chunk.Data
	}
	return err
}
