package domain

import (
	"cmp"
	"slices"
)

// The default permissions of files for members.
const (
	DefaultConfigMode = 0o444
	DefaultSecretMode = 0o400
)

// Normal returns the canonical form of the specification, so that two of them can be compared: defaults are filled in,
// empty values are nil, and unordered lists are sorted.
func (s MemberSpec) Normal() MemberSpec {
	s.Command, s.Args, s.Deviations = orNil(s.Command), orNil(s.Args), orNil(s.Deviations)
	s.Env = changed(s.Env, func(_, value string) string { return value })
	s.Mounts = sorted(s.Mounts, func(m Mount) string { return m.Target })
	for i := range s.Mounts {
		s.Mounts[i].Type = cmp.Or(s.Mounts[i].Type, MountBind)
	}
	s.Files = sorted(s.Files, func(f File) string { return f.Name })
	s.Restart.Final = orNil(s.Restart.Final)
	s.Placement.Strategy = cmp.Or(s.Placement.Strategy, Spread)
	s.Placement.Labels = changed(s.Placement.Labels, func(_, value string) string { return value })
	s.Placement.Hosts = sorted(s.Placement.Hosts, func(host string) string { return host })
	s.Container = s.Container.normal()
	s.Update = s.Update.normal()
	return s
}

func (c Container) normal() Container {
	c.PullPolicy = cmp.Or(c.PullPolicy, PullIfNotPresent)
	c.Ulimits = changed(c.Ulimits, func(_ string, u Ulimit) Ulimit { return u })
	c.Ports = changed(c.Ports, func(_ string, p PublishedPort) PublishedPort {
		p.Protocol = cmp.Or(p.Protocol, "tcp")
		return p
	})
	c.Configs = changed(c.Configs, func(_ string, f ConfigFile) ConfigFile {
		f.Mode = cmp.Or(f.Mode, DefaultConfigMode)
		return f
	})
	c.Secrets = changed(c.Secrets, func(name string, f SecretFile) SecretFile {
		f.Target, f.Mode = f.Path(name), cmp.Or(f.Mode, DefaultSecretMode)
		return f
	})
	if c.HealthCheck != nil {
		check := *c.HealthCheck
		check.Command = orNil(check.Command)
		for _, d := range []**Duration{&check.Interval, &check.Timeout, &check.StartPeriod} {
			if *d != nil && **d == 0 {
				*d = nil
			}
		}
		c.HealthCheck = &check
	}
	if c.Logging != nil {
		c.Logging = &Logging{
			Driver:  c.Logging.Driver,
			Options: changed(c.Logging.Options, func(_, value string) string { return value }),
		}
	}
	return c
}

func orNil[S ~[]E, E any](values S) S {
	if len(values) == 0 {
		return nil
	}
	return values
}

// sorted returns a copy ordered by key; nil if there are no values.
func sorted[T any](values []T, key func(T) string) []T {
	return slices.SortedStableFunc(slices.Values(values), func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}

// changed returns a copy with each value changed; nil if there are no values.
func changed[V any](values map[string]V, change func(name string, value V) V) map[string]V {
	if len(values) == 0 {
		return nil
	}
	copied := make(map[string]V, len(values))
	for name, value := range values {
		copied[name] = change(name, value)
	}
	return copied
}
