package resourcekit

import (
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// OrNull returns a pointer to a value, or nil for the zero value.
func OrNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// TextOrNull returns a string that is null if empty.
func TextOrNull(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}

// Value returns what a pointer points at, or the zero value for nil.
func Value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// Integer converts a pointer to a number; nil stays nil.
func Integer[To, From int | int64](n *From) *To {
	if n == nil {
		return nil
	}
	converted := To(*n)
	return &converted
}

// CompactMap returns nil for an empty map, as documents don't distinguish the two.
func CompactMap(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

// StringMap converts a map of strings to Terraform's, without reflection.
func StringMap(m map[string]string) types.Map {
	elements := make(map[string]attr.Value, len(m))
	for key, value := range m {
		elements[key] = types.StringValue(value)
	}
	return types.MapValueMust(types.StringType, elements)
}

// Moment returns a time in RFC 3339; null if there is none.
func Moment(t *time.Time) timetypes.RFC3339 {
	if t == nil || t.IsZero() {
		return timetypes.NewRFC3339Null()
	}
	return timetypes.NewRFC3339TimeValue(t.UTC())
}

// settled reports whether a value is fully known, and no element of a list or map in it is null.
func settled(v tftypes.Value) bool {
	switch {
	case !v.IsKnown():
		return false
	case v.IsNull():
		return true
	case v.Type().Is(tftypes.Object{}):
		return SettledAttributes(v)
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

// SettledAttributes reports whether all attributes of an object are settled, except those named.
func SettledAttributes(object tftypes.Value, except ...string) bool {
	var attributes map[string]tftypes.Value // the object's own map: don't change it
	err := object.As(&attributes)
	for name, attribute := range attributes {
		if !slices.Contains(except, name) && !settled(attribute) {
			return false
		}
	}
	return err == nil
}

// KnownAttribute reports whether an attribute of an object is fully known.
func KnownAttribute(object tftypes.Value, name string) bool {
	var attributes map[string]tftypes.Value
	err := object.As(&attributes)
	return err == nil && attributes[name].IsFullyKnown()
}

// StringOr returns a string, or the fallback if it is null or empty.
func StringOr(s types.String, fallback string) string {
	if s.ValueString() == "" {
		return fallback
	}
	return s.ValueString()
}

// ConvertMap returns a map with its values converted; nil if it is empty.
func ConvertMap[From, To any](m map[string]From, convert func(From) To) map[string]To {
	if len(m) == 0 {
		return nil
	}
	converted := make(map[string]To, len(m))
	for name, v := range m {
		converted[name] = convert(v)
	}
	return converted
}

// ListsIn returns the elements of a map of lists of strings; nil if it is null or unknown.
func ListsIn(m types.Map) map[string][]string {
	if m.IsNull() || m.IsUnknown() {
		return nil
	}
	lists := map[string][]string{}
	for key, element := range m.Elements() {
		list := []string{}
		if found, ok := element.(types.List); ok {
			for _, item := range found.Elements() {
				if text, ok := item.(types.String); ok {
					list = append(list, text.ValueString())
				}
			}
		}
		lists[key] = list
	}
	return lists
}

// TextsIn returns the elements of a map of strings; none if it is null or unknown.
func TextsIn(m types.Map) map[string]string {
	elements := map[string]string{}
	for key, element := range m.Elements() {
		if text, ok := element.(types.String); ok {
			elements[key] = text.ValueString()
		}
	}
	return elements
}

// OfHosts returns the elements of a map of strings by host for the hosts of a cluster, without those of others.
func OfHosts(byHost types.Map, cluster domain.Cluster) types.Map {
	elements := TextsIn(byHost)
	maps.DeleteFunc(elements, func(host, _ string) bool {
		_, found := cluster.Hosts[host]
		return !found
	})
	return StringMap(elements)
}

// NamesOf returns names as plain strings.
func NamesOf[T ~string](names []T) []string {
	plain := make([]string, len(names))
	for i, name := range names {
		plain[i] = string(name)
	}
	return plain
}
