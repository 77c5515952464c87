package topology

import (
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// TestValidatePools uses templates in a group whose workers are interchangeable, and expects a problem for those that
// refer to what no worker has of its own.
func TestValidatePools(t *testing.T) {
	worker := func(change func(r *domain.Role)) func(g *domain.Group) { return edit("worker", change) }
	const refused = `roles["worker"].args[0]`
	template := func(text string) func(g *domain.Group) {
		return worker(func(r *domain.Role) { r.Args = []string{text} })
	}
	for name, c := range map[string]struct {
		change  func(g *domain.Group)
		path    string
		warning bool
		says    []string
	}{
		"nothing of its own": {
			template(`{{ .Role }} {{ .Group }} {{ .Cluster }} {{ .Port }} {{ address "master" 0 }}`), "", false, nil,
		},
		"index": {
			template("{{ .Index }}"), refused, false,
			[]string{"{{ .Index }}", `role "worker" are interchangeable`, "TRAINYARD_HOST"},
		},
		"name":    {template("--name={{ .Name }}"), refused, false, []string{".Name"}},
		"host":    {template("{{ hostname .Host }}"), refused, false, []string{".Host"}},
		"address": {template("{{ with .Address }}{{ . }}{{ end }}"), refused, false, []string{".Address"}},
		"of the group": {
			func(g *domain.Group) { g.Env = map[string]string{"RANK": "{{ .Index }}"} }, `env["RANK"]`, false,
			[]string{".Index"},
		},
		"of another role": {edit("master", func(r *domain.Role) {
			r.Args = []string{"{{ .Index }} {{ .Name }} {{ .Host }} {{ .Address }}"}
		}), "", false, nil},
		"packed": {
			worker(func(r *domain.Role) { r.Placement.Strategy = domain.Pack }), `roles["worker"].placement.strategy`,
			true, []string{"spreads", `"one_per_host"`},
		},
		"final exit codes": {
			worker(func(r *domain.Role) { r.ExitCodes = &domain.ExitCodeRule{Final: domain.ExitCodes{"3"}} }),
			`roles["worker"].exit_codes`, true, []string{"max_attempts"},
		},
		"none at all": {
			worker(func(r *domain.Role) { r.Replicas, r.Args = new(0), []string{"{{ .Index }}"} }), "", false, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := group("spark", map[string]int{"master": 1, "worker": 2})
			c.change(&g)
			members, invalid := Check(g)
			if invalid.Err() != nil {
				t.Fatalf("it is not even valid: %v", invalid)
			}
			problems := ValidatePools(g, members)
			if c.path == "" {
				if len(problems) > 0 {
					t.Errorf("problems: %v", problems)
				}
				return
			}
			if len(problems) != 1 || problems[0].Path.String() != c.path || problems[0].Warning != c.warning ||
				!contains(problems[0].Detail, c.says...) {
				t.Errorf("problems: %v, want one at %s that says %q", problems, c.path, c.says)
			}
		})
	}
}

// TestUpdateIsNoPartOfTheHash checks that changing the rollout settings restarts nobody, and that only members with a
// shared specification get them.
func TestUpdateIsNoPartOfTheHash(t *testing.T) {
	update := domain.Update{Parallelism: 2, OnFailure: domain.UpdateContinue}
	g := group("spark", map[string]int{"master": 1, "worker": 1})
	changed := group("spark", map[string]int{"master": 1, "worker": 1})
	for name, role := range changed.Roles {
		role.Update = update
		changed.Roles[name] = role
	}
	placed := func(g domain.Group, host string) *Layout {
		members := Expand(g, Counts(g, nil), nil)
		members[0].Host, members[1].Host = "a", host
		if host == "" {
			members[1].Scheduling = domain.SchedulingEngine
		}
		return NewLayout(g, members, nil)
	}
	for host, want := range map[string]domain.Update{"a": {}, "": update} {
		for i := range 2 {
			if placed(g, host).Hash(i) != placed(changed, host).Hash(i) {
				t.Errorf("member %d on host %q has another hash", i, host)
			}
		}
		spec, err := placed(changed, host).Spec(1)
		if err != nil || spec.Update != want {
			t.Errorf("on host %q the update is %+v (%v), want %+v", host, spec.Update, err, want)
		}
	}
}
