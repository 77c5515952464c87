package provider

import (
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// orNull returns a pointer to a value, nil for null where it is zero.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
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

// compactMap returns nil for a map without elements: documents don't tell the two apart.
func compactMap(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
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
