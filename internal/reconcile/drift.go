package reconcile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// drifted reports whether a member was changed from outside. One that is meant to stay ended does not
// count: finished is not drift.
func drifted(o *domain.Observed) bool {
	switch {
	case o.State == domain.StateCompleted, o.State == domain.StateStopped && o.StopReason != "":
		return false
	}
	return o.Live != nil || o.Replicas != nil
}

// instances returns how many instances the engine is to run of an observed member.
func instances(o *domain.Observed) int {
	if drifted(o) && o.Replicas != nil {
		return *o.Replicas
	}
	return 1
}

// drift is how a member's live specification differs from the desired one; both are normalised.
type drift struct {
	want, live domain.MemberSpec
	attributes []attribute
}

// driftOf returns how member i was changed from outside.
func (d Decision) driftOf(i int, o *domain.Observed) drift {
	if o.Live == nil {
		return drift{}
	}
	want, err := d.Layout.Spec(i)
	if err != nil {
		return drift{} // reported when the member is staged
	}
	if _, moved := d.Document.Sizes[o.Role]; moved {
		want.Resources = o.Live.Resources // it was started with another size, by a policy and not from outside
	}
	return compare(want, *o.Live)
}

// compare returns the differences between two specifications. It ignores the member's identity, hash and run.
func compare(want, live domain.MemberSpec) drift {
	d := drift{want: want.Normal(), live: live.Normal()}
	if want.Scheduling == domain.SchedulingEngine {
		d.live.Host = ""
	}
	for _, a := range attributesOf(d.want, d.live) {
		if a.differs(d.want, d.live) {
			d.attributes = append(d.attributes, a)
		}
	}
	return d
}

// Differences lists the attributes of a role in which a live specification differs from the desired one, such as
// `env["X"]`, and the deviations that the engine found. It ignores the member's identity, hash and run.
func Differences(want, live domain.MemberSpec) []string { return compare(want, live).words() }

func (d drift) words() []string {
	var words []string
	for _, a := range d.attributes {
		words = append(words, a.path.String())
	}
	return append(words, d.live.Deviations...)
}

// describeDrift describes how member i was changed from outside.
func (d Decision) describeDrift(i int, o *domain.Observed) string {
	var changed []string
	if o.Replicas != nil {
		changed = append(changed, "replicas")
	}
	changed = append(changed, d.driftOf(i, o).words()...)
	if len(changed) == 0 {
		return "changed outside Terraform"
	}
	return "changed outside Terraform: " + strings.Join(changed, ", ")
}

// Found is a group as found on the engine.
type Found struct {
	// Spec has the live values of declared attributes that were changed from outside; a role's replicas are its
	// instances. If members of a role differ in the same attribute, the first one's value is shown.
	Spec domain.Group
	// Members are those that are as desired, and those whose drift is visible: in Spec, or as the host that they were
	// pinned to, which is their host here. Failed members are left out if the last apply did not finish.
	Members []domain.Member
}

// Found returns the group as found on the engine.
func (g Group) Found() Found {
	d, observed := g.atRest(), byName(g.Observed)
	liveSpec := newLiveSpec(d.Document.Spec, d.counts(g.Observed))
	members, hidden := slices.Clone(d.Members), map[string]bool{}
	for _, change := range Diff(d, g.Observed) {
		if change.Action == ActionRemove {
			continue
		}
		hidden[change.Member] = true
		if change.Action != ActionMend {
			continue
		}
		m, o := &members[change.Index], observed[change.Member]
		host := movedTo(*m, o)
		shown := liveSpec.lay(m.Role, d.driftOf(change.Index, o))
		if shown || host != "" || o.Replicas != nil && liveSpec.showsReplicas(m.Role) {
			m.Host = cmp.Or(host, m.Host)
			delete(hidden, change.Member)
		}
	}
	return Found{liveSpec.spec(), slices.DeleteFunc(members, func(m domain.Member) bool { return hidden[m.Name] })}
}

// counts returns the number of instances by role.
func (d Decision) counts(observed []domain.Observed) map[string]int {
	counts, pools := map[string]int{}, d.pools(nil)
	for i := range observed {
		o := &observed[i]
		if _, pooled := pools[o.Role]; !pooled || o.Hash != "" { // else it is about to end
			counts[o.Role] += instances(o)
		}
	}
	return counts
}

// movedTo returns the host that a member was pinned to from outside, or "".
func movedTo(m domain.Member, o *domain.Observed) string {
	if !drifted(o) || o.Live == nil || m.Shared() || o.Live.Host == m.Host {
		return ""
	}
	return o.Live.Host
}

// liveSpec is a group's specification with live values written over the declared ones.
type liveSpec struct {
	declared domain.Group
	roles    map[string]*domain.Role
	// common is what the group declares for all roles, as a role.
	common domain.Role
	// shown is which attributes show a live value, by role and path.
	shown map[string]bool
}

func newLiveSpec(declared domain.Group, counts map[string]int) *liveSpec {
	c := &liveSpec{
		declared: declared, roles: make(map[string]*domain.Role, len(declared.Roles)),
		common: domain.Role{Template: declared.Template}, shown: map[string]bool{},
	}
	for name, role := range declared.Roles {
		if role.Replicas != nil {
			role.Replicas = new(counts[name])
		}
		c.roles[name] = &role
	}
	return c
}

// showsReplicas reports whether a role declares another number of replicas than was found.
func (c *liveSpec) showsReplicas(role string) bool {
	declared := c.declared.Roles[role].Replicas
	return declared != nil && *declared != *c.roles[role].Replicas
}

// lay writes the live values of drifted attributes where they are declared, the role or the group, and reports
// whether any of them is visible.
func (c *liveSpec) lay(role string, d drift) (visible bool) {
	for _, a := range d.attributes {
		key := role + " " + a.path.String()
		if !c.shown[key] {
			declared, found := c.declared.Roles[role], c.roles[role]
			if a.declares != nil && !a.declares(declared.Template) && a.declares(c.declared.Template) {
				declared, found = domain.Role{Template: c.declared.Template}, &c.common
			}
			c.shown[key] = a.lay(declared, found, d.want, d.live)
		}
		visible = visible || c.shown[key]
	}
	return visible
}

func (c *liveSpec) spec() domain.Group {
	spec := c.declared
	spec.Template = c.common.Template
	spec.Roles = make(map[string]domain.Role, len(c.roles))
	for name, role := range c.roles {
		spec.Roles[name] = *role
	}
	return spec
}
