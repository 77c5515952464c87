package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Report is what the agent of a host tells who asks from elsewhere.
type Report struct {
	Host Host            `json:"host"`
	GPUs domain.HostGPUs `json:"gpus"`
}

// WriteReport measures this host, and writes what it finds as JSON: see [ReadReport].
func WriteReport(ctx context.Context, w io.Writer, interval time.Duration, gpus GPUSource) error {
	found := make(chan domain.HostGPUs, 1)
	go func() { found <- sampleGPUs(ctx, gpus) }()
	host, _, err := Sample(ctx, interval, nil)
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(Report{Host: host, GPUs: <-found})
}

// ReadReport reads what [WriteReport] wrote.
func ReadReport(text []byte) (Report, error) {
	var report Report
	if err := json.Unmarshal(text, &report); err != nil {
		return Report{}, fmt.Errorf("the agent's report %.100q can't be read: %w", text, err)
	}
	return report, nil
}
