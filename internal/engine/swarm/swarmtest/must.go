// Package swarmtest is shared by the tests of the packages of the engine swarm: above all, real Docker Engines.
package swarmtest

import "testing"

// Must ends a test if there is an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
