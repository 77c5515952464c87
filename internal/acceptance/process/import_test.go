//go:build linux

package process_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
)

// Terraform supports import by identity since 1.12.
func TestAccImportByIdentity(t *testing.T) {
	l := newLab(t)
	config := l.job(acceptance.Rich)
	by := func(name string) resource.TestStep {
		return resource.TestStep{
			ResourceName: name, ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity,
		}
	}
	resource.Test(t, resource.TestCase{
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_12_0)},
		ProtoV6ProviderFactories: l.providers(),
		Steps:                    []resource.TestStep{{Config: config}, by(acceptance.TheLab), by(acceptance.TheJob)},
	})
}
