package resourcekit

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestTrace: engine calls and reconciler actions are separate subsystems of the log, with levels of their own.
func TestTrace(t *testing.T) {
	failure := errors.New("no quorum")
	logged := func(t *testing.T) string {
		t.Helper()
		var output bytes.Buffer
		ctx := tflogtest.RootLogger(context.Background(), &output)
		if err := trace(ctx, engine.Call{Name: "Put group"}, func() error {
			return failure
		}); !errors.Is(err, failure) {
			t.Errorf("the call returned %v", err)
		}
		reconcilerOf(nil).Logger.DebugContext(ctx, "changing members", "group", "mnist")
		return output.String()
	}
	all := logged(t)
	for _, want := range []string{
		`"@module":"provider.engine"`, `"call":"Put group"`, `"error":"no quorum"`, `"duration":"`,
		`"@module":"provider.reconcile"`, `"group":"mnist"`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the log lacks %s:\n%s", want, all)
		}
	}
	t.Setenv("TF_LOG_PROVIDER_TRAINYARD_ENGINE", "ERROR")
	if some := logged(t); strings.Contains(some, "Put group") || !strings.Contains(some, "changing members") {
		t.Errorf("without calls of engines, the log is\n%s", some)
	}
}
