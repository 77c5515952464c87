// Package top is the command "top", which shows the hosts, GPUs and members of a cluster in a terminal and keeps
// refreshing.
//
// It reads a cluster through its engine (source.go), turns the answer into the lines of a frame (frame.go, sweeps.go,
// logs.go), and shows the frame (view.go) or prints it. Only the view knows about terminals; everything else is text.
package top

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/overview"
)

// window is the time over which usage is shown: that of the last sample.
const window = time.Second

// Run shows the cluster that the arguments choose until the user quits or ctx is done. If out is not a terminal, it
// writes one frame as plain text.
func Run(ctx context.Context, args []string, engines engine.Registry, out *os.File) error {
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
	source := &source{engine: e, overview: overview.Source{Window: window}}
	state := state{cluster: name, engine: options.cluster.Engine}
	if options.once || !term.IsTerminal(int(out.Fd())) {
		state.take(source.read(ctx, query{}))
		if state.err != nil {
			return state.err
		}
		return write(out, state.frame(byName, widthOf(out)))
	}
	return live(ctx, source, state, options.interval)
}

// widthOf returns the width of a terminal; 0, which means unlimited, if it is not one.
func widthOf(out *os.File) int {
	width, _, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// write writes a frame as plain text.
func write(out io.Writer, f frame) error {
	for _, l := range append(f.head, f.body...) {
		if _, err := fmt.Fprintln(out, l); err != nil {
			return err
		}
	}
	return nil
}
