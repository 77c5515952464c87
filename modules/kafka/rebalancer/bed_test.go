package main

import (
	"fmt"
	"maps"
	"net"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
	"github.com/trainyard/terraform-provider-trainyard/modules/kafka/internal/serve"
)

// bed is a Kafka cluster in this process that speaks Kafka's protocol: kfake handles connections, and the bed adds what
// kfake lacks: slow reassignments, fenced brokers, and throttles.
type bed struct {
	t       *testing.T
	cluster *kfake.Cluster

	mu         sync.Mutex
	brokers    map[int32]bool
	racks      map[int32]string
	partitions map[partition]held
	configs    map[string]map[string]string // by "topic a" or "broker 0"
	// stuck keeps reassignments from completing.
	stuck bool
	// late are ended reassignments that the metadata still shows for lateTimes more requests, as from a broker that
	// hasn't heard of their end.
	late      map[partition]held
	lateTimes int
	// doubt is the rebalancers' doubt.
	doubt time.Duration
	// begun counts reassignments; atOnce is the maximum number in progress at the same time.
	begun, atOnce int
	unregistered  []int32
}

// newBed returns a cluster of three registered brokers, and two more to register later. Its partitions are one broker
// away from where they should be.
func newBed(t *testing.T, factors map[partition]int) *bed {
	b := &bed{
		t: t, brokers: map[int32]bool{0: true, 1: true, 2: true}, partitions: map[partition]held{},
		configs: map[string]map[string]string{}, doubt: patience.Limit,
	}
	for i, p := range sorted(factors) {
		var replicas []int32
		for n := range factors[p] {
			replicas = append(replicas, int32((i+n+1)%3))
		}
		b.partitions[p] = held{replicas: replicas, inSync: replicas, leader: replicas[0]}
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(5))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	b.cluster = cluster
	cluster.Control(func(ask kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		b.mu.Lock()
		defer b.mu.Unlock()
		answer := b.answer(ask)
		return answer, nil, answer != nil
	})
	return b
}

// start starts a rebalancer, and returns its address and a function to kill it.
func (b *bed) start() (address string, kill func()) {
	client, err := serve.Client(strings.Join(b.cluster.ListenAddrs(), ","), kgo.RetryTimeout(time.Second))
	if err != nil {
		b.t.Fatal(err)
	}
	r := newRebalancer(newKafka(client), 1000)
	r.atWork, r.idle, r.doubt = time.Millisecond, 5*time.Millisecond, b.doubt
	ctx, cancel := testContext(b.t)
	server := httptest.NewServer(r.handler("broker"))
	var loop sync.WaitGroup
	loop.Go(func() { r.run(ctx) })
	kill = sync.OnceFunc(func() {
		cancel()
		loop.Wait()
		server.Close()
		client.Close()
	})
	b.t.Cleanup(kill)
	return server.URL, kill
}

// set changes the cluster under its lock.
func (b *bed) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// now returns a copy of the partitions, and the configuration as text.
func (b *bed) now() (partitions map[partition]held, configs []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for of, names := range b.configs {
		for name, value := range names {
			configs = append(configs, fmt.Sprintf("%s %s=%s", of, name, value))
		}
	}
	return maps.Clone(b.partitions), configs
}

func (b *bed) answer(ask kmsg.Request) kmsg.Response {
	switch ask := ask.(type) {
	case *kmsg.ApiVersionsRequest:
		answer := ask.ResponseKind().(*kmsg.ApiVersionsResponse) //nolint:forcetypeassert // its kind, here and below
		for key := int16(0); key <= 64; key++ {
			if known := kmsg.RequestForKey(key); known != nil {
				answer.ApiKeys = append(answer.ApiKeys,
					kmsg.ApiVersionsResponseApiKey{ApiKey: key, MaxVersion: known.MaxVersion()})
			}
		}
		return answer
	case *kmsg.MetadataRequest:
		return b.metadata(ask)
	case *kmsg.DescribeClusterRequest:
		answer := ask.ResponseKind().(*kmsg.DescribeClusterResponse) //nolint:forcetypeassert // as above
		for id, alive := range b.brokers {
			if alive || ask.IncludeFencedBrokers {
				broker := kmsg.DescribeClusterResponseBroker{NodeID: id, Host: "localhost", IsFenced: !alive}
				if rack, ok := b.racks[id]; ok {
					broker.Rack = &rack
				}
				answer.Brokers = append(answer.Brokers, broker)
			}
		}
		return answer
	case *kmsg.ListPartitionReassignmentsRequest:
		return b.reassignments(ask)
	case *kmsg.AlterPartitionAssignmentsRequest:
		return b.reassign(ask)
	case *kmsg.ElectLeadersRequest:
		answer := ask.ResponseKind().(*kmsg.ElectLeadersResponse) //nolint:forcetypeassert // as above
		for _, topic := range ask.Topics {
			for _, number := range topic.Partitions {
				h := b.partitions[partition{topic.Topic, number}]
				h.leader = h.replicas[0]
				b.partitions[partition{topic.Topic, number}] = h
			}
		}
		return answer
	case *kmsg.IncrementalAlterConfigsRequest:
		return b.alter(ask)
	case *kmsg.DescribeConfigsRequest:
		return b.describe(ask)
	case *kmsg.DescribeLogDirsRequest:
		answer := ask.ResponseKind().(*kmsg.DescribeLogDirsResponse) //nolint:forcetypeassert // as above
		dir := kmsg.NewDescribeLogDirsResponseDir()
		for _, topic := range ask.Topics {
			sizes := kmsg.DescribeLogDirsResponseDirTopic{Topic: topic.Topic}
			for _, p := range topic.Partitions {
				sizes.Partitions = append(sizes.Partitions,
					kmsg.DescribeLogDirsResponseDirTopicPartition{Partition: p, Size: 100})
			}
			dir.Topics = append(dir.Topics, sizes)
		}
		answer.Dirs = append(answer.Dirs, dir)
		return answer
	case *kmsg.UnregisterBrokerRequest:
		b.unregistered = append(b.unregistered, ask.BrokerID)
		if b.brokers[ask.BrokerID] {
			b.t.Errorf("broker %d is unregistered while it is alive", ask.BrokerID)
		}
		delete(b.brokers, ask.BrokerID)
		return ask.ResponseKind()
	}
	b.t.Errorf("%T is asked", ask)
	return nil
}

func (b *bed) metadata(ask *kmsg.MetadataRequest) kmsg.Response {
	answer := ask.ResponseKind().(*kmsg.MetadataResponse) //nolint:forcetypeassert // its kind
	answer.ControllerID = 0
	for id, address := range b.cluster.ListenAddrs() {
		if host, port, err := net.SplitHostPort(address); err != nil {
			b.t.Error(err)
		} else if number, err := strconv.ParseInt(port, 10, 32); err != nil {
			b.t.Error(err)
		} else if b.brokers[int32(id)] {
			answer.Brokers = append(answer.Brokers,
				kmsg.MetadataResponseBroker{NodeID: int32(id), Host: host, Port: int32(number)})
		}
	}
	if ask.Topics != nil {
		return answer
	}
	topics := map[string][]kmsg.MetadataResponseTopicPartition{}
	for _, p := range sorted(b.partitions) {
		h := b.partitions[p]
		if was, ok := b.late[p]; ok && b.lateTimes > 0 {
			h = was
		}
		topics[p.topic] = append(topics[p.topic], kmsg.MetadataResponseTopicPartition{
			Partition: p.number, Leader: h.leader, Replicas: slices.Concat(h.replicas, h.removing), ISR: h.inSync,
		})
	}
	b.lateTimes--
	for topic, partitions := range topics {
		answer.Topics = append(answer.Topics, kmsg.MetadataResponseTopic{Topic: &topic, Partitions: partitions})
	}
	return answer
}

// reassignments lists those in progress. They complete right afterwards, unless stuck or copying to a broker that is
// down.
func (b *bed) reassignments(ask *kmsg.ListPartitionReassignmentsRequest) kmsg.Response {
	answer := ask.ResponseKind().(*kmsg.ListPartitionReassignmentsResponse) //nolint:forcetypeassert // its kind
	atOnce, ended := 0, map[partition]held{}
	for _, p := range sorted(b.partitions) {
		h := b.partitions[p]
		if !h.moving() {
			continue
		}
		atOnce++
		answer.Topics = append(answer.Topics, kmsg.ListPartitionReassignmentsResponseTopic{
			Topic: p.topic, Partitions: []kmsg.ListPartitionReassignmentsResponseTopicPartition{{
				Partition: p.number, Replicas: slices.Concat(h.replicas, h.removing), AddingReplicas: h.adding,
				RemovingReplicas: h.removing,
			}},
		})
		if !b.stuck && !slices.ContainsFunc(h.adding, func(id int32) bool { return !b.brokers[id] }) {
			leader := h.leader
			if !slices.Contains(h.replicas, leader) {
				leader = h.replicas[0]
			}
			b.partitions[p] = held{replicas: h.replicas, inSync: h.replicas, leader: leader}
			ended[p] = h
		}
	}
	b.atOnce = max(b.atOnce, atOnce)
	if len(ended) > 0 {
		b.late, b.lateTimes = ended, 4
	}
	return answer
}

func (b *bed) reassign(ask *kmsg.AlterPartitionAssignmentsRequest) kmsg.Response {
	answer := ask.ResponseKind().(*kmsg.AlterPartitionAssignmentsResponse) //nolint:forcetypeassert // its kind
	if ask.AllowReplicationFactorChange {
		b.t.Error("a reassignment may change how many replicas there are")
	}
	for _, topic := range ask.Topics {
		result := kmsg.AlterPartitionAssignmentsResponseTopic{Topic: topic.Topic}
		for _, to := range topic.Partitions {
			p, code := partition{topic.Topic, to.Partition}, int16(0)
			switch h, ok := b.partitions[p]; {
			case !ok:
				code = kerr.UnknownTopicOrPartition.Code
			case len(to.Replicas) != len(h.replicas):
				code = kerr.InvalidReplicationFactor.Code
			default:
				b.begun++
				m := move{p, slices.Concat(h.replicas, h.removing), to.Replicas}
				b.throttledFor(m)
				h.adding = m.adds()
				h.removing = move{p, to.Replicas, m.from}.adds()
				h.replicas = to.Replicas
				b.partitions[p] = h
			}
			result.Partitions = append(result.Partitions,
				kmsg.AlterPartitionAssignmentsResponseTopicPartition{Partition: to.Partition, ErrorCode: code})
		}
		answer.Topics = append(answer.Topics, result)
	}
	return answer
}

// throttledFor fails unless a move is throttled.
func (b *bed) throttledFor(m move) {
	if len(m.adds()) == 0 {
		return
	}
	for i, want := range throttledReplicas(m) {
		if got := b.configs["topic "+m.partition.topic][throttled[i]]; got != want {
			b.t.Errorf("for %v, %s is %q, want %q", m, throttled[i], got, want)
		}
		for id, alive := range b.brokers {
			if got := b.configs[fmt.Sprintf("broker %d", id)][rates[i]]; alive && got != "1000" {
				b.t.Errorf("for %v, %s of broker %d is %q", m, rates[i], id, got)
			}
		}
	}
}

func configured(kind kmsg.ConfigResourceType, name string) string {
	if kind == kmsg.ConfigResourceTypeTopic {
		return "topic " + name
	}
	return "broker " + name
}

func (b *bed) alter(ask *kmsg.IncrementalAlterConfigsRequest) kmsg.Response {
	answer := ask.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse) //nolint:forcetypeassert // its kind
	for _, of := range ask.Resources {
		name := configured(of.ResourceType, of.ResourceName)
		if b.configs[name] == nil {
			b.configs[name] = map[string]string{}
		}
		for _, config := range of.Configs {
			if config.Op == kmsg.IncrementalAlterConfigOpDelete {
				delete(b.configs[name], config.Name)
			} else {
				b.configs[name][config.Name] = *config.Value
			}
		}
		answer.Resources = append(answer.Resources,
			kmsg.IncrementalAlterConfigsResponseResource{ResourceType: of.ResourceType, ResourceName: of.ResourceName})
	}
	return answer
}

func (b *bed) describe(ask *kmsg.DescribeConfigsRequest) kmsg.Response {
	answer := ask.ResponseKind().(*kmsg.DescribeConfigsResponse) //nolint:forcetypeassert // its kind
	for _, of := range ask.Resources {
		result := kmsg.DescribeConfigsResponseResource{ResourceType: of.ResourceType, ResourceName: of.ResourceName}
		source := kmsg.ConfigSourceDynamicBrokerConfig
		if of.ResourceType == kmsg.ConfigResourceTypeTopic {
			source = kmsg.ConfigSourceDynamicTopicConfig
		}
		for name, value := range b.configs[configured(of.ResourceType, of.ResourceName)] {
			result.Configs = append(result.Configs,
				kmsg.DescribeConfigsResponseResourceConfig{Name: name, Value: &value, Source: source})
		}
		answer.Resources = append(answer.Resources, result)
	}
	return answer
}
