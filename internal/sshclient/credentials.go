package sshclient

import "github.com/trainyard/terraform-provider-trainyard/internal/engine"

// Credentials are how to log in to hosts, and to their jump host: keys given here or by their files are offered first,
// and the default key files are not. The zero value uses what the environment offers: the agent, the default key and
// known_hosts files.
type Credentials = engine.SSHCredentials
