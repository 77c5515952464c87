package storetest_test

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(*testing.T, string) engine.Store { return &storetest.Memory{} },
		Watch: func(_ *testing.T, s engine.Store) <-chan struct{} {
			changes := make(chan struct{}, 10)
			s.(*storetest.Memory).Changed = func() { changes <- struct{}{} } //nolint:forcetypeassert // Open returns no other type
			return changes
		},
	})
}
