// Package command is what the commands for people have in common: which cluster they are about.
package command

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
)

// The names of the engines that the flags choose between.
const (
	processEngine = "process"
	swarmEngine   = "swarm"
)

// Cluster is what the arguments of a command say about the cluster that it is for.
type Cluster struct {
	// Engine is the name of the cluster's engine.
	Engine string
	// StateDir is an absolute path, and empty for the engine's own default.
	StateDir   string
	DockerHost string
	// Name is empty for the only cluster that there is.
	Name string
}

// AddFlags has a command take the flags that choose a cluster.
func (c *Cluster) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&c.StateDir, "state-dir", "", "state `directory` of the provider; its default where this is left out")
	flags.StringVar(&c.DockerHost, "docker-host", "", "`address` of a manager of a Docker Swarm, as DOCKER_HOST has it; empty for the Engine that docker itself would use")
	flags.StringVar(&c.Name, "cluster", "", "`name` of the cluster; the only one there where this is left out")
}

// Complete takes from flags that were parsed which engine they choose.
func (c *Cluster) Complete(flags *flag.FlagSet) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	c.Engine = processEngine
	if given["docker-host"] {
		c.Engine = swarmEngine
	}
	if given["docker-host"] && given["state-dir"] {
		return errors.New("a cluster is in a state directory, or on a Docker Swarm: give --state-dir or --docker-host, not both")
	}
	if c.StateDir == "" {
		return nil
	}
	var err error
	c.StateDir, err = filepath.Abs(c.StateDir)
	return err
}

// reach has the Docker client look where the flags say. The flag stands for the variable, with all that belongs to it: certificates, and a host
// without a scheme.
func (c Cluster) reach() error {
	if c.DockerHost == "" {
		return nil
	}
	return os.Setenv("DOCKER_HOST", c.DockerHost)
}
