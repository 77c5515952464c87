package domain

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// validateContainer checks the container settings of a role or of the whole group.
func validateContainer(ps *Problems, at Path, c *Container) {
	if c == nil {
		return
	}
	oneOf(ps, at.At("pull_policy"), "pull policy", c.PullPolicy, PullPolicies)
	if c.User != "" && !containerUser.MatchString(c.User) {
		ps.Add(at.At("user"), "Invalid user",
			"%q is not a valid user; use a name or UID, alone or with a group: \"trainer\", \"1000\", \"1000:100\"",
			c.User)
	}
	if c.StopSignal != "" && !slices.Contains(stopSignals, c.StopSignal) && !realtimeSignal.MatchString(c.StopSignal) {
		ps.Add(at.At("stop_signal"), "Unknown signal",
			"%q is not a signal that ends a process; use one of %s, or SIGRTMIN+1 to SIGRTMIN+15", c.StopSignal,
			Quoted(stopSignals))
	}
	if c.ShmSizeMiB < 0 {
		ps.Add(at.At("shm_size_mib"), "Invalid size", "must be 1 or more, or 0 for the default, got %d", c.ShmSizeMiB)
	}
	validateUlimits(ps, at.At("ulimits"), c.Ulimits)
	validateHealthCheck(ps, at.At("health_check"), c.HealthCheck)
	if c.Logging != nil && c.Logging.Driver == "" {
		ps.Add(at.At("logging", "driver"), "Missing log driver",
			"the driver's name is empty; every engine has \"json-file\" and \"local\"")
	}
	validatePorts(ps, at.At("ports"), c.Ports)
	validateFiles(ps, at, c)
}

// containerUser matches a user name or UID, optionally with a group name or GID.
var containerUser = regexp.MustCompile(`^([a-z_][a-z0-9_-]{0,31}|[0-9]{1,10})(:([a-z_][a-z0-9_-]{0,31}|[0-9]{1,10}))?$`)

// stopSignals are the signals that end a process by default.
var stopSignals = []string{
	"SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGABRT", "SIGALRM", "SIGPIPE",
	"SIGPROF", "SIGVTALRM",
	"SIGXCPU", "SIGXFSZ", "SIGTRAP", "SIGSYS", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGPOLL", "SIGPWR",
	"SIGSTKFLT",
}

var realtimeSignal = regexp.MustCompile(`^SIGRTMIN\+([1-9]|1[0-5])$`)

// ulimitNames are the limits that Docker knows.
var ulimitNames = []string{
	"core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio",
	"rttime", "sigpending", "stack",
}

func validateUlimits(ps *Problems, at Path, ulimits map[string]Ulimit) {
	for _, name := range slices.Sorted(maps.Keys(ulimits)) {
		limit, path := ulimits[name], at.At(Key(name))
		if !slices.Contains(ulimitNames, name) {
			ps.Add(path, "Unknown limit", "unknown limit %q; use one of %s", name, Quoted(ulimitNames))
		}
		switch unlimited := int64(-1); {
		case limit.Soft < unlimited:
			ps.Add(path.At("soft"), "Invalid limit", "must be 0 or more, or -1 for unlimited, got %d", limit.Soft)
		case limit.Hard < unlimited:
			ps.Add(path.At("hard"), "Invalid limit", "must be 0 or more, or -1 for unlimited, got %d", limit.Hard)
		case limit.Hard != unlimited && (limit.Soft == unlimited || limit.Soft > limit.Hard):
			ps.Add(path.At("soft"), "Invalid limit",
				"the soft limit, %d, exceeds the hard limit, %d; lower it or raise the hard limit, where -1 "+
					"is unlimited",
				limit.Soft, limit.Hard)
			ps.DecidedBy([]Path{path.At("soft"), path.At("hard")})
		}
	}
}

// minHealthWait is the shortest duration that Docker accepts in a health check.
const minHealthWait = Duration(time.Millisecond)

func validateHealthCheck(ps *Problems, at Path, check *HealthCheck) {
	if check == nil {
		return
	}
	if len(check.Command) == 0 || check.Command[0] == "" {
		ps.Add(at.At("command"), "Missing command",
			"a health check needs a program to run, as the first string of its command")
	}
	for _, wait := range []struct {
		attribute string
		duration  *Duration
	}{{"interval", check.Interval}, {"timeout", check.Timeout}, {"start_period", check.StartPeriod}} {
		if wait.duration != nil && *wait.duration < minHealthWait {
			ps.Add(at.At(wait.attribute), "Invalid duration",
				"must be at least %s, got %s; leave it out for the engine's default", minHealthWait, *wait.duration)
		}
	}
	if check.Retries < 0 {
		ps.Add(at.At("retries"), "Invalid number", "must be 1 or more, or 0 for the default, got %d", check.Retries)
	}
}

// protocols are those that a port can be published for.
var protocols = []string{"tcp", "udp", "sctp"}

func validatePorts(ps *Problems, at Path, ports map[string]PublishedPort) {
	taken := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(ports)) {
		p, path := ports[name], at.At(Key(name))
		validateKey(ps, path, "port", name)
		oneOf(ps, path.At("protocol"), "protocol", p.Protocol, protocols)
		for _, end := range []struct {
			attribute string
			port      int
		}{{"target", p.Target}, {"published", p.Published}} {
			if end.port < 1 || end.port > 65535 {
				ps.Add(path.At(end.attribute), "Invalid port", "must be between 1 and 65535, got %d", end.port)
			}
		}
		if other, found := taken[p.String()]; found {
			ps.Add(path.At("published"), "Port published twice", "port %q is already published as %s", other, p)
			ps.DecidedBy([]Path{
				path.At("published"), path.At("protocol"), at.At(Key(other), "published"),
				at.At(Key(other), "protocol"),
			})
		}
		taken[p.String()] = name
	}
}

const (
	// maxConfigBytes leaves room for what an engine adds to a config; Swarm's own limit is 1,024,000 bytes.
	maxConfigBytes = 1_000_000
	// maxMode allows the permission bits of user, group and others.
	maxMode = 0o777
)

func validateFiles(ps *Problems, at Path, c *Container) {
	for _, name := range slices.Sorted(maps.Keys(c.Configs)) {
		file, path := c.Configs[name], at.At("configs", Key(name))
		validateKey(ps, path, "config", name)
		if file.Target != "" { // the engine decides whether one is required
			validateTarget(ps, path.At("target"), file.Target)
		}
		validateMode(ps, path.At("mode"), file.Mode)
		switch {
		case file.Content == "":
			ps.Add(path.At("content"), "Empty config",
				"a config must not be empty; leave it out, or write \"\\n\" for an empty line")
		case len(file.Content) >= maxConfigBytes:
			ps.Add(path.At("content"), "Config too large",
				"it has %d bytes; fewer than %d are allowed: put large files on the hosts, and mount them",
				len(file.Content), maxConfigBytes)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		file, path := c.Secrets[name], at.At("secrets", Key(name))
		validateKey(ps, path, "secret", name)
		validateTarget(ps, path.At("target"), file.Path(name))
		validateMode(ps, path.At("mode"), file.Mode)
		if strings.TrimSpace(file.Version) == "" {
			ps.Add(path.At("version"), "Missing version",
				"a secret's content is not stored, so a change is only detected by its version; start with \"1\"")
		}
	}
}

// validateConfigsSize checks that the configs of all roles fit into the group's document, which holds them as declared:
// a role without a container block of its own adds nothing.
func validateConfigsSize(ps *Problems, g Group) {
	total := sizeOfConfigs(g.Container)
	largest, at := total, Path{"container", "configs"}
	for _, name := range g.RoleNames() {
		size := sizeOfConfigs(g.Roles[name].Container)
		if total += size; size > largest {
			largest, at = size, Path{"roles", Key(name), "container", "configs"}
		}
	}
	if total >= maxConfigBytes {
		ps.Add(at, "Configs too large", "the group's configs have %d bytes in total, as they are stored with the "+
			"cluster; fewer than %d are allowed: put large files on the hosts, and mount them", total, maxConfigBytes)
	}
}

// sizeOfConfigs returns how many bytes the contents of configs take in a document.
func sizeOfConfigs(c *Container) (size int) {
	if c == nil {
		return 0
	}
	for _, file := range c.Configs {
		if len(file.Content) < maxConfigBytes { // a larger one is reported by itself
			size += jsonSize(file.Content)
		}
	}
	return size
}

func validateMode(ps *Problems, at Path, mode FileMode) {
	if mode > maxMode {
		ps.Add(at, "Invalid mode",
			"%#o is not a valid mode; use the permissions of user, group and others, \"0001\" to \"0777\"", mode)
	}
}

// keyName matches the name of a config, a secret or a port. It becomes part of file and object names.
var keyName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)

func validateKey(ps *Problems, at Path, what, name string) {
	if !keyName.MatchString(name) {
		ps.Add(at, "Invalid "+what+" name", "%q is not a valid name for a %s: use at most 63 letters, digits, "+
			"underscores, dots and hyphens, starting with a letter or digit", name, what)
	}
}

// jsonSize returns how many bytes a text takes in a document.
func jsonSize(text string) int {
	encoded, err := json.Marshal(text)
	if err != nil {
		return len(text)
	}
	return len(encoded) - len(`""`)
}
