package topology

import (
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

func TestTemplates(t *testing.T) {
	g := group("tensorflow", map[string]int{"ps": 2, "worker": 2, "chief": 0})
	for text, want := range map[string]string{
		`plain`:                                   `plain`,
		`{{ address "ps" 1 }}`:                    `ps1:2222`,
		`{{ addresses "ps" }}`:                    `ps0:2222,ps1:2222`,
		`{{ addresses "chief" }}`:                 ``,
		`{{ replicas "worker" }}`:                 `2`,
		`{{ hostname (address "ps" 0) }}`:         `ps0`,
		`{{ port (address "ps" 0) }}`:             `2222`,
		`{{ address "ps" .Index | hostname }}`:    `ps1`,
		`{{ .Name }}/{{ .Role }}/{{ .Index }}`:    `mnist-worker-1/worker/1`,
		`{{ .Cluster }}/{{ .Group }}`:             `lab/mnist`,
		`{{ .Host }} {{ .Address }} {{ .Port }}`:  `worker1 worker1:2222 2222`,
		`{{ if eq .Index 0 }}a{{ else }}b{{end}}`: `b`,
		`{{ "{{" }} .Index }}`:                    `{{ .Index }}`,
	} {
		g.Env = map[string]string{"X": text}
		if got := specOf(t, place(g), "worker", 1).Env["X"]; got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

// TestTemplatesOfVariables checks that a role's own variables override the group's, and that a missing one is reported
// unless it may not be known yet.
func TestTemplatesOfVariables(t *testing.T) {
	g := group("none", map[string]int{"a": 1, "b": 1})
	g.Args, g.Env = []string{"{{ .Env.LR }}"}, map[string]string{"LR": "1"}
	edit("b", func(r *domain.Role) { r.Env = map[string]string{"LR": "2"} })(&g)
	for role, want := range map[string]string{"a": "1", "b": "2"} {
		if got := specOf(t, place(g), role, 0).Args[0]; got != want {
			t.Errorf("in role %s it is %q, want %q", role, got, want)
		}
	}
	g.Env = nil
	problems := Validate(g)
	if len(problems) != 1 || problems[0].Path.String() != "args[0]" ||
		!strings.Contains(problems[0].Detail, `no entry for key "LR"`) {
		t.Fatalf("got %v", problems)
	}
	for _, unknown := range []domain.Path{{"env"}, {"env", domain.Key("LR")}, {"roles", domain.Key("a"), "env"}} {
		if certain := problems.Certain([]domain.Path{unknown}); len(certain) > 0 {
			t.Errorf("with %s unknown, it is certain that %v", unknown, certain)
		}
	}
}

// TestOnlyTemplatesAreParsed checks that a string without opening braces is passed on unchanged.
func TestOnlyTemplatesAreParsed(t *testing.T) {
	g := group("none", map[string]int{"a": 1})
	g.Args = []string{`}} ${X} {%d} \n`}
	if got := specOf(t, place(g), "a", 0).Args[0]; got != g.Args[0] {
		t.Errorf("%q became %q", g.Args[0], got)
	}
}

// FuzzTemplate checks that everything that passes validation renders, and that problems point to the attribute at
// fault.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		"", "{{", "}}", "{{}}", "{{ . }}", "{{ .Index }}", "{{ .Nope }}", `{{ address "ps" 0 }}`,
		`{{ address "ps" 9 }}`, `{{ address }}`,
		`{{ addresses 3 }}`, `{{ port "x" }}`, `{{ hostname "[::1]:2" }}`,
		`{{ define "x" }}{{ template "x" }}{{ end }}`, `{{ template "x" }}`,
		`{{ index "abc" 7 }}`, `{{ printf "%d" "x" }}`, "{{/* a */}}", "{{ `\x00` }}", "\xff{{ 1 }}",
		`{{ call .Name }}`, `{{ break }}`, "{{\n.Nope\n}}",
		`{{ template "" . }}`, `{{ block ">: " . }}{{ .Nope }}{{ end }}`, `{{ slice .Name 99 }}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g := group("tensorflow", map[string]int{"ps": 1, "worker": 1})
		g.Env = map[string]string{"X": text}
		problems := Validate(g)
		for _, p := range problems {
			if p.Path.String() != `env["X"]` || p.Detail == "" || strings.HasPrefix(p.Detail, "template:") {
				t.Errorf("%q is blamed as: %v", text, p)
			}
		}
		l := place(g)
		for i := range l.members {
			spec, err := l.Spec(i)
			if err == nil && problems.Err() == nil && !strings.Contains(text, "{{") && spec.Env["X"] != text {
				t.Errorf("%q became %q", text, spec.Env["X"])
			}
			// Conditions on addresses may choose differently here, as the addresses differ from the placeholders in
			// validation.
			if err != nil && problems.Err() == nil && !strings.ContainsAny(text, "AHP") {
				t.Errorf("%q passed validation and fails: %v", text, err)
			}
		}
	})
}

// FuzzExitCodes checks that accepted entries are valid, and that validation rejects all others.
func FuzzExitCodes(f *testing.F) {
	for _, seed := range []string{
		"1", "255", "0", "256", "1-127", "127-1", "-", "1-", "-1", "1-2-3", "+1", " 1", "0x1", "٣", "",
		"99999999999999999999",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		low, high, err := domain.ParseExitCodes(entry)
		if err == nil && (low < 1 || high > 255 || low > high) {
			t.Errorf("%q was read as %d to %d", entry, low, high)
		}
		g := group("none", map[string]int{"a": 1})
		edit("a", func(r *domain.Role) { r.ExitCodes = &domain.ExitCodeRule{Final: domain.ExitCodes{entry}} })(&g)
		if problems := Validate(g); (len(problems) == 0) != (err == nil) {
			t.Errorf("%q: the error is %v, and validation says %v", entry, err, problems)
		}
	})
}
