//go:build linux

package testbed

import (
	"cmp"
	"fmt"
	"os"
	"testing"
)

// EngineVariable selects the Docker Engine, by its key in [Engines], of beds whose options select none.
const EngineVariable = "TRAINYARD_TEST_ENGINE"

// Engine is a Docker Engine with an image store.
type Engine struct {
	// Debian13 selects Debian 13's Engine, 26.1; otherwise it is this machine's.
	Debian13 bool
	// Containerd selects containerd's image store, the default since Engine 29; otherwise it is Docker's own.
	Containerd bool
}

// Engines are the Engines that beds can run, by name.
var Engines = map[string]Engine{
	"":                {},
	"containerd":      {Containerd: true},
	"26.1":            {Debian13: true},
	"26.1-containerd": {Debian13: true, Containerd: true},
}

// chosen returns the nodes' Engine, unless they are mixed.
func (o Options) chosen() (Engine, error) {
	name := cmp.Or(o.Engine, os.Getenv(EngineVariable))
	engine, known := Engines[name]
	if !known {
		return Engine{}, fmt.Errorf("%s=%q: allowed are 26.1, 26.1-containerd, containerd, and none for this "+
			"machine's Engine with Docker's own image store", EngineVariable, name)
	}
	return engine, nil
}

// OnEngines runs a test that depends on the Engine's version or image store: with [Options.Engine] empty, and on 26.1
// with containerd's image store. If [EngineVariable] selects an Engine, it runs only on that.
func OnEngines(t *testing.T, run func(t *testing.T, engine string)) {
	t.Helper()
	const second = "26.1-containerd"
	if name := os.Getenv(EngineVariable); name != "" {
		t.Run(name, func(t *testing.T) { run(t, "") })
		return
	}
	t.Run("this machine's Engine", func(t *testing.T) { run(t, "") })
	t.Run(second, func(t *testing.T) { run(t, second) })
}

// mixed are the Engines of a mixed bed's nodes, in turn.
var mixed = []Engine{{}, {Debian13: true, Containerd: true}, {Debian13: true}}

// engineOf returns the Engine of a node, given its number from 1.
func (o Options) engineOf(number int, chosen Engine) Engine {
	if o.Mixed {
		return mixed[(number-1)%len(mixed)]
	}
	return chosen
}
