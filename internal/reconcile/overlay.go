package reconcile

import (
	"reflect"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// overlay returns the declaration that renders as live, given that declared renders as want: templates were executed
// and defaults filled in. Parts of live that equal want stay as declared.
func overlay(declared, want, live reflect.Value) reflect.Value {
	result := reflect.New(live.Type()).Elem()
	result.Set(live)
	set(result, declared, want)
	return result
}

// set replaces the parts of live that equal want by what is declared. Pointers, slices and maps are copied first.
func set(live, declared, want reflect.Value) {
	if reflect.DeepEqual(want.Interface(), live.Interface()) {
		live.Set(declared)
		return
	}
	switch live.Kind() {
	case reflect.Struct:
		for i := range live.NumField() {
			set(live.Field(i), declared.Field(i), want.Field(i))
		}
	case reflect.Pointer:
		if live.IsNil() || declared.IsNil() || want.IsNil() {
			return
		}
		copied := reflect.New(live.Type().Elem())
		copied.Elem().Set(live.Elem())
		set(copied.Elem(), declared.Elem(), want.Elem())
		live.Set(copied)
	case reflect.Slice:
		copied := reflect.MakeSlice(live.Type(), live.Len(), live.Len())
		reflect.Copy(copied, live)
		for i := range min(live.Len(), declared.Len(), want.Len()) {
			set(copied.Index(i), declared.Index(i), want.Index(i))
		}
		live.Set(copied)
	case reflect.Map:
		copied := reflect.MakeMap(live.Type())
		for _, key := range live.MapKeys() {
			value := reflect.New(live.Type().Elem()).Elem()
			value.Set(live.MapIndex(key))
			if d, w := declared.MapIndex(key), want.MapIndex(key); d.IsValid() && w.IsValid() {
				set(value, d, w)
			}
			copied.SetMapIndex(key, value)
		}
		live.Set(copied)
	}
}

// overlayMounts is overlay for mounts, which are identified by target: declared ones keep their order.
func overlayMounts(declared, want, live reflect.Value) reflect.Value {
	byTarget := func(mounts []domain.Mount) reflect.Value {
		all := make(map[string]domain.Mount, len(mounts))
		for _, m := range mounts {
			all[m.Target] = m
		}
		return reflect.ValueOf(all)
	}
	before, wanted, now := valueAs[[]domain.Mount](declared), valueAs[[]domain.Mount](want),
		valueAs[[]domain.Mount](live)
	merged := valueAs[map[string]domain.Mount](overlay(byTarget(before), byTarget(wanted), byTarget(now)))
	var mounts []domain.Mount
	for _, m := range slices.Concat(before, now) {
		if found, ok := merged[m.Target]; ok {
			mounts = append(mounts, found)
			delete(merged, m.Target)
		}
	}
	return reflect.ValueOf(mounts)
}

// valueAs returns the value as a T.
func valueAs[T any](v reflect.Value) T {
	t, _ := reflect.TypeAssert[T](v)
	return t
}

// same compares two values; nil and empty are equal.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Slice, reflect.Map:
		if a.Len() == 0 && b.Len() == 0 {
			return true
		}
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}
