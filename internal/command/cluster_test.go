package command_test

import (
	"context"
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// TestFindOverSSH: the flags of a command say how to log in to the hosts of its cluster, named or not.
func TestFindOverSSH(t *testing.T) {
	refused := errors.New("refused")
	for _, args := range []string{"", "--cluster lab"} {
		t.Run(args, func(t *testing.T) {
			var used []engine.Settings
			engines := engine.Registry{"systemd": {
				Open: func(_ domain.ClusterRef, settings engine.Settings) (engine.Engine, error) {
					used = append(used, settings)
					return nil, refused
				},
				Clusters: func(_ context.Context, _ string, settings engine.Settings) ([]string, error) {
					used = append(used, settings)
					return []string{"lab"}, nil
				},
			}}
			var cluster command.Cluster
			flags := flag.NewFlagSet("test", flag.ContinueOnError)
			cluster.AddFlags(flags, engines)
			err := flags.Parse(strings.Fields("--engine systemd --jump-host ops@bastion --identity-file key " + args))
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := cluster.Find(t.Context(), engines); !errors.Is(err, refused) {
				t.Fatal(err)
			}
			want := engine.Settings{SSH: engine.SSHCredentials{JumpHost: "ops@bastion", IdentityFiles: []string{"key"}}}
			for _, settings := range used {
				if diff := cmp.Diff(want, settings); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
