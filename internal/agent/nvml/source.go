package nvml

import (
	"context"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Source returns a function that reads the GPUs of this host, for a program that does so once and then ends. It
// combines [Open], [Reader.Read] and [Reader.Close].
func Source(settings Settings) func(ctx context.Context) ([]domain.GPU, error) {
	return func(ctx context.Context) ([]domain.GPU, error) {
		reader, err := Open(ctx, settings)
		if err != nil {
			return nil, err
		}
		gpus, err := reader.Read(ctx)
		_ = reader.Close() // if a call is stuck, only the end of the process helps
		return gpus, err
	}
}
