package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// topic is the topic that the load uses.
type topic struct {
	name       string
	partitions int
	factor     int
}

// retryPause is the pause before brokers that aren't up yet are asked again.
const retryPause = time.Second

// open creates a topic unless it exists, and returns the offset at which each partition ends. It waits until there are
// enough brokers.
func (t topic) open(ctx context.Context, client *kgo.Client) (map[int32]int64, error) {
	admin := kadm.NewClient(client)
	for {
		ends, err := t.try(ctx, admin)
		switch {
		case err == nil:
			return ends, nil
		case ctx.Err() != nil:
			return nil, errors.Join(ctx.Err(), err)
		case final(err):
			return nil, err
		}
		slog.Info("waiting for Kafka", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

// final reports whether an error is permanent, whatever the number of brokers.
func final(err error) bool {
	if _, shape := errors.AsType[*shapeError](err); shape {
		return true
	}
	_, fromKafka := errors.AsType[*kerr.Error](err)
	return fromKafka && !kerr.IsRetriable(err) && !errors.Is(err, kerr.InvalidReplicationFactor)
}

func (t topic) try(ctx context.Context, admin *kadm.Client) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	// Acknowledgements need all replicas but one, so that the topic tolerates the loss of exactly one broker.
	inSync := strconv.Itoa(max(1, t.factor-1))
	configs := map[string]*string{"min.insync.replicas": &inSync}
	_, err := admin.CreateTopic(ctx, int32(t.partitions), int16(t.factor), configs, t.name) //nolint:gosec // checked by flags
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return nil, fmt.Errorf("creating topic %s: %w", t.name, err)
	}
	offsets, err := admin.ListEndOffsets(ctx, t.name)
	if err == nil {
		err = offsets.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("reading topic %s: %w", t.name, err)
	}
	ends := map[int32]int64{}
	for partition, end := range offsets[t.name] {
		ends[partition] = end.Offset
	}
	if len(ends) != t.partitions {
		return nil, &shapeError{t, len(ends)}
	}
	return ends, nil
}

// shapeError says that the topic exists with a different number of partitions.
type shapeError struct {
	topic topic
	has   int
}

func (e *shapeError) Error() string {
	return fmt.Sprintf("-partitions is %d: topic %s has %d partitions", e.topic.partitions, e.topic.name, e.has)
}
