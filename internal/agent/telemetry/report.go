package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Report writes a sample of this host as JSON, for who asks from elsewhere: see [ReadReport].
func Report(ctx context.Context, w io.Writer, interval time.Duration) error {
	host, _, err := Sample(ctx, interval, nil)
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(host)
}

// ReadReport reads what [Report] wrote.
func ReadReport(text []byte) (Host, error) {
	var host Host
	if err := json.Unmarshal(text, &host); err != nil {
		return Host{}, fmt.Errorf("the agent's report %q: %w", text, err)
	}
	return host, nil
}
