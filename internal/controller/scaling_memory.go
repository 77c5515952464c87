package controller

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"strconv"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

const (
	// memoryRecord begins the names of the records that hold what policies remember, and memoryShards is the number of them: each holds some hundred
	// policies.
	memoryRecord = "scaling-state-"
	memoryShards = 8
	// keepEvery is how often it is stored where no count changes.
	keepEvery = 30 * time.Second
)

// memory is what policies remember, as it is kept with the cluster.
type memory struct {
	records engine.Records
	// shards are the records as they were written or read last; whoever finds another one there is no longer the one that decides.
	shards [memoryShards]engine.Record
	kept   time.Time
}

// load reads what policies remember, by their keys.
func (m *memory) load(ctx context.Context) (map[string]autoscale.State, error) {
	remembered := map[string]autoscale.State{}
	records, err := m.records.Records(ctx, memoryRecord)
	if err != nil {
		return nil, fmt.Errorf("what autoscaling policies remember can't be read: %w", err)
	}
	for name, record := range records {
		shard, err := strconv.Atoi(name[len(memoryRecord):])
		if err != nil || shard < 0 || shard >= memoryShards {
			return nil, &engine.CorruptError{Where: "record " + name, Err: fmt.Errorf("its number is not one from 0 to %d", memoryShards-1)}
		}
		var states map[string]autoscale.State
		if err := unpack(record.Data, &states); err != nil {
			return nil, &engine.CorruptError{Where: "record " + name, Err: err}
		}
		maps.Copy(remembered, states)
		m.shards[shard] = record
	}
	return remembered, nil
}

// store writes what policies remember, as far as that has changed.
func (m *memory) store(ctx context.Context, followed map[string]*followed, now time.Time) error {
	var shards [memoryShards]map[string]autoscale.State
	for key, f := range followed {
		shard := hashOf(key) % memoryShards
		if shards[shard] == nil {
			shards[shard] = map[string]autoscale.State{}
		}
		shards[shard][key] = f.state
	}
	for i, states := range shards {
		if states == nil && m.shards[i].Revision == 0 {
			continue
		}
		data, err := pack(states)
		if err != nil {
			return err
		}
		record := m.shards[i]
		if bytes.Equal(data, record.Data) {
			continue
		}
		record.Name, record.Data = memoryRecord+strconv.Itoa(i), data
		if m.shards[i], err = m.records.PutRecord(ctx, record); err != nil {
			return fmt.Errorf("what autoscaling policies remember can't be stored: %w", err)
		}
	}
	m.kept = now
	return nil
}

// keep stores what must not be forgotten: at once where a count has changed, and from time to time else.
func (s *scaler) keep(ctx context.Context, now time.Time) error {
	if due := s.history.Due(); s.changed || !due.IsZero() && !due.After(now) {
		if err := s.history.Flush(ctx, now); err != nil {
			return err
		}
	}
	if s.changed || now.Sub(s.memory.kept) >= keepEvery {
		if err := s.memory.store(ctx, s.followed, now); err != nil {
			return err
		}
	}
	s.changed = false
	return nil
}

// lastWords is how long a controller that is told to end may take to store what it knows.
const lastWords = 3 * time.Second

// keepAtEnd stores what is known at the end, as far as that is possible: whoever has taken over meanwhile has written its own.
func (s *scaler) keepAtEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	s.changed = true
	if err := s.keep(ctx, time.Now()); err != nil && !errors.Is(err, engine.ErrConflict) {
		s.log.Warn("what the autoscaling policies remember of the last seconds is lost", "error", err)
	}
}

// pack returns the compressed JSON of a value, always the same of the same.
func pack(value any) ([]byte, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// maxUnpacked bounds what is read of compressed JSON.
const maxUnpacked = 64 << 20

// unpack reads what pack has written.
func unpack(data []byte, value any) error {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return json.NewDecoder(io.LimitReader(r, maxUnpacked)).Decode(value)
}

// hashOf spreads policies evenly.
func hashOf(key string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // which never fails
	return h.Sum32()
}
