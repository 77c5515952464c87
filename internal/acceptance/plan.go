//go:build linux

package acceptance

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

// Action checks that the plan has a single action for the group.
func Action(want plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return Planned(plancheck.ExpectResourceAction(TheJob, want))
}

// Planned applies checks to the plan before the apply.
func Planned(checks ...plancheck.PlanCheck) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: checks}
}

// Shows checks that the plan changes an attribute of a resource from one value to another. Values are compared as
// printed.
func Shows(resource string, path tfjsonpath.Path, before, after any) plancheck.PlanCheck {
	return shows{resource, path, before, after}
}

type shows struct {
	resource      string
	path          tfjsonpath.Path
	before, after any
}

func (s shows) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	for _, change := range req.Plan.ResourceChanges {
		if change.Address != s.resource {
			continue
		}
		got := [2]string{valueAt(change.Change.Before, s.path), valueAt(change.Change.After, s.path)}
		if want := [2]string{fmt.Sprint(s.before), fmt.Sprint(s.after)}; got != want {
			resp.Error = fmt.Errorf("the plan shows %s of %s go from %s to %s, want from %s to %s",
				s.path, s.resource, got[0], got[1], want[0], want[1])
		}
		return
	}
	resp.Error = fmt.Errorf("the plan has no %s", s.resource)
}

func valueAt(object any, path tfjsonpath.Path) string {
	v, err := tfjsonpath.Traverse(object, path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(v)
}

// Attribute is the path of an attribute, including elements of maps.
func Attribute(name string, keys ...string) tfjsonpath.Path {
	path := tfjsonpath.New(name)
	for _, key := range keys {
		path = path.AtMapKey(key)
	}
	return path
}
