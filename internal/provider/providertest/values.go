package providertest

import (
	"context"
	"fmt"
	"math/big"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// terraformPrecision is the precision of Terraform's numbers in bits; a float64 has 53.
const terraformPrecision = 512

// Third returns 1/3 as Terraform computes it.
func Third() *big.Float {
	precise := func(n int64) *big.Float { return new(big.Float).SetPrec(terraformPrecision).SetInt64(n) }
	return new(big.Float).Quo(precise(1), precise(3))
}

// Inexact returns a number as an expression may yield it: it is no float64, and rounds to v.
func Inexact(v float64) types.Float64 {
	precise := new(big.Float).SetPrec(terraformPrecision).SetFloat64(v)
	precise.Add(precise, new(big.Float).SetMantExp(precise, -200))
	built, err := types.Float64Type.ValueFromTerraform(context.Background(), tftypes.NewValue(tftypes.Number, precise))
	number, ok := built.(types.Float64)
	if err != nil || !ok {
		panic(fmt.Sprintf("%T is not a number: %v", built, err))
	}
	return number
}

// Raw converts a value of the framework to Terraform's.
func Raw(t *testing.T, v attr.Value) tftypes.Value {
	t.Helper()
	converted, err := v.ToTerraformValue(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return converted
}

// Text returns a string as Terraform's value.
func Text(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }

// TextsOf returns the elements of a map of strings.
func TextsOf(t *testing.T, v tftypes.Value) map[string]string {
	t.Helper()
	var elements map[string]tftypes.Value
	if err := v.As(&elements); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for key, element := range elements {
		var s string
		if err := element.As(&s); err != nil {
			t.Fatal(err)
		}
		texts[key] = s
	}
	return texts
}

// NoTimeouts returns the value of timeouts that are not configured.
func NoTimeouts(s schema.Schema) timeouts.Value {
	object, ok := s.Attributes["timeouts"].GetType().(attr.TypeWithAttributeTypes)
	if !ok {
		panic("timeouts are no object")
	}
	return timeouts.Value{Object: types.ObjectNull(object.AttributeTypes())}
}

// UUIDLists returns UUIDs by host as the attribute devices of a pool.
func UUIDLists(byHost map[string][]string) types.Map {
	if byHost == nil {
		return types.MapNull(types.ListType{ElemType: types.StringType})
	}
	lists := map[string]attr.Value{}
	for host, uuids := range byHost {
		var elements []attr.Value
		for _, uuid := range uuids {
			elements = append(elements, types.StringValue(uuid))
		}
		lists[host] = types.ListValueMust(types.StringType, elements)
	}
	return types.MapValueMust(types.ListType{ElemType: types.StringType}, lists)
}
