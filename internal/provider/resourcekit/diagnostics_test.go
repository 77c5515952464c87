package resourcekit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

func TestPathOf(t *testing.T) {
	for want, p := range map[string]domain.Path{
		``:                       nil,
		`name`:                   {"name"},
		`roles["worker"].port`:   {"roles", domain.Key("worker"), "port"},
		`mounts[2].source`:       {"mounts", 2, "source"},
		`hosts["a"].labels["b"]`: {"hosts", domain.Key("a"), "labels", domain.Key("b")},
	} {
		if got := pathOf(p).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestAddProblems(t *testing.T) {
	var problems domain.Problems
	problems.Add(domain.Path{"name"}, "Bad", "is %q", "x")
	problems.Warn(domain.Path{"roles", domain.Key("a")}, "Odd", "is so")
	problems.Add(nil, "Wrong", "all of it")
	problems.Warn(nil, "Strange", "all of it")
	var diags diag.Diagnostics
	AddProblems(&diags, problems)

	want := diag.Diagnostics{
		diag.NewAttributeErrorDiagnostic(path.Root("name"), "Bad", `name: is "x"`),
		diag.NewAttributeWarningDiagnostic(path.Root("roles").AtMapKey("a"), "Odd", `roles["a"]: is so`),
		diag.NewErrorDiagnostic("Wrong", "all of it"),
		diag.NewWarningDiagnostic("Strange", "all of it"),
	}
	if !diags.Equal(want) {
		t.Errorf("got %v, want %v", diags, want)
	}
}

func TestAddError(t *testing.T) {
	for name, test := range map[string]struct {
		err             error
		summary, detail string
	}{
		"locked": {
			fmt.Errorf("apply: %w", &engine.LockedError{Lock: "group a", Holder: engine.Holder{Who: "eve@host"}}),
			"Locked by another run", "locked by eve@host",
		},
		"corrupt": {
			&engine.CorruptError{Where: "/state/a.json", Err: errors.New("no JSON")}, "Corrupt document",
			"/state/a.json",
		},
		"exists": {&reconcile.ExistsError{Cluster: "lab", Group: "a"}, "Group already exists", "lab/a"},
		"member": {&reconcile.MemberError{
			Member: domain.Observed{Name: "a-w-0"}, Cause: "exit code 3", Log: []string{"last words"},
		}, "Member failed", "last words"},
		"conflict": {fmt.Errorf("put: %w", engine.ErrConflict), "Unable to do it", "Plan and apply again"},
		"timeout":  {fmt.Errorf("wait: %w", context.DeadlineExceeded), "Unable to do it", "timeouts"},
		"other":    {errors.New("disk full"), "Unable to do it", "disk full"},
	} {
		var diags diag.Diagnostics
		AddError(&diags, "Unable to do it", test.err)
		if len(diags) != 1 || diags[0].Summary() != test.summary || !strings.Contains(diags[0].Detail(), test.detail) {
			t.Errorf("%s: got %v", name, diags)
		}
	}
}

// Only a group that was not rolled back can be inspected.
func TestAddErrorOfRollback(t *testing.T) {
	failure := &reconcile.MemberError{Member: domain.Observed{Name: "a-w-0"}, Cause: "exit code 3"}
	for err, left := range map[error]bool{failure: true, &reconcile.RolledBackError{Failure: failure}: false} {
		var diags diag.Diagnostics
		AddError(&diags, "Unable to do it", err)
		if len(diags) != 1 || diags[0].Summary() != "Member failed" ||
			!strings.HasPrefix(diags[0].Detail(), err.Error()) ||
			strings.Contains(diags[0].Detail(), "left as it is") != left {
			t.Errorf("got %v", diags)
		}
	}
}

// FuzzAddError: whatever text from outside an error contains, it is added once, under a summary of
// ours, with what is known.
func FuzzAddError(f *testing.F) {
	for _, text := range []string{"", "last words", "\x1b[2J", "a\nb", "caf\xe9", "%s %d", strings.Repeat("x", 1<<16)} {
		f.Add(text, text)
	}
	const headline = "Unable to do it"
	f.Fuzz(func(t *testing.T, name, text string) {
		var problems domain.Problems
		problems.Add(domain.Path{"roles", domain.Key(name), "image"}, "Invalid image", "%q is not one", text)
		for want, err := range map[string]error{
			"Invalid image": problems,
			"Locked by another run": fmt.Errorf("apply: %w",
				&engine.LockedError{Lock: name, Holder: engine.Holder{Who: text, Operation: text}}),
			"Corrupt document":                  &engine.CorruptError{Where: name, Err: errors.New(text)},
			headline:                            errors.New(text),
			"Group already exists":              &reconcile.ExistsError{Cluster: name, Group: text},
			"Autoscaling policy already exists": &reconcile.PolicyExistsError{Group: name, Role: text},
			"Member failed": &reconcile.MemberError{
				Member: domain.Observed{Name: name, Host: text}, Cause: text, Log: []string{text, name},
			},
		} {
			var diags diag.Diagnostics
			AddError(&diags, headline, err)
			if len(diags) != 1 || diags[0].Severity() != diag.SeverityError || diags[0].Summary() != want {
				t.Fatalf("%q, %q: got %v, want %q", name, text, diags, want)
			}
			if room := 10*(len(name)+len(text)) + 1000; len(diags[0].Detail()) > room ||
				diags[0].Detail() == "" && text != "" {
				t.Errorf("%s: the detail has %d bytes, of %d", want, len(diags[0].Detail()), room)
			}
		}
	})
}

// The addition is at the end of the last error, and changes nothing else.
func TestAddDestroyRegardless(t *testing.T) {
	var diags diag.Diagnostics
	diags.AddAttributeError(path.Root("a"), "A", "first")
	diags.AddAttributeError(path.Root("b"), "B", "last")
	diags.AddWarning("C", "a warning")
	want := slices.Clone(diags)
	want[1] = diag.NewAttributeErrorDiagnostic(path.Root("b"), "B", "last\n\n"+DestroyRegardless)
	if AddDestroyRegardless(&diags); !diags.Equal(want) {
		t.Errorf("got %v", diags)
	}
	warned := diag.Diagnostics{diag.NewWarningDiagnostic("C", "a warning")}
	if AddDestroyRegardless(&warned); warned.HasError() || len(warned) != 1 {
		t.Errorf("got %v of a warning", warned)
	}
}
