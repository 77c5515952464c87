package swarm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/docker/docker/api/types/swarm"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// expand does what Swarm does with a template.
func expand(t interface{ Fatal(...any) }, text string) string {
	parsed, err := template.New("").Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := parsed.Execute(&out, nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestLiteral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lists := rapid.Custom(func(t *rapid.T) string {
			list := make([]string, rapid.IntRange(0, 30).Draw(t, "members"))
			for i := range list {
				list[i] = fmt.Sprintf("%s-%d%s", rapid.SampledFrom([]string{"job-worker", "a-0", "-"}).Draw(t, "role"), i, ":90")
			}
			return encode(map[string][]string{"ps": list[:len(list)/2], "worker": list, "{{": {"x-0", "x-1"}})
		})
		text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune(`{}"-/* .a0[`)), 0, 12, -1), lists).Draw(t, "text")
		if got := expand(t, literal(text)); got != text {
			t.Errorf("%q arrives as %q", text, got)
		}
		if got, ok := unquoted(literal(text)); !ok || got != text {
			t.Errorf("%q is read back as %q, %v", text, got, ok)
		}
	})
	for _, foreign := range []string{"{{.Node.ID}}", "{{", `{` + quoted, quoted + "{{.Task.Slot}}"} {
		if got, ok := unquoted(foreign); ok || got != foreign {
			t.Errorf("%q is read as %q, %v: no text is rendered so", foreign, got, ok)
		}
	}
}

// TestLiteralOfMany shows that what says where all members are takes as much for a thousand members as for ten.
func TestLiteralOfMany(t *testing.T) {
	spec := func(members int) string {
		var ps, workers []string
		for i := range members {
			ps, workers = append(ps, fmt.Sprintf("job-ps-%d:8000", i)), append(workers, fmt.Sprintf("job-worker-%d", i))
		}
		return encode(map[string][]string{"ps": ps, "worker": workers})
	}
	ten, thousand := literal(spec(10)), literal(spec(1000))
	if len(thousand) != len(ten)+4 {
		t.Errorf("ten take %d bytes and a thousand %d:\n%s", len(ten), len(thousand), thousand)
	}
	for _, text := range []string{spec(10), spec(1000), `{"cluster":` + spec(300) + `,"task":{"type":"worker","index":0}}`} {
		if got := expand(t, literal(text)); got != text {
			t.Errorf("%s arrives as %s", text, got)
		}
		for _, template := range []string{literal(text), text} {
			if got, ok := unquoted(template); !ok || got != text {
				t.Errorf("%s is read as %s, %v", template, got, ok)
			}
		}
	}
}

// FuzzUnquoted shows that what a template is read as is what it expands to.
func FuzzUnquoted(f *testing.F) {
	f.Add("{{")
	f.Add(quoted)
	f.Add(literal(`["a-0:1","a-1:1","a-2:1","a-3:1","a-4:1","a-5:1","a-6:1","a-7:1","a-8:1","a-9:1","a-10:1","a-11:1","a-12:1","a-13:1","a-14:1"]`))
	f.Fuzz(func(t *testing.T, template string) {
		text, ok := unquoted(template)
		if ok && expand(t, template) != text {
			t.Errorf("%q is read as %q and expands to %q", template, text, expand(t, template))
		}
	})
}

func TestConstraints(t *testing.T) {
	pool := func(p domain.Placement) domain.MemberSpec {
		return domain.MemberSpec{Role: "worker", Scheduling: domain.SchedulingEngine, Shared: true, Placement: p}
	}
	hosts := func(names ...string) domain.Placement { return domain.Placement{Hosts: names} }
	for name, c := range map[string]struct {
		spec domain.MemberSpec
		want []string
	}{
		"indexed":   {domain.MemberSpec{Scheduling: domain.SchedulingPinned, Host: "h1"}, []string{"node.id==node1"}},
		"anywhere":  {pool(domain.Placement{}), []string{"node.id!=stranger"}},
		"one host":  {pool(hosts("h1")), []string{"node.id==node1"}},
		"two hosts": {pool(hosts("h2", "h0")), []string{"node.id!=node1", "node.id!=stranger"}},
		"labels": {
			pool(domain.Placement{Labels: map[string]string{"gpu": "t4", "disk": "ssd"}}),
			[]string{"node.labels.disk==ssd", "node.labels.gpu==t4", "node.id!=stranger"},
		},
		"labels and a host": {
			pool(domain.Placement{Labels: map[string]string{"gpu": "t4"}, Hosts: []string{"h0"}}), []string{"node.labels.gpu==t4", "node.id==node0"},
		},
	} {
		in, _ := around()
		got, err := constraintsOf(c.spec, in)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
}

func TestRenderFails(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *domain.MemberSpec, in *surroundings)
		want   string
	}{
		"host": {
			func(s *domain.MemberSpec, _ *surroundings) { s.Host = "h9" },
			`member "mnist-worker-3": host "h9" is not a node of the Swarm`,
		},
		"host of a pool": {
			func(s *domain.MemberSpec, _ *surroundings) {
				share(s, s.Address)
				s.Placement.Hosts = []string{"h9"}
			},
			`members of role "worker": host "h9" is not a node of the Swarm`,
		},
		"config": {
			func(_ *domain.MemberSpec, in *surroundings) { in.configs = nil },
			`which /run/trainyard/hostfile comes from`,
		},
		"secret": {
			func(_ *domain.MemberSpec, in *surroundings) { in.secrets = nil },
			`member "mnist-worker-3": there is no secret "trainyard.lab.secret.mnist.worker.token.1" in the Swarm, which /run/secrets/token comes from`,
		},
	} {
		spec := rich()
		in, _ := around(spec)
		c.change(&spec, &in)
		if _, err := render(spec, in, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

func TestServiceNames(t *testing.T) {
	pool := richPool()
	if got := serviceName(pool); got != "mnist-worker" {
		t.Errorf("the service of a role is called %q", got)
	}
	if got := serviceName(rich()); got != "mnist-worker-3" {
		t.Errorf("the service of a member is called %q", got)
	}
}

// TestPooledServicesAreOne checks that whichever member of a role is rendered, it is the same service.
func TestPooledServicesAreOne(t *testing.T) {
	first, second := richPool(), individual(richPool(), 8)
	in, _ := around(first)
	a, errA := render(first, in, 2)
	b, errB := render(second, in, 2)
	if errA != nil || errB != nil || !sameService(a, b) {
		t.Errorf("%v, %v, (-first +second):\n%s", errA, errB, cmp.Diff(a, b))
	}
	if got := *a.Mode.Replicated.Replicas; got != 2 {
		t.Errorf("it has %d replicas, want 2", got)
	}
}

func TestPinnedTo(t *testing.T) {
	for want, constraints := range map[string][]string{
		"":      {"node.role==manager", nowhere, "node.id!=node2"},
		"node1": {nowhere, "node.id == node1"},
	} {
		if got := pinnedTo(swarm.ServiceSpec{TaskTemplate: swarm.TaskSpec{Placement: &swarm.Placement{Constraints: constraints}}}); got != want {
			t.Errorf("%q: pinned to %q, want %q", constraints, got, want)
		}
	}
	if got := pinnedTo(swarm.ServiceSpec{}); got != "" {
		t.Errorf("without constraints: pinned to %q", got)
	}
}

func TestAttachments(t *testing.T) {
	spec, other := rich(), rich()
	other.Container.Configs = map[string]domain.ConfigFile{"train.yaml": {Content: "epochs: 4\n", Target: "/etc/train.yaml"}}
	other.Container.Secrets = map[string]domain.SecretFile{"token": {Version: "2"}}
	evaluator := rich()
	evaluator.Role = "evaluator"
	specs := []domain.MemberSpec{spec, other, evaluator, spec}

	var contents []string
	for _, config := range configsOf(specs) {
		contents = append(contents, string(config.Data))
		if len(config.Name) > maxObjectName {
			t.Errorf("%q is too long for the name of an object", config.Name)
		}
		want := map[string]string{labelCluster: "lab", labelGroup: "mnist", labelKind: kindFile, labelName: config.Labels[labelName]}
		if diff := cmp.Diff(want, config.Labels); diff != "" {
			t.Errorf("labels of %s (-want +got):\n%s", config.Name, diff)
		}
	}
	slices.Sort(contents)
	if want := []string{"epochs: 3\n", "epochs: 4\n", "mnist-worker-3 slots=1\n"}; !slices.Equal(contents, want) {
		t.Errorf("the config objects hold %q, want %q", contents, want)
	}

	var secrets []string
	for _, secret := range secretsOf(specs) {
		secrets = append(secrets, secret.role+" "+secret.name+" "+secret.object.Name)
		if secret.object.Data != nil {
			t.Errorf("%s has a value", secret.object.Name)
		}
	}
	want := []string{
		"evaluator token trainyard.lab.secret.mnist.evaluator.token.1",
		"worker token trainyard.lab.secret.mnist.worker.token.1",
		"worker token trainyard.lab.secret.mnist.worker.token.2",
	}
	if !slices.Equal(secrets, want) {
		t.Errorf("the secrets are %q, want %q", secrets, want)
	}

	long := rich()
	long.Group = strings.Repeat("g", 60)
	for _, secret := range secretsOf([]domain.MemberSpec{long}) {
		if len(secret.object.Name) > maxObjectName {
			t.Errorf("%q is too long for the name of an object", secret.object.Name)
		}
	}
}

// TestFailureAction: the Swarm never pauses a change that comes to all members at once.
func TestFailureAction(t *testing.T) {
	for update, want := range map[domain.Update]string{
		{}:                                 swarm.UpdateFailureActionContinue,
		{OnFailure: domain.UpdateRollback}: swarm.UpdateFailureActionContinue,
		{Parallelism: 1}:                   swarm.UpdateFailureActionPause,
		{Parallelism: 2, OnFailure: domain.UpdateRollback}: swarm.UpdateFailureActionPause,
		{Parallelism: 2, OnFailure: domain.UpdateContinue}: swarm.UpdateFailureActionContinue,
	} {
		if got := failureAction(update); got != want {
			t.Errorf("of an update %+v the Swarm makes %s, want %s", update, got, want)
		}
	}
}
