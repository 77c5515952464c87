// Package command is shared by the commands for people: selecting the cluster that a command is about, and exit codes.
package command

import (
	"flag"
	"fmt"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// Cluster is the cluster that the arguments of a command name. Fields may be empty.
type Cluster struct {
	// Engine is the name of the cluster's engine.
	Engine string
	// Endpoint is where the cluster is, in the engine's terms.
	Endpoint string
	// Name is empty for the only cluster there is.
	Name string
	// SSH is how to log in to its hosts.
	SSH SSH
}

// Settings are those that its engine is opened with.
func (c Cluster) Settings() engine.Settings { return engine.Settings{SSH: c.SSH.SSHCredentials} }

// AddFlags adds the flags that choose a cluster of one of the engines, and say how to log in to its hosts.
func (c *Cluster) AddFlags(flags *flag.FlagSet, engines engine.Registry) {
	flags.StringVar(&c.Engine, "engine", engines.Default(),
		fmt.Sprintf("`engine` of the cluster: %s", strings.Join(engines.Names(), ", ")))
	flags.StringVar(&c.Endpoint, "endpoint", "",
		"`endpoint` of the cluster: "+engines.Say(func(d engine.Driver) string {
			return d.Endpoint
		})+"; if omitted, the engine's default")
	flags.StringVar(&c.Name, "cluster", "", "`name` of the cluster; may be omitted if there is only one")
	c.SSH.AddFlags(flags)
}
