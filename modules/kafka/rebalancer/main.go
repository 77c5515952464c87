// Command rebalancer keeps the partitions of a Kafka cluster distributed round robin over its brokers while an
// autoscaling policy adds and removes some. It is called through the policy's hooks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/trainyard/terraform-provider-trainyard/modules/kafka/internal/serve"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); errors.Is(err, flag.ErrHelp) {
		return
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "rebalancer:", err)
		os.Exit(1)
	}
}

// mostThrottle is the maximum throttle, 1 TiB/s.
const mostThrottle = 1 << 20

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("rebalancer", flag.ContinueOnError)
	bootstrap := flags.String("bootstrap", "", "bootstrap brokers, `host:port`, separated by commas")
	listen := flags.String("listen", serve.Listen(), "`address` to serve the hooks at")
	throttle := flags.Int64("throttle-mib", 10,
		"maximum `MiB` per second that each broker sends, and receives, for moves; 0 sets no limit")
	role := flags.String("role", "broker",
		"`role` of the brokers; the number at the end of a member's name is its node.id")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *throttle < 0 || *throttle > mostThrottle {
		return fmt.Errorf("-throttle-mib must be 0 to %d, got %d", mostThrottle, *throttle)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: only flags are allowed", flags.Arg(0))
	}
	client, err := serve.Client(*bootstrap, kgo.ClientID("trainyard-rebalancer"))
	if err != nil {
		return err
	}
	defer client.Close()
	r := newRebalancer(newKafka(client), *throttle<<20)
	var loop sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	loop.Go(func() { r.run(ctx) })
	err = serve.Run(ctx, *listen, r.handler(*role))
	cancel()
	loop.Wait()
	slog.Info("ended")
	return err
}
