package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/trainyard/terraform-provider-trainyard/modules/kafka/internal/serve"
)

const (
	// tickPause is how often producers check how many records are due.
	tickPause  = 10 * time.Millisecond
	drainLimit = 2 * time.Minute
)

// load sends records, reads them back, and accounts for both.
type load struct {
	bootstrap string
	demand    demand
	topic     topic
	producers int
	run       uint64
	padding   []byte
	duration  time.Duration
	// patience limits the wait at the end for all acknowledgements, and then for reading everything.
	patience time.Duration
	// begun is when the first record was due.
	begun atomic.Pointer[time.Time]

	ledger   *ledger
	timeline *timeline
}

func newLoad(bootstrap string, d demand, t topic, producers, size int, duration time.Duration) *load {
	padding := make([]byte, max(0, size-header))
	random := rand.New(rand.NewPCG(d.seed, 0)) //nolint:gosec // not a secret
	for i := range padding {
		padding[i] = byte(random.Uint32())
	}
	return &load{
		bootstrap: bootstrap, demand: d, topic: t, producers: producers, padding: padding,
		duration: duration, patience: drainLimit,
		run: rand.Uint64(), ledger: newLedger(), timeline: newTimeline(), //nolint:gosec // not a secret
	}
}

// since returns the time since the first record was due; negative before that.
func (l *load) since(now time.Time) time.Duration {
	if begun := l.begun.Load(); begun != nil {
		return now.Sub(*begun)
	}
	return -1
}

// drive sends the demand until ctx is done, and returns once everything acknowledged has been read, or can't be.
func (l *load) drive(ctx context.Context) error {
	reader, err := serve.Client(l.bootstrap,
		kgo.ClientID("trainyard-load-consumer"), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return err
	}
	defer reader.Close()
	begin, err := l.topic.open(ctx, reader)
	if err != nil {
		return err
	}
	at := map[int32]kgo.Offset{}
	for partition, end := range begin {
		at[partition] = kgo.NewOffset().At(end)
	}
	reader.AddConsumePartitions(map[string]map[int32]kgo.Offset{l.topic.name: at})

	// When the producers end, the consumer continues, since it has to read everything that they sent.
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	read := newProgress(begin)
	var consumer, producers sync.WaitGroup
	consumer.Go(func() { l.consume(reading, reader, read) })
	failed := make(chan error, l.producers)
	begun := time.Now()
	l.begun.Store(&begun)
	if l.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.duration)
		defer cancel()
	}
	for i := range l.producers {
		producers.Go(func() { failed <- l.produce(ctx, uint32(i), begun) }) //nolint:gosec // checked by flags
	}
	producers.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	defer func() {
		stop()
		consumer.Wait()
	}()
	return l.drain(reading, reader, read)
}

// drain waits until the consumer has reached the ends of the partitions.
func (l *load) drain(ctx context.Context, reader *kgo.Client, read *progress) error {
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	for {
		offsets, err := kadm.NewClient(reader).ListEndOffsets(ctx, l.topic.name)
		if err == nil {
			err = offsets.Error()
		}
		if err == nil {
			ends := map[int32]int64{}
			for partition, end := range offsets[l.topic.name] {
				ends[partition] = end.Offset
			}
			if err = read.reach(ctx, ends); err == nil {
				return nil
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("reading all records timed out after %s: %w", l.patience, err)
		}
		slog.Warn("can't read all records yet; retrying", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

// produce sends one producer's share of the demand until ctx is done, and returns once all of it has been acknowledged
// or has failed. It uses the partitions in turn.
func (l *load) produce(ctx context.Context, id uint32, begun time.Time) error {
	client, err := serve.Client(l.bootstrap, kgo.ClientID(fmt.Sprintf("trainyard-load-producer-%d", id)),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0),
		kgo.UnknownTopicRetries(-1), kgo.MaxBufferedRecords(100_000))
	if err != nil {
		return err
	}
	defer client.Close()
	due, sent, last := 0.0, 0, begun
	tick := time.NewTicker(tickPause)
	defer tick.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		// Records to be sent between two ticks count as due at the earlier one, so that delays are not hidden.
		due += l.demand.at(last.Add(now.Sub(last)/2).Sub(begun)) * now.Sub(last).Seconds() / float64(l.producers)
		for ; float64(sent+1) <= due && ctx.Err() == nil; sent++ {
			partition := (sent + int(id)) % l.topic.partitions
			l.send(ctx, client, stream{id, int32(partition)}, last) //nolint:gosec // checked by flags
		}
		last = now
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	flushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.patience)
	defer cancel()
	if err := client.Flush(flushing); err != nil {
		slog.Warn("not all records were acknowledged", "error", err)
		return client.AbortBufferedRecords(context.WithoutCancel(ctx))
	}
	return nil
}

// send sends the next record of a stream, which was due at the given time.
func (l *load) send(ctx context.Context, client *kgo.Client, s stream, due time.Time) {
	number := l.ledger.produce(s)
	value := encode(l.run, s.producer, number, l.padding)
	record := &kgo.Record{Topic: l.topic.name, Partition: s.partition, Value: value}
	// Ending the run must not cancel what has been sent.
	client.Produce(context.WithoutCancel(ctx), record, func(_ *kgo.Record, err error) {
		l.ledger.acknowledge(s, number, err != nil)
		if err != nil {
			slog.Warn("record not acknowledged", "partition", s.partition, "error", err)
			return
		}
		l.timeline.acknowledged(time.Since(due))
	})
}

// consume reads records until ctx is done.
func (l *load) consume(ctx context.Context, client *kgo.Client, read *progress) {
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return
		}
		fetches.EachError(func(_ string, partition int32, err error) {
			if !errors.Is(err, context.Canceled) {
				slog.Warn("can't read records", "partition", partition, "error", err)
			}
		})
		fetches.EachRecord(func(r *kgo.Record) {
			if producer, number, ours := decode(l.run, r.Value, l.padding); ours {
				l.ledger.consume(stream{producer, r.Partition}, number)
			}
			read.note(r.Partition, r.Offset+1)
		})
	}
}
