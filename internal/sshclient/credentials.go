package sshclient

import "github.com/trainyard/terraform-provider-trainyard/internal/engine"

// Credentials are how to log in to hosts and their jump host. Keys given as text or by file are offered first, instead
// of the default key files. The zero value uses the environment: the agent, and the default key and known_hosts files.
type Credentials = engine.SSHCredentials
