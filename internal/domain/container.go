package domain

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
)

// Container holds what only engines that run containers can do for a member. What is omitted is left to the engine's
// defaults.
type Container struct {
	PullPolicy PullPolicy `json:"pull_policy,omitempty"`
	// User is the user that a member runs as, by name or UID, optionally followed by a colon and a group; empty means
	// the image's.
	User string `json:"user,omitempty"`
	// Init runs a small init as the first process, which reaps orphaned processes.
	Init bool `json:"init,omitempty"`
	// StopSignal is the signal that asks a member to end, such as SIGINT; empty means the image's.
	StopSignal string `json:"stop_signal,omitempty"`
	// ShmSizeMiB is the size of /dev/shm, through which PyTorch's data loaders pass their batches.
	ShmSizeMiB int64 `json:"shm_size_mib,omitempty"`
	// Ulimits are resource limits of the member's processes, by names such as "memlock".
	Ulimits     map[string]Ulimit `json:"ulimits,omitempty"`
	HealthCheck *HealthCheck      `json:"health_check,omitempty"`
	Logging     *Logging          `json:"logging,omitempty"`
	// Ports are published on the host itself, by name.
	Ports map[string]PublishedPort `json:"ports,omitempty"`
	// Configs and Secrets are small files that members read, by name. The contents of secrets are kept out of state,
	// plan and logs.
	Configs map[string]ConfigFile `json:"configs,omitempty"`
	Secrets map[string]SecretFile `json:"secrets,omitempty"`
}

// FilesDir is the folder in which containers find the files of their specification. Nothing else may be mounted there.
const FilesDir = "/run/trainyard"

// ShmDir is where processes look for shared memory.
const ShmDir = "/dev/shm"

// PullPolicy says when a host asks a registry for an image; the names are Kubernetes'.
type PullPolicy string

// The pull policies.
const (
	// PullIfNotPresent uses an image that all hosts have without asking a registry. It is the default.
	PullIfNotPresent PullPolicy = "if_not_present"
	PullAlways       PullPolicy = "always"
	PullNever        PullPolicy = "never"
)

// PullPolicies lists the valid values.
var PullPolicies = []PullPolicy{PullIfNotPresent, PullAlways, PullNever}

// Ulimit is a soft and a hard limit; -1 is unlimited.
type Ulimit struct {
	Soft int64 `json:"soft"`
	Hard int64 `json:"hard"`
}

// HealthCheck is a command that reports whether a member is healthy. Unhealthy members are ended and count as failed.
type HealthCheck struct {
	// Command is run without a shell.
	Command     []string  `json:"command"`
	Interval    *Duration `json:"interval,omitempty"`
	Timeout     *Duration `json:"timeout,omitempty"`
	StartPeriod *Duration `json:"start_period,omitempty"`
	Retries     int       `json:"retries,omitempty"`
}

// Logging is a log driver of the engine, and its options.
type Logging struct {
	Driver  string            `json:"driver"`
	Options map[string]string `json:"options,omitempty"`
}

// PublishedPort makes a port of a member reachable on its host. Two members with the same published port can't share a
// host.
type PublishedPort struct {
	Target    int `json:"target"`
	Published int `json:"published"`
	// Protocol is "tcp", "udp" or "sctp"; empty means tcp.
	Protocol string `json:"protocol,omitempty"`
}

// String returns the published port and its protocol, such as "8080/tcp", which only one member of a host can have.
func (p PublishedPort) String() string {
	return fmt.Sprintf("%d/%s", p.Published, cmp.Or(p.Protocol, "tcp"))
}

// ConfigFile is a small file with its content.
type ConfigFile struct {
	Content string `json:"content"`
	// Target is the absolute path at which members find it; it is empty for members without a container, which find all
	// configs in one folder. A zero Mode means 0444.
	Target string   `json:"target,omitempty"`
	Mode   FileMode `json:"mode,omitempty"`
}

// SecretFile is a small file whose content only the engine holds. A new Version means new content.
type SecretFile struct {
	Version string `json:"version"`
	// Target is the absolute path at which containers find it; empty means /run/secrets/<name>. A zero Mode means 0400.
	Target string   `json:"target,omitempty"`
	Mode   FileMode `json:"mode,omitempty"`
}

// FileMode is a file's permissions, stored in documents as octal digits, such as "0444".
type FileMode uint32

// MarshalText writes four octal digits.
func (m FileMode) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%04o", uint32(m)), nil }

// UnmarshalText reads octal digits.
func (m *FileMode) UnmarshalText(text []byte) error {
	parsed, err := strconv.ParseUint(string(text), 8, 32)
	*m = FileMode(parsed)
	return err
}

// CredentialsVariable names the environment variable with the folder in which members without a container find configs
// and secrets by name, as with systemd's own credentials.
const CredentialsVariable = "CREDENTIALS_DIRECTORY"

// Path returns where containers find the secret with this name.
func (s SecretFile) Path(name string) string {
	if s.Target != "" {
		return s.Target
	}
	return "/run/secrets/" + name
}

// SecretValues are the contents of secrets, by role and name. They are passed on and never stored: neither printing nor
// JSON reveals them.
type SecretValues map[string]map[string][]byte

// String reveals no values.
func (SecretValues) String() string { return "(secret values)" }

// Format prints what String returns, whatever the verb.
func (v SecretValues) Format(f fmt.State, _ rune) {
	// The printer notices a failed write itself.
	_, _ = io.WriteString(f, v.String())
}

// MarshalText returns what String does, for logs and JSON.
func (v SecretValues) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
