//go:build linux

package acceptance

import (
	"os"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider"
)

// Test marks a test that needs Terraform, and that runs in parallel with others.
func Test(t *testing.T) {
	t.Helper()
	if os.Getenv(resource.EnvTfAcc) == "" {
		t.Skip("acceptance tests run with TF_ACC=1, as by make testacc")
	}
	t.Parallel()
}

// Providers returns the provider in this process, with these engines.
func Providers(engines engine.Registry) map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"trainyard": func() (tfprotov6.ProviderServer, error) { return provider.NewServer("test", engines), nil },
	}
}
