package testbed

import (
	"fmt"
	"os"
)

// EngineVariable names the Docker Engine of beds, a key of [Engines]. Mixed beds ignore it.
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

// ChosenEngine returns the Engine that [EngineVariable] names.
func ChosenEngine() (Engine, error) {
	name := os.Getenv(EngineVariable)
	engine, known := Engines[name]
	if !known {
		return Engine{}, fmt.Errorf("%s=%q: allowed are 26.1, 26.1-containerd, containerd, and none for this machine's Engine with Docker's own image store", EngineVariable, name)
	}
	return engine, nil
}

// mixed are the Engines of a mixed bed's nodes, in turn.
var mixed = []Engine{{}, {Debian13: true, Containerd: true}, {Debian13: true}}

// engineOf returns the Engine of the node with this number, from 1.
func (o Options) engineOf(number int, chosen Engine) Engine {
	if o.Mixed {
		return mixed[(number-1)%len(mixed)]
	}
	return chosen
}
