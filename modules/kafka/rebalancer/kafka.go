package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafka is the cluster to keep in balance.
type kafka struct {
	client *kgo.Client
	admin  *kadm.Client
}

func newKafka(client *kgo.Client) *kafka { return &kafka{client, kadm.NewClient(client)} }

// state reads the state of the cluster.
func (k *kafka) state(ctx context.Context) (state, error) {
	s := state{brokers: map[int32]bool{}, partitions: map[partition]held{}, racks: map[int32]string{}}
	ask := kmsg.NewPtrDescribeClusterRequest()
	ask.IncludeFencedBrokers = true
	cluster, err := ask.RequestWith(ctx, k.client)
	if err == nil {
		err = kerr.ErrorForCode(cluster.ErrorCode)
	}
	if err != nil {
		return state{}, fmt.Errorf("listing brokers: %w", err)
	}
	for _, b := range cluster.Brokers {
		s.brokers[b.NodeID] = !b.IsFenced
		if b.Rack != nil {
			s.racks[b.NodeID] = *b.Rack
		}
	}
	// Reassignments are read before the partitions: if one ends in between, the replicas that it removes are simply
	// missing.
	moving, err := kmsg.NewPtrListPartitionReassignmentsRequest().RequestWith(ctx, k.client)
	if err == nil {
		err = kerr.ErrorForCode(moving.ErrorCode)
	}
	if err != nil {
		return state{}, fmt.Errorf("listing reassignments: %w", err)
	}
	// kadm's metadata may be some seconds old.
	metadata, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, k.client)
	if err != nil {
		return state{}, fmt.Errorf("listing topics: %w", err)
	}
	for _, topic := range metadata.Topics {
		if err := kerr.ErrorForCode(topic.ErrorCode); errors.Is(err, kerr.UnknownTopicOrPartition) {
			continue // just deleted
		} else if err != nil || topic.Topic == nil {
			return state{}, fmt.Errorf("describing a topic: %w", err)
		}
		for _, p := range topic.Partitions {
			if len(p.Replicas) == 0 {
				return state{}, fmt.Errorf("partition %s/%d has no replicas", *topic.Topic, p.Partition)
			}
			s.partitions[partition{*topic.Topic, p.Partition}] = held{
				replicas: p.Replicas, inSync: p.ISR, leader: p.Leader,
			}
		}
	}
	for _, topic := range moving.Topics {
		for _, p := range topic.Partitions {
			if h, ok := s.partitions[partition{topic.Topic, p.Partition}]; ok {
				h.adding, h.removing = p.AddingReplicas, p.RemovingReplicas
				h.replicas = without(h.replicas, h.removing)
				s.partitions[partition{topic.Topic, p.Partition}] = h
			}
		}
	}
	return s, nil
}

// reassign starts to move a partition. It lets Kafka refuse a different number of replicas, so that a broker's outdated
// view of an earlier move does no harm.
func (k *kafka) reassign(ctx context.Context, m move) error {
	ask, topic := kmsg.NewPtrAlterPartitionAssignmentsRequest(), kmsg.NewAlterPartitionAssignmentsRequestTopic()
	p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	p.Partition, p.Replicas = m.partition.number, m.to
	topic.Topic, topic.Partitions = m.partition.topic, append(topic.Partitions, p)
	ask.AllowReplicationFactorChange, ask.Topics = false, append(ask.Topics, topic)
	answer, err := ask.RequestWith(ctx, k.client)
	if err == nil {
		err = kerr.ErrorForCode(answer.ErrorCode)
	}
	if err == nil {
		for _, t := range answer.Topics {
			for _, p := range t.Partitions {
				err = errors.Join(err, kerr.ErrorForCode(p.ErrorCode))
			}
		}
	}
	if err != nil {
		return fmt.Errorf("moving partition %s to %v: %w", m.partition, m.to, err)
	}
	return nil
}

// elect makes the preferred leaders of partitions their leaders.
func (k *kafka) elect(ctx context.Context, partitions []partition) error {
	var set kadm.TopicsSet
	for _, p := range partitions {
		set.Add(p.topic, p.number)
	}
	results, err := k.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, set)
	for _, topic := range results {
		for _, p := range topic {
			if p.Err != nil && !errors.Is(p.Err, kerr.ElectionNotNeeded) {
				err = errors.Join(err, fmt.Errorf("%s/%d: %w", p.Topic, p.Partition, p.Err))
			}
		}
	}
	if err != nil {
		return fmt.Errorf("electing leaders: %w", err)
	}
	return nil
}

// unregister makes the cluster forget a broker.
func (k *kafka) unregister(ctx context.Context, broker int32) error {
	ask := kmsg.NewPtrUnregisterBrokerRequest()
	ask.BrokerID = broker
	answer, err := ask.RequestWith(ctx, k.client)
	if err == nil {
		err = kerr.ErrorForCode(answer.ErrorCode)
	}
	if err != nil && !errors.Is(err, kerr.BrokerIDNotRegistered) {
		return fmt.Errorf("unregistering broker %d: %w", broker, err)
	}
	return nil
}

// size returns the size of a partition on some brokers in bytes, as far as they answer.
func (k *kafka) size(ctx context.Context, p partition, brokers []int32) (bytes int64, err error) {
	var set kadm.TopicsSet
	set.Add(p.topic, p.number)
	for _, b := range brokers {
		dirs, failed := k.admin.DescribeBrokerLogDirs(ctx, b, set)
		bytes += dirs.Size()
		err = errors.Join(err, failed)
	}
	return bytes, err
}
