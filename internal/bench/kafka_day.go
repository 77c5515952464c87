//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// The addresses of the first broker, the rebalancer and the load.
const (
	kafkaPort           = 18092
	kafkaRebalancerPort = 18292
	kafkaLoadAt         = "127.0.0.1:18393"
)

// kafkaOutcome is the result of a load.
type kafkaOutcome struct {
	seconds []kafkaSecond
	// brokers is the total running time of all brokers; changes is how often their number changed.
	brokers time.Duration
	changes int
	moved   uint64 // bytes moved to other brokers
}

// late returns the number of seconds with late records.
func (o kafkaOutcome) late() (n int) {
	for _, s := range o.seconds {
		if s.late() {
			n++
		}
	}
	return n
}

// carry starts a Kafka whose number of brokers follows a rule, and runs a load on it.
func (k *kafkaBench) carry(ctx context.Context, rule kafkaRule, load []string) (made kafkaOutcome, err error) {
	dir, err := os.MkdirTemp(k.work, "kafka-")
	if err != nil {
		return made, err
	}
	w := &workspace{bench: k.bench, name: "bench", dir: dir}
	if err := k.write(w, rule); err != nil {
		return made, err
	}
	if _, err := w.terraform(ctx, "init"); err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	if _, err := w.apply(ctx); err != nil {
		return made, err
	}
	before, err := awaitKafka(ctx, rule.begin)
	if err != nil {
		return made, err
	}
	output, err := k.watch(ctx, dir, load, &made)
	if err != nil {
		return made, err
	}
	report, err := parseKafkaReport(output)
	if err != nil {
		return made, fmt.Errorf("what the load says in the end: %w", err)
	}
	made.seconds = report.Seconds
	after, err := kafkaNow(ctx)
	made.moved = after.MovedBytes - before.MovedBytes
	return made, err
}

// watch runs the load, counts brokers in the meantime, and returns the load's final report.
func (k *kafkaBench) watch(ctx context.Context, dir string, load []string, made *kafkaOutcome) ([]byte, error) {
	command := exec.CommandContext(ctx, filepath.Join(k.programs, "load"), append([]string{
		"-bootstrap", fmt.Sprintf("127.0.0.1:%d", kafkaPort), "-listen", kafkaLoadAt, "-producers", "30",
		"-rebalancer", kafkaRebalancer + "/status",
	}, load...)...)
	var output, complaints bytes.Buffer
	command.Stdout, command.Stderr = &output, &complaints
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = cleanupTimeout
	if err := command.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last, count := time.Now(), 0
	for {
		select {
		case err := <-ended:
			if err != nil {
				return nil, fmt.Errorf("the load: %w\n%s", err, complaints.String())
			}
			return output.Bytes(), nil
		case now := <-tick.C:
			made.brokers += time.Duration(count) * now.Sub(last)
			found, err := brokersOf(dir)
			if err != nil {
				return nil, err
			}
			if count != 0 && found != count {
				made.changes++
			}
			last, count = now, found
		}
	}
}

// brokersOf returns the number of a workspace's brokers, by the working directories of processes.
func brokersOf(dir string) (int, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	found := map[string]bool{}
	for _, p := range processes {
		in, _ := p.Cwd() // what can't be read has ended
		if strings.HasPrefix(in, dir+"/") && strings.HasPrefix(filepath.Base(in), "kafka-broker-") {
			found[in] = true
		}
	}
	return len(found), nil
}

var kafkaRebalancer = fmt.Sprintf("http://127.0.0.1:%d", kafkaRebalancerPort)

// kafkaStatus is the status from the rebalancer.
type kafkaStatus struct {
	Brokers     int    `json:"brokers"`
	Reassigning int    `json:"reassigning"`
	MovedBytes  uint64 `json:"moved_bytes"`
}

func kafkaNow(ctx context.Context) (now kafkaStatus, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, kafkaRebalancer+"/status", nil)
	if err != nil {
		return now, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return now, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return now, fmt.Errorf("the rebalancer answers %s", response.Status)
	}
	return now, json.NewDecoder(response.Body).Decode(&now)
}

// kafkaPatience limits how long brokers may take to start.
const kafkaPatience = 5 * time.Minute

// awaitKafka waits until this many brokers are running.
func awaitKafka(ctx context.Context, brokers int) (kafkaStatus, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, kafkaPatience,
		fmt.Errorf("there are no %d brokers by what %s says", brokers, kafkaRebalancer))
	defer cancel()
	for {
		if now, err := kafkaNow(ctx); err == nil && now.Brokers >= brokers && now.Reassigning == 0 {
			return now, nil
		}
		if pause(ctx, 200*time.Millisecond) != nil {
			return kafkaStatus{}, context.Cause(ctx)
		}
	}
}

// kafkaTables are the results of all rules.
func kafkaTables(carried float64, day time.Duration, rules []kafkaRule, days []kafkaOutcome) []fmt.Stringer {
	t := &table{head: []string{
		"brokers by", "setting", "broker-minutes", "of all", fmt.Sprintf("seconds over %d ms", kafkaBound), "moved",
		"changes",
	}}
	for i, rule := range rules {
		d := days[i]
		t.add(rule.name, rule.setting, fmt.Sprintf("%.1f", d.brokers.Minutes()),
			fmt.Sprintf("%.0f %%", 100*ratioOf(d.brokers, days[0].brokers)),
			fmt.Sprint(d.late()), mebibytes(d.moved),
			fmt.Sprint(d.changes))
	}
	return []fmt.Stringer{
		t,
		note(fmt.Sprintf("A day is %s long, a sine from %.0f records of 1 kB a second to %.0f, by 30 producers, on "+
			"12 partitions with three copies each.", day, kafkaBase*carried, kafkaPeak*carried)),
		note(fmt.Sprintf("A broker has %g processors, and carries %.0f records a second: %.0f %% of what it takes "+
			"within the bound. Seconds count whose p99 was over it.", kafkaCPUs, carried, 100*kafkaBusy)),
		note("Models are trained, and rules tuned with as many decisions, on thirty such days in a model; heat goes " +
			"by processors. One day each: no spread is known."),
	}
}
