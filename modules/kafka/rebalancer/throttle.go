package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The settings that throttle replication, as used by kafka-reassign-partitions: rates for each broker's traffic, and
// the replicas of a topic to which they apply.
var (
	rates     = []string{"leader.replication.throttled.rate", "follower.replication.throttled.rate"}
	throttled = []string{"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}
)

// throttledReplicas returns the values of [throttled] for a move: the senders and the receivers.
func throttledReplicas(m move) [2]string {
	list := func(brokers []int32) string {
		var replicas []string
		for _, b := range brokers {
			replicas = append(replicas, fmt.Sprintf("%d:%d", m.partition.number, b))
		}
		return strings.Join(replicas, ",")
	}
	return [2]string{list(m.from), list(m.adds())}
}

// throttle limits the traffic of each broker for a move, in bytes per second sent and received.
func (k *kafka) throttle(ctx context.Context, brokers []int32, m move, rate int64) error {
	if len(m.adds()) == 0 || rate == 0 {
		return nil
	}
	var limits, replicas []kadm.AlterConfig
	for i, value := range throttledReplicas(m) {
		limits = append(limits, kadm.AlterConfig{Name: rates[i], Value: new(strconv.FormatInt(rate, 10))})
		replicas = append(replicas, kadm.AlterConfig{Name: throttled[i], Value: &value})
	}
	done, err := k.admin.AlterBrokerConfigs(ctx, limits, brokers...)
	if err == nil {
		err = altered(done)
	}
	if err == nil {
		if done, err = k.admin.AlterTopicConfigs(ctx, replicas, m.partition.topic); err == nil {
			err = altered(done)
		}
	}
	if err != nil {
		return fmt.Errorf("throttling replication: %w", err)
	}
	return nil
}

// unthrottle removes all throttles from topics and from alive brokers, whoever set them.
func (k *kafka) unthrottle(ctx context.Context, s state) error {
	var topics []string
	for p := range s.partitions {
		topics = append(topics, p.topic)
	}
	slices.Sort(topics)
	if topics = slices.Compact(topics); len(topics) > 0 {
		configs, err := k.admin.DescribeTopicConfigs(ctx, topics...)
		if err != nil {
			return fmt.Errorf("reading the configuration of topics: %w", err)
		}
		for _, topic := range configs {
			if remove := set(topic, throttled); len(remove) > 0 {
				done, err := k.admin.AlterTopicConfigs(ctx, remove, topic.Name)
				if err = errors.Join(err, altered(done)); err != nil {
					return fmt.Errorf("removing the throttle of topic %s: %w", topic.Name, err)
				}
			}
		}
	}
	alive := s.alive()
	if len(alive) == 0 {
		return nil
	}
	configs, err := k.admin.DescribeBrokerConfigs(ctx, alive...)
	if err != nil {
		return fmt.Errorf("reading the configuration of brokers: %w", err)
	}
	for _, broker := range configs {
		if remove := set(broker, rates); len(remove) > 0 {
			id, err := strconv.ParseInt(broker.Name, 10, 32)
			if err != nil {
				return fmt.Errorf("invalid broker ID %q: %w", broker.Name, err)
			}
			done, err := k.admin.AlterBrokerConfigs(ctx, remove, int32(id))
			if err = errors.Join(err, altered(done)); err != nil {
				return fmt.Errorf("removing the throttle of broker %d: %w", id, err)
			}
		}
	}
	return nil
}

// set returns the changes that remove those of the named settings that a topic or broker has.
func set(of kadm.ResourceConfig, names []string) (remove []kadm.AlterConfig) {
	for _, config := range of.Configs {
		own := []kmsg.ConfigSource{kmsg.ConfigSourceDynamicTopicConfig, kmsg.ConfigSourceDynamicBrokerConfig}
		if slices.Contains(own, config.Source) && slices.Contains(names, config.Key) {
			remove = append(remove, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: config.Key})
		}
	}
	return remove
}

func altered(all kadm.AlterConfigsResponses) (err error) {
	for _, one := range all {
		if one.Err != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w %s", one.Name, one.Err, one.ErrMessage))
		}
	}
	return err
}
