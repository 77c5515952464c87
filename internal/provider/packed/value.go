package packed

import (
	"context"
	"fmt"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/vmihailenco/msgpack/v5"
)

// Packable are the types that can be packed.
type Packable interface {
	map[string]string | map[string]map[string]string
}

// Attribute is the common part of all types of packed attributes.
type Attribute interface {
	attr.Type
	// StandsFor returns the type that Terraform sees.
	StandsFor() tftypes.Type
}

// Type is the type of a packed attribute in a schema.
type Type[T Packable] struct{ basetypes.StringType }

// Value is a packed attribute in a model. The zero value is null.
type Value[T Packable] struct{ basetypes.StringValue }

var (
	_ Attribute                = Type[map[string]string]{}
	_ basetypes.StringTypable  = Type[map[string]string]{}
	_ basetypes.StringValuable = Value[map[string]string]{}
)

// Of packs a value; nil becomes null.
func Of[T Packable](v T) Value[T] {
	if v == nil {
		return Value[T]{}
	}
	encoded, err := msgpack.Marshal(v)
	if err != nil {
		panic(err) // maps of strings always encode
	}
	return Value[T]{basetypes.NewStringValue(string(encoded))}
}

// Unpack returns the unpacked value, and false if it is null, or if anything in it is null or unknown.
func (v Value[T]) Unpack() (unpacked T, settled bool) {
	if v.IsNull() || v.IsUnknown() || !Settled(v.ValueString()) {
		return nil, false
	}
	err := msgpack.Unmarshal([]byte(v.ValueString()), &unpacked)
	return unpacked, err == nil
}

// Settled reports whether everything is known and nothing within it is null. The value itself may be null.
func (v Value[T]) Settled() bool {
	return v.IsNull() || !v.IsUnknown() && Settled(v.ValueString())
}

// Meaning returns the unpacked value, or nil if it is not settled.
func (v Value[T]) Meaning() any {
	if unpacked, settled := v.Unpack(); settled {
		return unpacked
	}
	return nil
}

// Spelled returns an attribute with a meaning: v itself if it means that already. Empty and null mean the same.
func (v Value[T]) Spelled(meaning any) any {
	own, _ := v.Unpack()
	of, _ := meaning.(T)
	if v.Settled() && (len(own)+len(of) == 0 || reflect.DeepEqual(own, of)) {
		return v
	}
	return Of(of)
}

// Type implements [attr.Value].
func (Value[T]) Type(context.Context) attr.Type { return Type[T]{} }

// Equal implements [attr.Value].
func (v Value[T]) Equal(other attr.Value) bool {
	o, same := other.(Value[T])
	return same && v.StringValue.Equal(o.StringValue)
}

// StandsFor implements [Attribute].
func (Type[T]) StandsFor() tftypes.Type { return typeOf(reflect.TypeFor[T]()) }

func typeOf(t reflect.Type) tftypes.Type {
	if t.Kind() == reflect.Map {
		return tftypes.Map{ElementType: typeOf(t.Elem())}
	}
	return tftypes.String
}

// String implements [attr.Type].
func (t Type[T]) String() string { return fmt.Sprintf("packed %s", t.StandsFor()) }

// Equal implements [attr.Type].
func (Type[T]) Equal(other attr.Type) bool {
	_, same := other.(Type[T])
	return same
}

// ValueType implements [attr.Type].
func (Type[T]) ValueType(context.Context) attr.Value { return Value[T]{} }

// ValueFromString implements [basetypes.StringTypable].
func (Type[T]) ValueFromString(
	_ context.Context, s basetypes.StringValue,
) (basetypes.StringValuable, diag.Diagnostics) {
	return Value[T]{s}, nil
}

// ValueFromTerraform implements [attr.Type].
func (t Type[T]) ValueFromTerraform(ctx context.Context, v tftypes.Value) (attr.Value, error) {
	held, err := t.StringType.ValueFromTerraform(ctx, v)
	if s, ok := held.(basetypes.StringValue); ok {
		return Value[T]{s}, nil
	}
	return nil, err
}
