package command_test

import (
	"flag"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

func TestSSH(t *testing.T) {
	var ssh command.SSH
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	ssh.AddFlags(flags)
	err := flags.Parse([]string{
		"--user", "ops", "--identity-file", "a", "--identity-file", "b", "--known-hosts-file", "c", "--jump-host",
		"ops@bastion:2222",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := engine.SSHCredentials{
		User: "ops", IdentityFiles: []string{"a", "b"}, KnownHosts: []string{"c"}, JumpHost: "ops@bastion:2222",
	}
	if diff := cmp.Diff(want, ssh.SSHCredentials); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
