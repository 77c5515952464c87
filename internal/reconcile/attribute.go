package reconcile

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// attribute is a setting that a role declares, or its group for all roles, and that can be changed from
// outside on a running member.
type attribute struct {
	// path is its path within the role.
	path domain.Path
	// declares reports whether a template, the role's or else the group's, declares the
	// attribute; nil if only roles do.
	declares func(t domain.Template) bool
	// get returns its value in a normalised specification.
	get func(s *domain.MemberSpec) reflect.Value
	// at returns the role's field that declares it, which is safe to write: pointers are copied first. It is nil if no
	// role declares the attribute.
	at func(r *domain.Role) reflect.Value
	// merge returns the declaration that renders as live, given that declared renders as want.
	merge func(declared, want, live reflect.Value) reflect.Value
}

// differs compares two normalised specifications.
func (a attribute) differs(want, live domain.MemberSpec) bool {
	return !same(a.get(&want), a.get(&live))
}

// lay writes the live value into the role, and reports whether that changes what is declared.
func (a attribute) lay(declared domain.Role, role *domain.Role, want, live domain.MemberSpec) bool {
	if a.at == nil {
		return false
	}
	target := a.at(role)
	merged := a.merge(target, as(target.Type(), a.get(&want)), as(target.Type(), a.get(&live)))
	target.Set(merged)
	return !same(a.at(&declared), merged)
}

// attributesOf returns the attributes in which two specifications can differ.
func attributesOf(want, live domain.MemberSpec) []attribute {
	attributes := slices.Clone(fixedAttributes)
	names := map[string]string{}
	maps.Copy(names, live.Env)
	maps.Copy(names, want.Env)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		attributes = append(attributes, variable(name))
	}
	return attributes
}

// fixedAttributes are those of every specification: the fields that roles and specifications have in common by their
// JSON tags, and three that no role declares.
var fixedAttributes = append(
	attributesIn(reflect.TypeFor[domain.Role](), reflect.TypeFor[domain.MemberSpec](), attribute{}, nil),
	attribute{
		path: domain.Path{"files"}, get: func(s *domain.MemberSpec) reflect.Value { return reflect.ValueOf(s.Files) },
	},
	attribute{
		path: domain.Path{"kept"}, get: func(s *domain.MemberSpec) reflect.Value { return reflect.ValueOf(s.Kept) },
	},
	attribute{
		path: domain.Path{"placement"},
		get:  func(s *domain.MemberSpec) reflect.Value { return reflect.ValueOf(s.Host) },
	},
)

// whole lists structs that are reported as one attribute.
var whole = []string{"update", "container.health_check", "container.logging"}

// merges lists attributes whose merge is not [overlay].
var merges = map[string]func(declared, want, live reflect.Value) reflect.Value{
	"mounts": overlayMounts,
	// the order of hosts has no meaning
	"placement.hosts": func(_, _, live reflect.Value) reflect.Value { return live },
}

// attributesIn returns the attributes that role and spec, a part of a role and of a specification, have in common. The
// parent is that part, and template the index of the template field that holds it.
func attributesIn(role, spec reflect.Type, parent attribute, template []int) []attribute {
	var attributes []attribute
	for _, field := range reflect.VisibleFields(role) {
		name := jsonName(field)
		common, found := fieldNamed(spec, name)
		if !found || name == "env" && len(parent.path) == 0 {
			continue
		}
		own := template
		if in, found := reflect.TypeFor[domain.Template]().FieldByName(field.Name); found && len(parent.path) == 0 {
			own = in.Index
		}
		a := attribute{
			path: parent.path.At(name), declares: declaredIn(own, name), merge: overlay,
			get: func(s *domain.MemberSpec) reflect.Value {
				return rounded(parent.ofSpec(s).FieldByIndex(common.Index))
			},
		}
		path := a.path.String()
		if merge, found := merges[path]; found {
			a.merge = merge
		}
		part := pointed(field.Type)
		if part == pointed(common.Type) {
			a.at = func(r *domain.Role) reflect.Value { return parent.ofRole(r).FieldByIndex(field.Index) }
		}
		if a.at != nil && part.Kind() == reflect.Struct && !slices.Contains(whole, path) {
			attributes = append(attributes, attributesIn(part, part, a, own)...)
			continue
		}
		attributes = append(attributes, a)
	}
	return attributes
}

// ofSpec returns the part of a specification that the attribute stands for; all of it for the zero attribute.
func (a attribute) ofSpec(s *domain.MemberSpec) reflect.Value {
	if a.get == nil {
		return reflect.ValueOf(s).Elem()
	}
	return a.get(s)
}

// ofRole returns the part of a role that the attribute stands for. A pointer on the way is replaced by a copy.
func (a attribute) ofRole(r *domain.Role) reflect.Value {
	if a.at == nil {
		return reflect.ValueOf(r).Elem()
	}
	v := a.at(r)
	if v.Kind() != reflect.Pointer {
		return v
	}
	own := reflect.New(v.Type().Elem())
	if !v.IsNil() {
		own.Elem().Set(v.Elem())
	}
	v.Set(own)
	return own.Elem()
}

// declaredIn returns a function that reports whether a template declares this field; nil if the
// field is in no template.
func declaredIn(field []int, name string) func(t domain.Template) bool {
	switch {
	case field == nil:
		return nil
	case name == "args": // a role's own command drops the group's arguments
		return func(t domain.Template) bool { return t.Args != nil || t.Command != nil }
	}
	return func(t domain.Template) bool { return !reflect.ValueOf(t).FieldByIndex(field).IsZero() }
}

// variable returns the attribute for an environment variable.
func variable(name string) attribute {
	return attribute{
		path:     domain.Path{"env", domain.Key(name)},
		declares: func(t domain.Template) bool { _, declared := t.Env[name]; return declared },
		get: func(s *domain.MemberSpec) reflect.Value {
			if value, set := s.Env[name]; set {
				return reflect.ValueOf(map[string]string{name: value})
			}
			return reflect.ValueOf(map[string]string(nil))
		},
		at: func(r *domain.Role) reflect.Value { return reflect.ValueOf(r).Elem().FieldByName("Env") },
		merge: func(declared, _, live reflect.Value) reflect.Value {
			merged := map[string]string{}
			maps.Copy(merged, valueAs[map[string]string](declared))
			delete(merged, name)
			maps.Copy(merged, valueAs[map[string]string](live))
			return reflect.ValueOf(merged)
		},
	}
}

// rounded rounds a number of CPUs, as engines store billionths.
func rounded(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Float64 {
		return v
	}
	return reflect.ValueOf(math.Round(v.Float()*1e6) / 1e6)
}

// as converts a value of a specification to the type that roles declare it by, which may be a pointer.
func as(typ reflect.Type, v reflect.Value) reflect.Value {
	if typ.Kind() != reflect.Pointer || v.Kind() == reflect.Pointer {
		return v
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p
}

func pointed(typ reflect.Type) reflect.Type {
	if typ.Kind() == reflect.Pointer {
		return typ.Elem()
	}
	return typ
}

func fieldNamed(typ reflect.Type, name string) (found reflect.StructField, ok bool) {
	for _, field := range reflect.VisibleFields(typ) {
		if name != "" && jsonName(field) == name {
			return field, true
		}
	}
	return found, false
}

func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}
