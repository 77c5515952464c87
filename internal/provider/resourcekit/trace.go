package resourcekit

import (
	"context"
	"log/slog"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// The subsystems of the log, whose levels are set by TF_LOG_PROVIDER_TRAINYARD_ENGINE and
// TF_LOG_PROVIDER_TRAINYARD_RECONCILE.
const (
	engineLog    = "engine"
	reconcileLog = "reconcile"
)

// subsystem is a slog handler for a subsystem of Terraform's log.
type subsystem string

// Enabled returns true, as the subsystem's level decides.
func (subsystem) Enabled(context.Context, slog.Level) bool { return true }

// Handle logs a record with the logger in its context.
func (s subsystem) Handle(ctx context.Context, record slog.Record) error {
	fields := make(map[string]any, record.NumAttrs())
	record.Attrs(func(a slog.Attr) bool {
		fields[a.Key] = a.Value.Any()
		return true
	})
	name := string(s)
	ctx = tflog.NewSubsystem(ctx, name, tflog.WithLevelFromEnv("TF_LOG_PROVIDER_TRAINYARD", name))
	tflog.SubsystemDebug(ctx, name, record.Message, fields)
	return nil
}

// WithAttrs and WithGroup return the subsystem itself, as no logger here has attributes of its own.
func (s subsystem) WithAttrs([]slog.Attr) slog.Handler { return s }

// WithGroup returns the subsystem itself, see WithAttrs.
func (s subsystem) WithGroup(string) slog.Handler { return s }

// trace logs an engine call with its duration, but without its arguments, which may hold secrets.
func trace(ctx context.Context, call engine.Call, do func() error) error {
	start := time.Now()
	err := do()
	args := []any{slog.String("call", call.Name), slog.String("duration", time.Since(start).String())}
	if err != nil {
		args = append(args, slog.String("error", err.Error()))
	}
	slog.New(subsystem(engineLog)).DebugContext(ctx, "engine call", args...)
	return err
}
