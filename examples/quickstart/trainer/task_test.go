package main

import (
	"slices"
	"strings"
	"testing"
)

func TestParseTask(t *testing.T) {
	const withChief = `"ps":["p:1","p:2"],"chief":["c:1"],"worker":["w:1","w:2"]`
	const withoutChief = `"ps":["p:1"],"worker":["w:1","w:2"],"evaluator":["e:1"]`
	tests := []struct {
		cluster, kind string
		index         string
		address       string
		trainer       int
		trainers      int
		leads         bool
	}{
		{withChief, "chief", "0", "c:1", 0, 3, true},
		{withChief, "worker", "0", "w:1", 1, 3, false},
		{withChief, "worker", "1", "w:2", 2, 3, false},
		{withoutChief, "worker", "0", "w:1", 0, 2, true},
		{withoutChief, "worker", "1", "w:2", 1, 2, false},
	}
	for _, test := range tests {
		t.Run(test.kind+test.index+" of "+test.cluster, func(t *testing.T) {
			got, err := parseTask(
				`{"cluster":{` + test.cluster + `},"task":{"type":"` + test.kind + `","index":` + test.index + `}}`,
			)
			if err != nil {
				t.Fatal(err)
			}
			if got.address() != test.address || got.trainer() != test.trainer || got.leads() != test.leads ||
				len(got.trainers()) != test.trainers {
				t.Errorf("address %s, trainer %d of %d, leads %t; want %s, %d of %d, %t", got.address(), got.trainer(),
					len(got.trainers()), got.leads(), test.address, test.trainer, test.trainers, test.leads)
			}
		})
	}

	ps, err := parseTask(`{"cluster":{` + withChief + `},"task":{"type":"ps","index":1}}`)
	if err != nil {
		t.Fatal(err)
	}
	if ps.leads() || ps.shard() != (shard{parameterCount / 2, parameterCount}) ||
		!slices.Equal(ps.servers(), []string{"p:1", "p:2"}) {
		t.Errorf("ps 1: leads %t, shard %v, servers %v", ps.leads(), ps.shard(), ps.servers())
	}
}

func TestParseTaskRejects(t *testing.T) {
	const cluster = `"cluster":{"ps":["p:1"],"worker":["w:1","w:2"]}`
	tests := map[string]struct{ config, want string }{
		"unset":    {"", "TF_CONFIG is not set"},
		"not JSON": {"{", "TF_CONFIG is not valid"},
		"unknown type": {
			`{` + cluster + `,"task":{"type":"evaluator","index":0}}`, `task.type is "evaluator": it must be one of`,
		},
		"no task":        {`{` + cluster + `}`, `task.type is ""`},
		"type not there": {`{` + cluster + `,"task":{"type":"chief","index":0}}`, "cluster.chief lists no address"},
		"index too high": {
			`{` + cluster + `,"task":{"type":"worker","index":2}}`, "task.index is 2: cluster.worker allows 0 to 1",
		},
		"index negative": {`{` + cluster + `,"task":{"type":"worker","index":-1}}`, "task.index is -1"},
		"no ps": {
			`{"cluster":{"worker":["w:1"]},"task":{"type":"worker","index":0}}`, "cluster.ps lists no address",
		},
		"no worker": {`{"cluster":{"ps":["p:1"]},"task":{"type":"ps","index":0}}`, "cluster.worker lists no address"},
		"two chiefs": {`{"cluster":{"ps":["p:1"],"chief":["c:1","c:2"]},"task":{"type":"chief","index":0}}`,
			"cluster.chief lists 2 addresses"},
		"address without port": {`{"cluster":{"ps":["p"],"worker":["w:1"]},"task":{"type":"worker","index":0}}`,
			`cluster.ps[0] is "p": it must be host:port`},
		"port out of range": {`{"cluster":{"ps":["p:70000"],"worker":["w:1"]},"task":{"type":"worker","index":0}}`,
			`cluster.ps[0] is "p:70000": the port must be`},
		"index not a number": {`{` + cluster + `,"task":{"type":"worker","index":"0"}}`, "task.index"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := parseTask(test.config); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestShardsCoverTheWholeEvenly(t *testing.T) {
	for _, total := range []int{0, 1, 7, parameterCount} {
		for count := 1; count <= 9; count++ {
			next := 0
			for index := range count {
				s := shardOf(total, index, count)
				if s.low != next {
					t.Fatalf("shard %d of %d over %d starts at %d, want %d", index, count, total, s.low, next)
				}
				if s.size() < total/count || s.size() > total/count+1 {
					t.Fatalf("shard %d of %d over %d has %d elements", index, count, total, s.size())
				}
				next = s.high
			}
			if next != total {
				t.Fatalf("%d shards over %d end at %d", count, total, next)
			}
		}
	}
}

func TestBindAddress(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:8000":   "127.0.0.1:8000",
		"127.0.0.2:8000":   "127.0.0.2:8000",
		"localhost:8000":   "localhost:8000",
		"[::1]:8000":       "[::1]:8000",
		"10.0.0.5:8000":    ":8000",
		"digits-ps-0:8000": ":8000",
	} {
		if got := bindAddress(address); got != want {
			t.Errorf("bindAddress(%q) = %q, want %q", address, got, want)
		}
	}
}
