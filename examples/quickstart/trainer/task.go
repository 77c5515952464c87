package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
)

// The task types that the trainer knows, as in TF_CONFIG.
const (
	taskPS     = "ps"
	taskWorker = "worker"
	taskChief  = "chief"
)

// task is this process's place in the cluster, as in TF_CONFIG.
type task struct {
	Type    string
	Index   int
	cluster map[string][]string // task type → addresses (host:port), by index
}

// parseTask parses TF_CONFIG: {"cluster":{"ps":["host:port",…],"worker":[…],"chief":[…]},"task":{"type":…,"index":…}}.
// The cluster may contain other task types than ps, worker and chief; they take no part in training.
func parseTask(tfConfig string) (task, error) {
	if tfConfig == "" {
		return task{}, errors.New(`TF_CONFIG is not set: it must name the cluster and this task, for example ` +
			`{"cluster":{"ps":["127.0.0.1:8000"],"worker":["127.0.0.1:9000"]},"task":{"type":"worker","index":0}}`)
	}
	var config struct {
		Cluster map[string][]string `json:"cluster"`
		Task    struct {
			Type  string `json:"type"`
			Index int    `json:"index"`
		} `json:"task"`
	}
	if err := json.Unmarshal([]byte(tfConfig), &config); err != nil {
		return task{}, fmt.Errorf("TF_CONFIG is not valid: %w", err)
	}
	t := task{Type: config.Task.Type, Index: config.Task.Index, cluster: config.Cluster}
	if err := t.validate(); err != nil {
		return task{}, fmt.Errorf("TF_CONFIG is not valid: %w", err)
	}
	return t, nil
}

func (t task) validate() error {
	if known := []string{taskPS, taskWorker, taskChief}; !slices.Contains(known, t.Type) {
		return fmt.Errorf("task.type is %q: it must be one of %q", t.Type, known)
	}
	members := t.cluster[t.Type]
	switch {
	case len(members) == 0:
		return fmt.Errorf("task.type is %q, but cluster.%s lists no address", t.Type, t.Type)
	case t.Index < 0 || t.Index >= len(members):
		return fmt.Errorf("task.index is %d: cluster.%s allows 0 to %d", t.Index, t.Type, len(members)-1)
	case len(t.cluster[taskPS]) == 0:
		return errors.New("cluster.ps lists no address: at least one parameter server is needed")
	case len(t.trainers()) == 0:
		return errors.New("cluster.worker lists no address: at least one worker is needed")
	case len(t.cluster[taskChief]) > 1:
		return fmt.Errorf("cluster.chief lists %d addresses: a cluster has one chief at most",
			len(t.cluster[taskChief]))
	}
	for _, kind := range []string{taskPS, taskWorker, taskChief} {
		for i, address := range t.cluster[kind] {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return fmt.Errorf("cluster.%s[%d] is %q: it must be host:port", kind, i, address)
			}
			if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
				return fmt.Errorf("cluster.%s[%d] is %q: the port must be a number from 1 to 65535", kind, i, address)
			}
		}
	}
	return nil
}

func (t task) String() string { return fmt.Sprintf("%s %d", t.Type, t.Index) }

// address is the task's own host:port.
func (t task) address() string { return t.cluster[t.Type][t.Index] }

// servers are the addresses of the parameter servers, by index.
func (t task) servers() []string { return t.cluster[taskPS] }

// trainers are the addresses of everyone who trains: the chief, if any, and then the workers.
func (t task) trainers() []string {
	return slices.Concat(t.cluster[taskChief], t.cluster[taskWorker])
}

// trainer is the task's position among the trainers.
func (t task) trainer() int {
	if t.Type == taskWorker {
		return len(t.cluster[taskChief]) + t.Index
	}
	return t.Index
}

// leads reports whether this task evaluates and saves the model: the chief or, without one, worker 0.
func (t task) leads() bool { return t.Type != taskPS && t.trainer() == 0 }

// shard is the part of the parameters that this parameter server holds.
func (t task) shard() shard { return shardOf(parameterCount, t.Index, len(t.servers())) }

// bindAddress returns where to listen so that peers can connect to address. A loopback address is bound as is; any
// other host may be a name or a translated address that this machine doesn't have, so its port is bound on all
// interfaces.
func bindAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host == "localhost" || (ip != nil && ip.IsLoopback()) {
		return address
	}
	return net.JoinHostPort("", port)
}

// shard is a contiguous range [low, high).
type shard struct{ low, high int }

// shardOf returns one of count shards of total elements. Shards differ in size by one at most.
func shardOf(total, index, count int) shard {
	return shard{low: total * index / count, high: total * (index + 1) / count}
}

// size is the number of elements in the shard.
func (s shard) size() int { return s.high - s.low }
