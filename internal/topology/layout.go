package topology

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Layout is a group whose members are placed. It renders their specifications, and is safe for concurrent use.
type Layout struct {
	group     domain.Group
	framework framework
	members   []domain.Member
	filesDir  func(member, image string) string
	sizes     map[string]domain.Size
	// peers are the addresses that members may depend on: those of the indexed roles, by index.
	peers map[string][]string

	// What members share is computed once, on first use.
	shared   func() shared
	hashes   func() []seal
	programs map[string]func() (program, domain.Problems)
}

// shared is what the specifications of all members have in common.
type shared struct {
	clusterSpec string
	env         func(m domain.Member) map[string]string
	files       []domain.File
}

// NewLayout returns the layout of a group with these members, whose Host, Address and Port are set. filesDir returns
// the folder in which a member with an image finds the files of its specification.
func NewLayout(g domain.Group, members []domain.Member, filesDir func(member, image string) string) *Layout {
	f, _ := lookup(g.Framework)
	l := &Layout{group: g, framework: f, members: members, filesDir: filesDir}
	l.peers = peers(f, members)
	l.shared = sync.OnceValue(l.share)
	l.hashes = sync.OnceValue(l.hashMembers)
	l.programs = make(map[string]func() (program, domain.Problems), len(g.Roles))
	for name := range g.Roles {
		l.programs[name] = sync.OnceValues(func() (program, domain.Problems) { return compile(l, name) })
	}
	return l
}

// Sized renders members with the sizes of their roles. Their hashes stay those of the declared requests, so that
// another size restarts nobody.
func (l *Layout) Sized(sizes map[string]domain.Size) *Layout {
	l.sizes = sizes
	return l
}

// peers returns the addresses of the members of indexed roles, by role and index.
func peers(f framework, members []domain.Member) map[string][]string {
	indexed := map[string][]*domain.Member{}
	for i := range members {
		if m := &members[i]; !f.role(m.Role).interchangeable {
			indexed[m.Role] = append(indexed[m.Role], m)
		}
	}
	addresses := make(map[string][]string, len(indexed))
	for role, members := range indexed {
		slices.SortFunc(members, func(a, b *domain.Member) int { return a.Index - b.Index })
		own := make([]string, len(members))
		for i, m := range members {
			own[i] = m.Address
		}
		addresses[role] = own
	}
	return addresses
}

// ClusterSpec returns role → "host:port,host:port" for the indexed roles that have members. Interchangeable roles are
// left out, so that growing them restarts nobody.
func (l *Layout) ClusterSpec() map[string]string {
	spec := make(map[string]string, len(l.peers))
	for role, addresses := range l.peers {
		spec[role] = strings.Join(addresses, ",")
	}
	return spec
}

// Spec renders the specification of member i; the caller sets Run. If the group restarts as a whole, the rule never
// restarts a member alone, as the controller restarts the group.
func (l *Layout) Spec(i int) (domain.MemberSpec, error) {
	m := l.members[i]
	r, known := l.group.Roles[m.Role]
	if !known {
		return domain.MemberSpec{}, fmt.Errorf("member %s is of role %q, which group %q does not have", m.Name, m.Role,
			l.group.Name)
	}
	if _, known := lookup(l.group.Framework); !known {
		return domain.MemberSpec{}, unknownFramework(l.group.Framework)
	}
	prog, problems := l.programs[m.Role]()
	if err := problems.Err(); err != nil {
		return domain.MemberSpec{}, err
	}
	own, problems := prog.render(l.group, m)
	env := l.env(m, own.env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if _, checked := own.env[name]; !checked {
			checkString(&problems, domain.Path{"roles", domain.Key(m.Role)}, name, env[name])
		}
	}
	if len(problems) > 0 {
		return domain.MemberSpec{}, fmt.Errorf("member %s, of %d: %w", m.Name, len(l.members), problems.Err())
	}
	interchangeable := Interchangeable(l.group, m.Role)
	var constraints domain.Placement
	var update domain.Update
	if interchangeable {
		constraints = r.Placement
	}
	if m.Shared() {
		update = r.Update
	}
	return domain.MemberSpec{
		Cluster:     l.group.Cluster,
		Group:       l.group.Name,
		Role:        m.Role,
		Index:       m.Index,
		Name:        m.Name,
		Scheduling:  m.Scheduling,
		Host:        m.Host,
		Address:     m.Address,
		Shared:      m.Shared(),
		Hash:        l.Hash(i),
		Image:       prog.template.Image,
		Command:     own.command,
		Args:        own.args,
		Env:         env,
		WorkingDir:  prog.template.WorkingDir,
		Mounts:      prog.template.Mounts,
		Files:       l.shared().files,
		Resources:   r.Resources.Sized(l.sizes[m.Role].Resources).Limited(),
		InPlace:     l.sizes[m.Role].InPlace,
		Restart:     restartRule(l.group, r),
		GracePeriod: r.Grace(),
		Container:   container(prog.template),
		Placement:   constraints,
		Update:      update,

		Interchangeable: interchangeable,
	}, nil
}

func container(t domain.Template) domain.Container {
	if t.Container == nil {
		return domain.Container{}
	}
	return *t.Container
}

// restartRule returns the rule by which the engine restarts a single member.
func restartRule(g domain.Group, r domain.Role) domain.RestartRule {
	rule := r.RestartRule()
	if g.RestartScope == domain.ScopeGroup {
		rule.Condition = domain.RestartByGroup
	}
	return rule
}

// env returns the environment of a member: the user's variables override the framework's, and Trainyard's override
// both.
func (l *Layout) env(m domain.Member, own map[string]string) map[string]string {
	shared := l.shared()
	env := map[string]string{cudaDevices: noCUDADevices}
	if l.usesGPUs() {
		env[nvidiaDevices] = noNVIDIADevices
	}
	maps.Copy(env, shared.env(m))
	maps.Copy(env, own)
	maps.Copy(env, l.gpuEnv(m))
	maps.Copy(env, map[string]string{
		domain.ReservedPrefix + "CLUSTER":      l.group.Cluster,
		domain.ReservedPrefix + "GROUP":        l.group.Name,
		domain.ReservedPrefix + "ROLE":         m.Role,
		domain.ReservedPrefix + "INDEX":        strconv.Itoa(m.Index),
		domain.ReservedPrefix + "MEMBER":       m.Name,
		domain.ReservedPrefix + "HOST":         m.Host,
		domain.ReservedPrefix + "ADDRESS":      m.Address,
		domain.ReservedPrefix + "PORT":         strconv.Itoa(m.Port),
		domain.ReservedPrefix + "CLUSTER_SPEC": shared.clusterSpec,
	})
	return env
}

func (l *Layout) share() shared {
	s := shared{clusterSpec: encode(l.peers), env: func(domain.Member) map[string]string { return nil }}
	if l.framework.env != nil {
		s.env = l.framework.env(l)
	}
	if l.framework.files != nil {
		s.files = l.framework.files(l)
	}
	return s
}

// first returns the address of the first member of the first of these roles that has any; "" if none has.
func (l *Layout) first(roles ...string) string {
	for _, role := range roles {
		if addresses := l.peers[role]; len(addresses) > 0 {
			return addresses[0]
		}
	}
	return ""
}

// encode returns the JSON of a value made of maps, slices, structs, strings and numbers, which can't fail. The keys of
// maps are sorted.
func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", value, err))
	}
	return string(text)
}

// split returns the host and the port of "host:port". Without a port, the whole address is the host.
func split(address string) (host, port string) {
	colon := strings.LastIndexByte(address, ':')
	if colon < 0 {
		return address, ""
	}
	return strings.Trim(address[:colon], "[]"), address[colon+1:]
}
