package controller

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/meter"
)

// memoryKind is the kind of the shards: items that each hold the state of a share of the policies. They are
// named by numbers from 0.
var memoryKind = domain.Kind{Name: "scaling-state", Noun: "part of the autoscaling state", MaxBytes: 400_000}

const (
	// leastShards is the initial number of shards, enough for some hundred policies. It doubles whenever a shard would
	// exceed the size limit, up to mostShards.
	leastShards = 8
	mostShards  = 1024
	// keepEvery is how often they are stored if no count changes.
	keepEvery = 30 * time.Second
)

// remembered is the stored state of the policy with this ID.
type remembered struct {
	autoscale.State

	ID      string                  `json:"id,omitempty"`
	Windows map[string]meter.Window `json:"windows,omitempty"`
}

// memory is the state of the policies as stored with the cluster.
type memory struct {
	items engine.Store
	// shards are the items as last written or read; a conflict means that another controller is in charge. Their number
	// is leastShards times a power of two.
	shards []engine.Item
	kept   time.Time
}

func newMemory(items engine.Store) *memory {
	return &memory{items: items, shards: make([]engine.Item, leastShards)}
}

// grow doubles the number of shards.
func (m *memory) grow() { m.shards = append(m.shards, make([]engine.Item, len(m.shards))...) }

func shardKey(shard int) engine.Key { return engine.Key{Kind: memoryKind, Name: strconv.Itoa(shard)} }

// load reads the state of the policies, by key. Items that can't be read are reported in unread and skipped,
// and store rewrites them.
func (m *memory) load(ctx context.Context) (known map[string]remembered, unread, err error) {
	items, err := m.items.List(ctx, memoryKind)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the autoscaling state: %w", err)
	}
	for _, item := range items {
		shard, err := strconv.Atoi(item.Name)
		if err != nil || shard < 0 || shard >= mostShards || item.Key != shardKey(shard) {
			unread = errors.Join(unread,
				fmt.Errorf("%s: its name is not a number from 0 to %d", item.Key, mostShards-1))
			continue
		}
		for shard >= len(m.shards) {
			m.grow()
		}
		m.shards[shard] = item
	}
	known = map[string]remembered{}
	for _, item := range m.shards {
		if item.Revision == 0 {
			continue
		}
		var states map[string]remembered
		if err := unpack(item.Data, &states); err != nil {
			unread = errors.Join(unread, fmt.Errorf("%s: %w", item.Key, err))
			continue
		}
		maps.Copy(known, states) // a policy in two of them was moved to the later one
	}
	return known, unread, nil
}

// store writes the shards that have changed. If one can't be written, the others are, except those from which
// policies were moved to it.
func (m *memory) store(ctx context.Context, followed map[string]*followed, now time.Time) error {
	packed, err := m.pack(followed)
	if err != nil {
		return err
	}
	var failed error
	for first := range leastShards {
		for i := len(packed) - leastShards + first; i >= 0; i -= leastShards {
			if err := m.put(ctx, i, packed[i]); errors.Is(err, engine.ErrConflict) {
				return err
			} else if err != nil {
				failed = errors.Join(failed, err)
				break
			}
		}
	}
	if failed == nil {
		m.kept = now
	}
	return failed
}

// pack returns the content of each shard, with as many shards as it takes for all to fit; nil for a shard that has no
// policy and never had one.
func (m *memory) pack(followed map[string]*followed) ([][]byte, error) {
	for {
		shares := make([]map[string]remembered, len(m.shards))
		for key, f := range followed {
			shard := hashOf(key) % uint32(len(shares)) //nolint:gosec // at most mostShards
			if shares[shard] == nil {
				shares[shard] = map[string]remembered{}
			}
			shares[shard][key] = remembered{f.state, f.document.ID, f.windows}
		}
		packed, largest := make([][]byte, len(shares)), 0
		for i, states := range shares {
			if states == nil && m.shards[i].Revision == 0 {
				continue
			}
			var err error
			if packed[i], err = pack(states); err != nil {
				return nil, err
			}
			largest = max(largest, len(packed[i]))
		}
		if largest <= memoryKind.MaxBytes || len(shares) == mostShards {
			return packed, nil
		}
		m.grow()
	}
}

// put writes a shard unless it is unchanged.
func (m *memory) put(ctx context.Context, shard int, data []byte) error {
	item := m.shards[shard]
	if bytes.Equal(data, item.Data) {
		return nil
	}
	item.Key, item.Data = shardKey(shard), data
	stored, err := m.items.Put(ctx, item)
	if err != nil {
		return fmt.Errorf("storing the autoscaling state: %w", err)
	}
	m.shards[shard] = stored
	return nil
}

// keep stores the history and the state: at once after a change of count, and otherwise from time to time.
func (s *scaler) keep(ctx context.Context, now time.Time) error {
	var unkept error
	if due := s.history.Due(); s.changed || !due.IsZero() && !due.After(now) {
		if unkept = s.history.Flush(ctx, now); errors.Is(unkept, engine.ErrConflict) {
			return unkept
		}
	}
	if s.changed || now.Sub(s.memory.kept) >= keepEvery {
		for _, f := range s.followed {
			if !f.idle {
				f.windows = s.meter.Windows(f.questions)
			}
		}
		unkept = errors.Join(unkept, s.memory.store(ctx, s.followed, now))
	}
	s.changed = s.changed && unkept != nil
	return unkept
}

// lastWords is how long a controller that ends may take to store its state.
const lastWords = 3 * time.Second

// keepAtEnd stores the state at the end. It fails silently if another controller has taken over,
// which has stored its own.
func (s *scaler) keepAtEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	s.changed = true
	if err := s.keep(ctx, time.Now()); err != nil && !errors.Is(err, engine.ErrConflict) {
		s.log.Warn("the autoscaling state of the last seconds is lost", "error", err)
	}
}

// pack returns a value as compressed JSON, deterministically.
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

// unpack reads what pack has written.
func unpack(data []byte, value any) error {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return json.NewDecoder(bounded.Reader(r, bounded.Unpacked)).Decode(value)
}

// hashOf spreads policies evenly.
func hashOf(key string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	return h.Sum32()
}
