//go:build linux

package suite

import (
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/trainyard/terraform-provider-trainyard/internal/acceptance"
)

// An import restores everything in the configuration: the plan after it is empty.
func imports(l *Lab) {
	config := l.job(acceptance.Rich)
	by := func(kind resource.ImportStateKind, name, id string) resource.TestStep {
		return resource.TestStep{
			Config: config, ResourceName: name, ImportState: true, ImportStateKind: kind, ImportStateId: id,
			ImportStateVerify: kind == resource.ImportCommandWithID,
		}
	}
	failing := func(name, id string, phrases ...string) resource.TestStep {
		step := by(resource.ImportCommandWithID, name, id)
		step.ExpectError = acceptance.Says(phrases...)
		return step
	}
	l.test(
		resource.TestStep{Config: config},
		by(resource.ImportCommandWithID, acceptance.TheLab, l.importID()),
		by(resource.ImportCommandWithID, acceptance.TheJob, l.importID("job")),
		// These check that the plan is empty.
		by(resource.ImportBlockWithID, acceptance.TheLab, l.importID()),
		by(resource.ImportBlockWithID, acceptance.TheJob, l.importID("job")),
		failing(acceptance.TheLab, "nowhere", `cluster "nowhere"`, l.Nowhere),
		failing(acceptance.TheJob, "job", `"job" is not the ID of a group`, `<cluster>/<group>`),
		failing(acceptance.TheLab, l.ImportFrom+"nowhere", `cluster "nowhere"`),
		failing(acceptance.TheJob, l.importID("nothing"), `Cannot import non-existent remote object`),
	)
}
