package command

import (
	"flag"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// SSH is what the arguments of a command say about how to log in to hosts. What is left out is taken from the
// environment, as for the provider.
type SSH struct{ engine.SSHCredentials }

// AddFlags has a command take the flags that say how to log in. They are called as the provider's settings are.
func (s *SSH) AddFlags(flags *flag.FlagSet) {
	appendTo := func(list *[]string) func(string) error {
		return func(value string) error {
			*list = append(*list, value)
			return nil
		}
	}
	flags.StringVar(&s.User, "user", "",
		"`name` of the user to log in as if an address has none; defaults to the user of this process")
	flags.Func("identity-file",
		"`file` with a private key; may be repeated; defaults to the SSH agent's keys and the default files",
		appendTo(&s.IdentityFiles))
	flags.Func("known-hosts-file", "`file` with the keys of hosts; may be repeated; defaults to those of OpenSSH",
		appendTo(&s.KnownHosts))
	flags.StringVar(&s.JumpHost, "jump-host", "", "`host` through which all others are reached, as [user@]host[:port]")
}
