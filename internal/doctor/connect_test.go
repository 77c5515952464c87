package doctor

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestStuckProgram: a program that outlives the shell, such as a stuck nvidia-smi, does not hold up the end.
func TestStuckProgram(t *testing.T) {
	needsLinux(t)
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	began := time.Now()
	_, err := machine{}.RunInput(ctx, "sleep 20 & wait", nil)
	if lasted := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || lasted > 15*time.Second {
		t.Errorf("after %s: %v", lasted, err)
	}
}
