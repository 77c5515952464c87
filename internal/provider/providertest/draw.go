package providertest

import (
	"github.com/hashicorp/terraform-plugin-framework/types"
	"pgregory.net/rapid"
)

// Require is the common part of *testing.T and *rapid.T.
type Require interface{ Fatalf(string, ...any) }

var spellings = []string{"60s", "1m", "1m0s", "0s", "1h30m", "90m"}

// Optional draws nil or a pointer.
func Optional[V any](g *rapid.Generator[V]) *rapid.Generator[*V] { return rapid.Ptr(g, true) }

// Nilable draws a nil, empty or filled list.
func Nilable[V any](g *rapid.Generator[V]) *rapid.Generator[[]V] {
	return rapid.OneOf(rapid.Just([]V(nil)), rapid.SliceOfN(g, 0, 3))
}

// NilableMap draws a nil, empty or filled map.
func NilableMap() *rapid.Generator[map[string]string] {
	return rapid.OneOf(rapid.Just(map[string]string(nil)),
		rapid.MapOfN(rapid.StringMatching("[a-z]{1,3}"), rapid.String(), 0, 3))
}

// DrawNumber draws null or a number from 0 to most.
func DrawNumber(t *rapid.T, most float64, label string) types.Float64 {
	if drawn := Optional(rapid.Float64Range(0, most)).Draw(t, label); drawn != nil {
		return Inexact(*drawn)
	}
	return types.Float64Null()
}

// DrawDuration draws null or a duration in one of several spellings.
func DrawDuration(t *rapid.T) types.String {
	if rapid.Bool().Draw(t, "null") {
		return types.StringNull()
	}
	return types.StringValue(rapid.SampledFrom(spellings).Draw(t, "duration"))
}
