package resourcekit

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Models and types of the domain correspond by their tags: a field with the tag tfsdk matches the field with the same
// json tag. Fields without a counterpart are left alone. Null corresponds to an omitted value, nil or the zero value of
// a field with omitempty or omitzero, as documents don't distinguish these.

// custom is a model type with a mapping of its own.
type custom interface {
	// Meaning returns the domain's value, or nil for null.
	Meaning() any
	// Spelled returns a model value with this meaning, in its present spelling if that means the same.
	Spelled(meaning any) any
}

// Expand fills a struct of the domain from a model. Unknown values count as null.
func Expand(into, model any, diags *diag.Diagnostics) {
	expandFields(reflect.ValueOf(model), reflect.ValueOf(into).Elem(), path.Empty(), diags)
}

// Flatten returns the model of a struct of the domain. Values that mean the same in prior keep its spelling, such as
// "60s" for "1m0s", an empty list for none, or a number with more digits than are stored.
func Flatten[M any](from any, prior M) M {
	flattenFields(reflect.ValueOf(from), reflect.ValueOf(&prior).Elem())
	return prior
}

func expandFields(model, into reflect.Value, at path.Path, diags *diag.Diagnostics) {
	sources := fieldsOf(model.Type(), "tfsdk")
	for name, field := range fieldsOf(into.Type(), "json") {
		if source, found := sources[name]; found {
			target := into.FieldByIndex(field.index)
			expandValue(model.FieldByIndex(source.index), target, at.AtName(name), diags)
			if field.omitted(target) {
				target.SetZero()
			}
		}
	}
}

func expandValue(from, into reflect.Value, at path.Path, diags *diag.Diagnostics) {
	from, null := content(from)
	switch {
	case null:
		return
	case into.Kind() == reflect.Pointer:
		target, before := reflect.New(into.Type().Elem()), len(*diags)
		if expandValue(from, target.Elem(), at, diags); len(*diags) == before {
			into.Set(target) // an invalid value counts as omitted
		}
		return
	}
	if text, ok := reflect.TypeAssert[encoding.TextUnmarshaler](into.Addr()); ok {
		if err := text.UnmarshalText([]byte(from.String())); err != nil {
			diags.AddAttributeError(at, "Invalid value", fmt.Sprintf("%s: %v", at, err))
		}
		return
	}
	switch {
	case from.Type() == into.Type():
		into.Set(from)
	case from.Kind() == reflect.Struct:
		expandFields(from, into, at, diags)
	case from.Kind() == reflect.Slice:
		into.Set(reflect.MakeSlice(into.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			expandValue(from.Index(i), into.Index(i), at.AtListIndex(i), diags)
		}
	case from.Kind() == reflect.Map:
		into.Set(reflect.MakeMapWithSize(into.Type(), from.Len()))
		for key, element := range from.Seq2() {
			if a, ok := reflect.TypeAssert[attr.Value](element); ok && a.IsUnknown() {
				continue
			}
			value := reflect.New(into.Type().Elem()).Elem()
			expandValue(element, value, at.AtMapKey(key.String()), diags)
			into.SetMapIndex(key, value)
		}
	default:
		into.Set(from.Convert(into.Type()))
	}
}

// content returns the Go value within a model value, and whether it is null or unknown.
func content(v reflect.Value) (inner reflect.Value, null bool) {
	held := v.Interface()
	if a, ok := held.(attr.Value); ok && (a.IsNull() || a.IsUnknown()) {
		return v, true
	}
	switch a := held.(type) {
	case custom:
		meaning := reflect.ValueOf(a.Meaning())
		return meaning, !meaning.IsValid()
	case types.String:
		return reflect.ValueOf(a.ValueString()), false
	case types.Bool:
		return reflect.ValueOf(a.ValueBool()), false
	case types.Int64:
		return reflect.ValueOf(a.ValueInt64()), false
	case types.Float64:
		return reflect.ValueOf(a.ValueFloat64()), false
	case types.List:
		return reflect.ValueOf(a.Elements()), false
	case types.Map:
		return reflect.ValueOf(a.Elements()), false
	}
	switch v.Kind() {
	case reflect.Pointer:
		return v.Elem(), v.IsNil()
	case reflect.Slice, reflect.Map:
		return v, v.IsNil()
	}
	return v, false
}

func flattenFields(from, model reflect.Value) {
	sources := fieldsOf(from.Type(), "json")
	for name, field := range fieldsOf(model.Type(), "tfsdk") {
		if source, found := sources[name]; found {
			target := model.FieldByIndex(field.index)
			target.Set(flattenValue(from.FieldByIndex(source.index), source.omitted, target))
		}
	}
}

// flattenValue returns a value as the type of prior, and prior itself if that means the same. An omitted value is null.
func flattenValue(v reflect.Value, omitted func(reflect.Value) bool, prior reflect.Value) reflect.Value {
	c, isCustom := reflect.TypeAssert[custom](prior)
	typ := prior.Type()
	if !isCustom && means(prior, v, omitted) {
		if m, ok := reflect.TypeAssert[types.Map](prior); ok && m.IsNull() {
			return nullOf(typ) // the zero value lacks the element type, and is refused
		}
		return prior
	}
	mayBeEmpty := func() bool { // prior may be an object that means the same as null
		if isCustom {
			_, null := content(prior)
			return !null
		}
		return typ.Kind() == reflect.Pointer && typ.Elem().Kind() == reflect.Struct && !prior.IsNil()
	}
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil(), omitted(v) && !mayBeEmpty():
		return nullOf(typ)
	case v.Kind() == reflect.Pointer:
		v = v.Elem()
	}
	if isCustom {
		return reflect.ValueOf(c.Spelled(v.Interface()))
	}
	if flat, ok := attribute(v, typ); ok {
		return flat
	}
	flat := reflect.New(typ).Elem()
	switch typ.Kind() {
	case reflect.Pointer:
		before := reflect.Zero(typ.Elem())
		if !prior.IsNil() {
			before = prior.Elem()
		}
		flat.Set(reflect.New(typ.Elem()))
		flat.Elem().Set(flattenValue(v, never, before))
	case reflect.Struct:
		flat.Set(prior)
		flattenFields(v, flat)
	case reflect.Slice:
		flat.Set(reflect.MakeSlice(typ, v.Len(), v.Len()))
		for i := range v.Len() {
			before := reflect.Zero(typ.Elem())
			if i < prior.Len() {
				before = prior.Index(i)
			}
			flat.Index(i).Set(flattenValue(v.Index(i), never, before))
		}
	case reflect.Map:
		flat.Set(reflect.MakeMapWithSize(typ, v.Len()))
		for key, element := range v.Seq2() {
			before := prior.MapIndex(key)
			if !before.IsValid() {
				before = reflect.Zero(typ.Elem())
			}
			flat.SetMapIndex(key, flattenValue(element, never, before))
		}
	default:
		flat.Set(plain(v).Convert(typ))
	}
	return flat
}

// means reports whether prior means this value. Null only means an omitted one.
func means(prior, v reflect.Value, omitted func(reflect.Value) bool) bool {
	if a, ok := reflect.TypeAssert[attr.Value](prior); ok && a.IsUnknown() {
		return false
	}
	if _, null := content(prior); null {
		return omitted(v) || v.Kind() == reflect.Pointer && v.IsNil()
	}
	meant := reflect.New(v.Type()).Elem()
	var malformed diag.Diagnostics
	expandValue(prior, meant, path.Empty(), &malformed)
	return !malformed.HasError() &&
		(omitted(meant) && omitted(v) || reflect.DeepEqual(meant.Interface(), v.Interface()))
}

// attribute returns a value as one of the framework's types, or false for other types.
func attribute(v reflect.Value, typ reflect.Type) (reflect.Value, bool) {
	switch reflect.Zero(typ).Interface().(type) {
	case types.String:
		return reflect.ValueOf(types.StringValue(plain(v).String())), true
	case types.Bool:
		return reflect.ValueOf(types.BoolValue(v.Bool())), true
	case types.Int64:
		return reflect.ValueOf(types.Int64Value(v.Int())), true
	case types.Float64:
		return reflect.ValueOf(types.Float64Value(v.Float())), true
	case types.Map:
		elements := make(map[string]attr.Value, v.Len())
		for key, element := range v.Seq2() {
			elements[key.String()] = types.StringValue(element.String())
		}
		return reflect.ValueOf(types.MapValueMust(types.StringType, elements)), true
	}
	return reflect.Value{}, false
}

// nullOf returns the null of a model type.
func nullOf(typ reflect.Type) reflect.Value {
	if typ == reflect.TypeFor[types.Map]() {
		return reflect.ValueOf(types.MapNull(types.StringType))
	}
	return reflect.Zero(typ)
}

// plain returns a value, or its text if it marshals to text.
func plain(v reflect.Value) reflect.Value {
	if m, ok := reflect.TypeAssert[encoding.TextMarshaler](v); ok {
		text, err := m.MarshalText()
		if err != nil {
			panic(err) // durations and modes always marshal
		}
		return reflect.ValueOf(string(text))
	}
	return v
}

// field is a field of a struct, or of one embedded in it.
type field struct {
	index []int
	// omitted reports whether documents omit a value of this field.
	omitted func(v reflect.Value) bool
}

// isEmpty reports whether omitempty omits a value.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

// never is for fields that are never omitted.
func never(reflect.Value) bool { return false }

type structTag struct {
	of  reflect.Type
	key string
}

var fieldsByTag sync.Map // map[string]field by structTag

// fieldsOf returns the fields of a struct by this tag.
func fieldsOf(typ reflect.Type, key string) map[string]field {
	if known, found := fieldsByTag.Load(structTag{typ, key}); found {
		return known.(map[string]field) //nolint:forcetypeassert // nothing else is stored
	}
	fields := map[string]field{}
	for _, f := range reflect.VisibleFields(typ) {
		name, options, _ := strings.Cut(f.Tag.Get(key), ",")
		if name != "" && name != "-" {
			omitted := map[string]func(reflect.Value) bool{
				"": never, "omitempty": isEmpty, "omitzero": reflect.Value.IsZero,
			}[options]
			fields[name] = field{f.Index, omitted}
		}
	}
	fieldsByTag.Store(structTag{typ, key}, fields)
	return fields
}
