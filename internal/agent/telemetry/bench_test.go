//go:build linux

package telemetry

import (
	"fmt"
	"log/slog"
	"testing"
)

// BenchmarkSample measures what a resident does each second, on a host with some members.
func BenchmarkSample(b *testing.B) {
	onHost := func(b *testing.B, instance string) { start(b, instance, "echo ready; read never") }
	apart := func(b *testing.B, instance string) { startApart(b, instance) }
	for name, members := range map[string]struct {
		number int
		start  func(b *testing.B, instance string)
	}{
		"1": {1, onHost}, "50": {50, onHost}, "50 with networks of their own": {50, apart},
	} {
		b.Run(name, func(b *testing.B) {
			for i := range members.number {
				members.start(b, fmt.Sprintf("%s-%d", b.Name(), i))
			}
			r, err := NewResident(b.Context(), settings(nil), "", slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := r.sample(r.last); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
