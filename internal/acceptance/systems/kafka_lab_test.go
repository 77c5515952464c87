//go:build linux

package systems_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// kafkaLab is a workspace with the modules, and clients of the Kafka that it applies.
type kafkaLab struct {
	*lab
	*acctest.Workspace
	libs string
	// kafka produces, admin queries and administers.
	kafka *kgo.Client
	admin *kadm.Client
	// written is the number of acknowledged records in each partition of a topic.
	written map[string]int64
	// created are the topics, of three partitions each.
	created []string
}

// newKafka returns a lab, and skips or fails the test if it can't.
func newKafka(t *testing.T) *kafkaLab {
	t.Helper()
	libs := acceptance.Kafka(t)
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests run with TF_ACC=1, as by make test-matrix")
	}
	w := acctest.NewWorkspace(t, acctest.Build(t, acctest.Provider))
	acceptance.WithModules(w)
	return &kafkaLab{lab: labOf(t, w), Workspace: w, libs: libs, written: map[string]int64{}}
}

// beside adds to a configuration of Kafka what it needs to run beside others: ports, small heaps, and JVMs that don't
// optimise code that runs only once; and more attributes.
func (l *kafkaLab) beside(config string, further ...string) string {
	l.T.Helper()
	const before = "  cluster = trainyard_cluster.lab\n"
	if !strings.Contains(config, before) {
		l.T.Fatalf("the configuration has no %q:\n%s", before, config)
	}
	return strings.Replace(config, before, before+fmt.Sprintf(`
  libs       = %q
  env        = { JDK_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" }
  controller = { port = 17192, heap_mib = 192 }
  broker     = { port = 17092, heap_mib = 256 }
`, l.libs)+strings.Join(further, "\n"), 1)
}

// connect creates the clients, for the brokers in the output bootstrap_servers.
func (l *kafkaLab) connect() {
	l.T.Helper()
	brokers := strings.TrimSpace(l.Must("output", "-raw", "bootstrap_servers"))
	var err error
	l.kafka, err = kgo.NewClient(kgo.SeedBrokers(strings.Split(brokers, ",")...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RecordDeliveryTimeout(patience.Limit))
	l.must(err)
	l.T.Cleanup(l.kafka.Close)
	l.admin = kadm.NewClient(l.kafka)
}

// await waits until this many brokers are up, with the topics that were created, and all replicas are in sync.
func (l *kafkaLab) await(what string, brokers int) (now kadm.Metadata) {
	l.T.Helper()
	acctest.Eventually(l.T, what, func() bool {
		var err error
		now, err = l.admin.Metadata(l.T.Context())
		if err != nil || len(now.Brokers) != brokers {
			return false
		}
		synced := !slices.ContainsFunc(l.created,
			func(topic string) bool { return len(now.Topics[topic].Partitions) != 3 })
		now.Topics.EachPartition(func(p kadm.PartitionDetail) {
			synced = synced && p.Err == nil && p.Leader >= 0 && len(p.ISR) == len(p.Replicas)
		})
		return synced
	})
	return now
}

// create creates a topic of three partitions, with this many replicas; -1 is Kafka's default.
func (l *kafkaLab) create(topic string, copies int16) {
	l.T.Helper()
	_, err := l.admin.CreateTopic(l.T.Context(), 3, copies, nil, topic)
	l.must(err)
	l.created = append(l.created, topic)
}

// expectMinISR fails unless this many in-sync replicas have to acknowledge a record of a topic.
func (l *kafkaLab) expectMinISR(topic string, want int) {
	l.T.Helper()
	described, err := l.admin.DescribeTopicConfigs(l.T.Context(), topic)
	l.must(err)
	found, err := described.On(topic, nil)
	l.must(err)
	values := map[string]string{}
	for _, config := range found.Configs {
		values[config.Key] = config.MaybeValue()
	}
	if got := values["min.insync.replicas"]; got != strconv.Itoa(want) {
		l.T.Errorf("%s has min.insync.replicas = %q, want %d", topic, got, want)
	}
}

// owned returns the number of replicas of a topic's partitions on each broker.
func owned(now kadm.Metadata, topic string) map[int32]int {
	copies := map[int32]int{}
	for _, p := range now.Topics[topic].Partitions {
		for _, broker := range p.Replicas {
			copies[broker]++
		}
	}
	return copies
}

// write appends 500 records to each partition of a topic, with consecutive values, and waits until all are
// acknowledged.
func (l *kafkaLab) write(topic string) {
	l.T.Helper()
	const perPartition = 500
	var records []*kgo.Record
	for i := l.written[topic]; i < l.written[topic]+perPartition; i++ {
		for partition := range int32(3) {
			records = append(records, &kgo.Record{Topic: topic, Partition: partition, Value: fmt.Append(nil, i)})
		}
	}
	l.must(l.kafka.ProduceSync(l.T.Context(), records...).FirstErr())
	l.written[topic] += perPartition
}

// expectAll reads a topic from its beginning, and fails unless each partition has everything that was written, in
// order.
func (l *kafkaLab) expectAll(topic, when string) {
	l.T.Helper()
	reader, err := kgo.NewClient(append(l.kafka.Opts(), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	l.must(err)
	defer reader.Close()
	ctx, cancel := context.WithTimeout(l.T.Context(), patience.Limit)
	defer cancel()
	read, found := map[int32]int64{}, int64(0)
	for ctx.Err() == nil && found < 3*l.written[topic] {
		reader.PollRecords(ctx, 1000).EachRecord(func(r *kgo.Record) {
			if want := fmt.Sprint(read[r.Partition]); string(r.Value) != want {
				l.T.Fatalf("%s, partition %d of %s has %q, want %q", when, r.Partition, topic, r.Value, want)
			}
			read[r.Partition]++
			found++
		})
	}
	if found != 3*l.written[topic] {
		l.T.Errorf("%s, there are %d records in %s, want %d", when, found, topic, 3*l.written[topic])
	}
}
