// Package explain is the command "autoscale", which shows what autoscaling policies decided, and why.
//
// It reads a policy and its history from an engine (reading.go), and prints text (text.go) or JSON lines.
package explain

import (
	"context"
	"errors"
	"flag"
	"io"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/autoscale"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
)

// Run writes what the arguments ask for. If some of the history can't be read, it writes the rest before returning an
// error.
func Run(ctx context.Context, args []string, engines engine.Registry, out io.Writer) error {
	options, err := parse(args, engines)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	name, e, err := options.cluster.Find(ctx, engines)
	if err != nil {
		return err
	}
	var text strings.Builder
	err = render(ctx, name, e, options, &text)
	_, failed := io.WriteString(out, printable.Text(text.String())) // it contains texts of others, even as JSON
	return errors.Join(failed, err)
}

// Text returns the newest decisions of a policy, and below them what it may do now, as the command prints them. If part
// of the history can't be read, it returns the rest with an error.
func Text(
	ctx context.Context, cluster string, e engine.Store, group, role string, entries int, now time.Time,
) (string, error) {
	found, err := read(ctx, cluster, e, options{group: group, role: role, entries: entries}, now)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = errors.Join(found.write(&text), found.unread)
	return text.String(), err
}

// render writes what the options ask for, unfiltered.
func render(ctx context.Context, cluster string, e engine.Store, o options, out io.Writer) error {
	if o.json {
		return writeJSON(ctx, cluster, e, o, out)
	}
	found, err := read(ctx, cluster, e, o, time.Now())
	if err != nil {
		return err
	}
	return errors.Join(found.write(out), found.unread)
}

// writeJSON writes the entries that the options select, one per line.
func writeJSON(ctx context.Context, cluster string, e engine.Store, o options, out io.Writer) error {
	stored, err := engine.Contents(ctx, e, autoscale.HistoryKind)
	if err != nil {
		return err
	}
	now := time.Now()
	entries, unread := autoscale.ReadHistory(stored, now, o.selection(now))
	if len(entries) == 0 && o.group != "" { // perhaps there is no such policy
		_, err := read(ctx, cluster, e, o, now)
		return errors.Join(err, unread)
	}
	for _, entry := range entries {
		line, err := entry.JSON()
		if err != nil {
			return err
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return unread
}
