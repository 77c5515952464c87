package reconcile_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

// TestLog: the log names members, and holds nothing of their specifications.
func TestLog(t *testing.T) {
	f := newFake()
	var logged bytes.Buffer
	r := reconcile.Reconciler{
		Engine: f, Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	secret := func(g *domain.Group) { g.Env = map[string]string{"TOKEN": "hunter2"} }
	_, err := r.Create(within(t), group(1, 2, secret))
	must(t, err)
	must(t, r.Update(within(t), group(1, 1, secret)))
	for _, want := range []string{
		`msg="changing members" group=mnist revision=1 start="[mnist-ps-0 mnist-worker-0 mnist-worker-1]"`,
		"remove=[mnist-worker-1]",
	} {
		if !strings.Contains(logged.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, logged.String())
		}
	}
	if strings.Contains(logged.String(), "hunter2") {
		t.Errorf("the log has a value of the environment:\n%s", logged.String())
	}
}
