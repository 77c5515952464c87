package acctest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
)

// ProviderBesideAgent returns the file of a provider with the agent beside it, as they are released.
func ProviderBesideAgent(t testing.TB) string {
	t.Helper()
	provider := providerInFolder(t)
	if err := os.Link(BuildAgent(t), filepath.Join(filepath.Dir(provider), telemetry.AgentName)); err != nil {
		t.Fatal(err)
	}
	return provider
}

// ProviderWithAgent returns the file of a provider with an agent beside it that runs with these variables in its environment: so each
// test has GPUs of its own.
func ProviderWithAgent(t testing.TB, env ...string) string {
	t.Helper()
	provider := providerInFolder(t)
	script := fmt.Sprintf("#!/bin/sh\nexec env '%s' '%s' \"$@\"\n", strings.Join(env, "' '"), BuildAgent(t))
	if err := os.WriteFile(filepath.Join(filepath.Dir(provider), telemetry.AgentName), []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return provider
}

// providerInFolder returns the file of a provider in a folder of its own.
func providerInFolder(t testing.TB) string {
	t.Helper()
	provider := filepath.Join(t.TempDir(), filepath.Base(Provider))
	if err := os.Link(Build(t, Provider), provider); err != nil { // a symbolic link would lead past the neighbour
		t.Fatal(err)
	}
	return provider
}
