package relay

import (
	"errors"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

var (
	// ErrBehind is returned by a copy of the store that lacks a change before the given one.
	ErrBehind = errors.New("its copy lacks earlier changes")
	// ErrOutside is returned by a host that is not in the cluster. It is not [engine.ErrNotFound]: what it was asked
	// about may exist elsewhere.
	ErrOutside = errors.New("nothing of the cluster is left there, as after a reinstallation: apply the cluster, " +
		"which sets the host up again")
	// ErrDeposed is returned by a host that is taken for the store host, but is not, or no longer.
	ErrDeposed = errors.New("not the store host")
	// ErrChanged is returned by a store host whose store is not as it was when its content was read.
	ErrChanged = errors.New("its store was changed meanwhile")
)

// kinds are the errors that keep their identity between hosts.
var kinds = map[string]error{
	"not found": engine.ErrNotFound, "conflict": engine.ErrConflict,
	"outside": ErrOutside, "behind": ErrBehind, "deposed": ErrDeposed, "changed": ErrChanged,
	"lease lost": engine.ErrLockLost,
}

// fault is the wire format of an error.
type fault struct {
	Text   string              `json:"text"`
	Kind   string              `json:"kind,omitempty"`
	Locked *engine.LockedError `json:"locked,omitempty"`
	// Corrupt is the location of an unreadable document.
	Corrupt  string   `json:"corrupt,omitempty"`
	Problems Findings `json:"problems,omitempty"`
}

func faultOf(err error) fault {
	f := fault{Text: err.Error()}
	for kind, sentinel := range kinds {
		if errors.Is(err, sentinel) {
			f.Kind = kind
		}
	}
	if locked, ok := errors.AsType[*engine.LockedError](err); ok {
		f.Locked = locked
	}
	if corrupt, ok := errors.AsType[*engine.CorruptError](err); ok {
		f.Corrupt, f.Text = corrupt.Where, corrupt.Err.Error()
	}
	if problems, ok := errors.AsType[domain.Problems](err); ok {
		f.Problems = FindingsOf(problems)
	}
	return f
}

func (f fault) err() error {
	switch {
	case f.Locked != nil:
		return f.Locked
	case f.Corrupt != "":
		return &engine.CorruptError{Where: f.Corrupt, Err: errors.New(f.Text)}
	case len(f.Problems) > 0:
		return f.Problems.Problems()
	}
	return &reportedError{f.Text, kinds[f.Kind]}
}

// reportedError is an error reported by a host.
type reportedError struct {
	text string
	is   error
}

func (e *reportedError) Error() string { return e.text }

// Unwrap returns which of the errors in kinds it is, or nil.
func (e *reportedError) Unwrap() error { return e.is }

// Findings is the wire format of problems.
type Findings []finding

type finding struct {
	Path    []step `json:"path,omitempty"`
	Summary string `json:"summary"`
	Detail  string `json:"detail"`
	Warning bool   `json:"warning,omitempty"`
}

// step is a step of a path; one of its fields is set.
type step struct {
	Attribute string  `json:"attribute,omitempty"`
	Key       *string `json:"key,omitempty"`
	Index     *int    `json:"index,omitempty"`
}

// FindingsOf converts problems to the wire format.
func FindingsOf(problems domain.Problems) Findings {
	findings := make(Findings, len(problems))
	for i, p := range problems {
		findings[i] = finding{Summary: p.Summary, Detail: p.Detail, Warning: p.Warning}
		for _, at := range p.Path {
			var s step
			switch at := at.(type) {
			case domain.Key:
				s.Key = new(string(at))
			case int:
				s.Index = &at
			case string:
				s.Attribute = at
			}
			findings[i].Path = append(findings[i].Path, s)
		}
	}
	return findings
}

// Problems converts them back.
func (f Findings) Problems() domain.Problems {
	var problems domain.Problems
	for _, found := range f {
		p := domain.Problem{Summary: found.Summary, Detail: found.Detail, Warning: found.Warning}
		for _, s := range found.Path {
			switch {
			case s.Key != nil:
				p.Path = p.Path.At(domain.Key(*s.Key))
			case s.Index != nil:
				p.Path = p.Path.At(*s.Index)
			default:
				p.Path = p.Path.At(s.Attribute)
			}
		}
		problems = append(problems, p)
	}
	return problems
}
