//go:build linux

package swarmtest

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/testbed"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/storetest"
)

// Dies makes a change in a store, whose writer loses the manager behind a proxy at a moment: before one of its calls,
// or after it. It reports whether the change was complete by then.
func Dies(
	t *testing.T, s engine.Store, proxy *testbed.Proxy, change storetest.Change, moment int,
) (survived bool, err error) {
	t.Helper()
	call, loss := moment/2+1, testbed.Drop()
	if moment%2 == 1 {
		loss = testbed.DropAnswer()
	}
	proxy.Reset()
	defer proxy.Reset()
	proxy.On(testbed.Fault{Nth: call, Onwards: true, Do: loss})
	err = change.Make(t.Context(), s)
	return len(proxy.Calls()) < call, err
}
