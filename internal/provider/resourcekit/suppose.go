package resourcekit

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/provider/packed"
)

// ValidateKnown applies rules for fully known configurations to one with unknown values.
func ValidateKnown[M any](
	ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics, rules func(M, *diag.Diagnostics) domain.Problems,
) {
	supposed, unknown, err := Suppose(ctx, config, diags)
	if err != nil {
		diags.AddError("Unable to check the configuration", err.Error())
		return
	}
	var model M
	if found := supposed.Get(ctx, &model); found.HasError() {
		diags.Append(found...)
		return
	}
	var malformed diag.Diagnostics // the attributes' own validators report these
	AddProblems(diags, rules(model, &malformed).Certain(unknown))
}

// Suppose returns a configuration with unknown values replaced by null, or by something empty if they are required, and
// their paths. A fraction for a whole number is an error, and counts as unknown.
func Suppose(
	ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics,
) (supposed tfsdk.Config, unknown []domain.Path, err error) {
	s := &supposer{ctx, config, diags, nil}
	raw, err := tftypes.Transform(config.Raw, s.suppose)
	return tfsdk.Config{Schema: config.Schema, Raw: raw}, s.unknown, err
}

// supposer replaces the unknown values of a configuration.
type supposer struct {
	ctx     context.Context
	config  tfsdk.Config
	diags   *diag.Diagnostics
	unknown []domain.Path
}

// suppose returns the value at a path, or its substitute.
func (s *supposer) suppose(at *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
	if a := s.packed(at, v); a != nil {
		return packed.Transform(a, v, func(within *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
			return s.suppose(tftypes.NewAttributePathWithSteps(slices.Concat(at.Steps(), within.Steps())), v)
		})
	}
	switch missing := !v.IsKnown() || v.IsNull() && isElement(at); {
	case s.isFraction(at, v):
		where := pathOf(domainPath(at))
		s.diags.AddAttributeError(where, "Not a whole number",
			fmt.Sprintf("%s: only whole numbers are allowed here; use floor or ceil", where))
	case !missing:
		return v, nil
	}
	s.unknown = append(s.unknown, domainPath(at))
	return s.leastOf(v.Type(), at), nil
}

// packed returns the type of a packed value that is not settled; nil for other values.
func (s *supposer) packed(at *tftypes.AttributePath, v tftypes.Value) packed.Attribute {
	if len(at.Steps()) != 1 {
		return nil
	}
	attribute, err := s.config.Schema.AttributeAtTerraformPath(s.ctx, at)
	if err != nil {
		return nil
	}
	a, _ := attribute.GetType().(packed.Attribute)
	var encoded string
	if a == nil || !v.IsKnown() || v.IsNull() || v.As(&encoded) != nil || packed.Settled(encoded) {
		return nil
	}
	return a
}

// leastOf returns the substitute for a value at a path: null, or something empty if null is not allowed.
func (s *supposer) leastOf(of tftypes.Type, at *tftypes.AttributePath) tftypes.Value {
	if attribute, err := s.config.Schema.AttributeAtTerraformPath(s.ctx, at); err == nil && !attribute.IsRequired() {
		return tftypes.NewValue(of, nil)
	}
	switch typ := of.(type) {
	case tftypes.Object:
		attributes := make(map[string]tftypes.Value, len(typ.AttributeTypes))
		for name, attribute := range typ.AttributeTypes {
			attributes[name] = s.leastOf(attribute, at.WithAttributeName(name))
		}
		return tftypes.NewValue(of, attributes)
	case tftypes.Map:
		return tftypes.NewValue(of, map[string]tftypes.Value{})
	case tftypes.List, tftypes.Set:
		return tftypes.NewValue(of, []tftypes.Value{})
	}
	for _, zero := range []any{"", 0, false} {
		if tftypes.ValidateValue(of, zero) == nil {
			return tftypes.NewValue(of, zero)
		}
	}
	return tftypes.NewValue(of, nil)
}

// isFraction reports whether a value is a known fraction though its attribute is a whole number.
func (s *supposer) isFraction(at *tftypes.AttributePath, v tftypes.Value) bool {
	if !v.IsKnown() || v.IsNull() || !v.Type().Is(tftypes.Number) {
		return false
	}
	var number big.Float
	attribute, err := s.config.Schema.AttributeAtTerraformPath(s.ctx, at)
	return err == nil && attribute.GetType().Equal(types.Int64Type) && v.As(&number) == nil && !number.IsInt()
}

// isElement reports whether a path leads to an element of a list or map.
func isElement(at *tftypes.AttributePath) bool {
	_, attribute := at.LastStep().(tftypes.AttributeName)
	return at.LastStep() != nil && !attribute
}

// domainPath converts a path of Terraform's to the domain's.
func domainPath(at *tftypes.AttributePath) domain.Path {
	var path domain.Path
	for _, step := range at.Steps() {
		switch s := step.(type) {
		case tftypes.AttributeName:
			path = append(path, string(s))
		case tftypes.ElementKeyString:
			path = append(path, domain.Key(s))
		case tftypes.ElementKeyInt:
			path = append(path, int(s))
		}
	}
	return path
}
