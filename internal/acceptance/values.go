//go:build linux

package acceptance

import (
	"fmt"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
)

// Differences returns the difference between a result and the expected one as an error.
func Differences(want, got any) error {
	if diff := gocmp.Diff(want, got); diff != "" {
		return fmt.Errorf("(-want +got)\n%s", diff)
	}
	return nil
}

// Changes returns a check that exactly these members were added (+), restarted (~) or removed (-) since the instances
// in seen. It stores the current instances in seen.
func Changes(seen *map[string]string, now func() map[string]string, want []string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		before := *seen
		*seen = now()
		got := changed(before, *seen)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			return fmt.Errorf("the members changed as %q, want %q", got, want)
		}
		return nil
	}
}

// changed returns which members were added (+), restarted (~) or removed (-), sorted.
func changed(before, now map[string]string) []string {
	var got []string
	for name, instance := range now {
		switch former, found := before[name]; {
		case !found:
			got = append(got, "+"+name)
		case former != instance:
			got = append(got, "~"+name)
		}
	}
	for name := range before {
		if _, found := now[name]; !found {
			got = append(got, "-"+name)
		}
	}
	slices.Sort(got)
	return got
}

// Texts checks a map of strings in a state.
func Texts(m map[string]string) knownvalue.Check {
	checks := make(map[string]knownvalue.Check, len(m))
	for key, value := range m {
		checks[key] = knownvalue.StringExact(value)
	}
	return knownvalue.MapExact(checks)
}
