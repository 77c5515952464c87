package resourcekit

import (
	"context"
	"log/slog"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// The subsystems of the log, whose levels TF_LOG_PROVIDER_TRAINYARD_ENGINE and TF_LOG_PROVIDER_TRAINYARD_RECONCILE set.
const (
	engineLog    = "engine"
	reconcileLog = "reconcile"
)

// subsystem is a subsystem of Terraform's log as a handler of records.
type subsystem string

// Enabled reports true: what is left out, the level of the subsystem says.
func (subsystem) Enabled(context.Context, slog.Level) bool { return true }

// Handle logs a record, by the logger in its context.
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

// WithAttrs and WithGroup return the subsystem itself: nobody here uses loggers with attributes of their own.
func (s subsystem) WithAttrs([]slog.Attr) slog.Handler { return s }

// WithGroup returns the subsystem itself, see WithAttrs.
func (s subsystem) WithGroup(string) slog.Handler { return s }

// trace logs a call of an engine, with the time it took. What is passed in a call is not logged: it may hold secrets.
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
