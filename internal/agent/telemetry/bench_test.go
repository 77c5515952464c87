//go:build linux

package telemetry

import (
	"fmt"
	"log/slog"
	"testing"
)

// BenchmarkSample is what a resident does each second, on a host with this many members.
func BenchmarkSample(b *testing.B) {
	for _, members := range []int{1, 50} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			for i := range members {
				start(b, fmt.Sprintf("%s-%d", b.Name(), i), "echo ready; read never")
			}
			r, err := NewResident(b.Context(), settings(nil), "", slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := r.sample(r.last.instances); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
