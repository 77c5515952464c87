package provider

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// The documents leave out what is empty and write durations in one way only. A user may write an empty list or
// "60s" all the same. The functions called keep… return what a document says, in the spelling of a prior value
// where that means the same, so that reading makes no difference where there is none.

// keepZero returns a value that is null where it is zero, unless prior is zero and not null.
func keepZero[T comparable](current T, prior *T) *T {
	var zero T
	if current == zero && (prior == nil || *prior != zero) {
		return nil
	}
	return &current
}

// keepNumber returns prior if it equals a number: the result of an expression such as 1 / 3 has more digits than
// what is stored of it.
func keepNumber(current *float64, prior types.Float64) types.Float64 {
	if before := prior.ValueFloat64Pointer(); current != nil && before != nil && !prior.IsUnknown() && *before == *current {
		return prior
	}
	return types.Float64PointerValue(current)
}

// keepZeroNumber does for such a number what keepZero does for others.
func keepZeroNumber(current float64, prior types.Float64) types.Float64 {
	return keepNumber(keepZero(current, prior.ValueFloat64Pointer()), prior)
}

// keepList returns a list that is null where it is empty, unless prior is empty and not null.
func keepList[T any](current, prior []T) []T {
	if len(current) > 0 {
		return current
	}
	if prior != nil && len(prior) == 0 {
		return prior
	}
	return nil
}

// keepMap does for a map what keepList does for a list.
func keepMap[V any](current, prior map[string]V) map[string]V {
	if len(current) > 0 {
		return current
	}
	if prior != nil && len(prior) == 0 {
		return prior
	}
	return nil
}

// keepObject returns an object that is null where all in it is, unless prior is an object.
func keepObject[T any](current T, prior *T) *T {
	if prior == nil && reflect.ValueOf(current).IsZero() {
		return nil
	}
	return &current
}

// keepDuration returns a duration as prior writes it, where that is equal.
func keepDuration(current *domain.Duration, prior types.String) types.String {
	if current == nil {
		return types.StringNull()
	}
	if d, err := time.ParseDuration(prior.ValueString()); err == nil && d == time.Duration(*current) {
		return prior
	}
	return types.StringValue(current.String())
}

// keepMode returns the permissions of a file as prior writes them, where that is equal.
func keepMode(current uint32, prior types.String) types.String {
	if current == 0 {
		return types.StringNull()
	}
	if mode, err := strconv.ParseUint(prior.ValueString(), 8, 32); err == nil && uint32(mode) == current {
		return prior
	}
	return types.StringValue(fmt.Sprintf("%04o", current))
}

// textOrNull returns a string that is null where it is empty.
func textOrNull(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

// value returns what a pointer points at, the zero value for nil.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// integer converts a pointer to a number, nil included.
func integer[To, From int | int64](n *From) *To {
	if n == nil {
		return nil
	}
	converted := To(*n)
	return &converted
}

// compact returns nil for a list without elements: documents do not tell the two apart.
func compact(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

// compactMap does for a map what compact does for a list.
func compactMap(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

// duration returns a configured duration, nil where it is null.
func duration(d types.String, diags *diag.Diagnostics) *domain.Duration {
	if d.IsNull() {
		return nil
	}
	parsed, err := time.ParseDuration(d.ValueString())
	if err != nil {
		diags.AddError(invalidDuration, err.Error())
		return nil
	}
	return (*domain.Duration)(&parsed)
}

// stringMap returns a map of strings as Terraform's, without the detour of reflection.
func stringMap(m map[string]string) types.Map {
	elements := make(map[string]attr.Value, len(m))
	for key, value := range m {
		elements[key] = types.StringValue(value)
	}
	return types.MapValueMust(types.StringType, elements)
}

// moment returns a time in RFC 3339, null where there is none.
func moment(t *time.Time) timetypes.RFC3339 {
	if t == nil || t.IsZero() {
		return timetypes.NewRFC3339Null()
	}
	return timetypes.NewRFC3339TimeValue(t.UTC())
}

// settled tells whether a value is known in all its parts, and no element of a list or map in it is null.
func settled(v tftypes.Value) bool {
	switch {
	case !v.IsKnown():
		return false
	case v.IsNull():
		return true
	case v.Type().Is(tftypes.Object{}):
		return settledAttributes(v)
	case v.Type().Is(tftypes.Map{}):
		var elements map[string]tftypes.Value
		err := v.As(&elements)
		for _, element := range elements {
			if element.IsNull() || !settled(element) {
				return false
			}
		}
		return err == nil
	case v.Type().Is(tftypes.List{}):
		var elements []tftypes.Value
		err := v.As(&elements)
		for _, element := range elements {
			if element.IsNull() || !settled(element) {
				return false
			}
		}
		return err == nil
	}
	return true
}

// settledAttributes tells whether an object is settled in all attributes but those named.
func settledAttributes(object tftypes.Value, except ...string) bool {
	var attributes map[string]tftypes.Value // the object's own map, which must not be changed
	err := object.As(&attributes)
	for name, attribute := range attributes {
		if !slices.Contains(except, name) && !settled(attribute) {
			return false
		}
	}
	return err == nil
}
