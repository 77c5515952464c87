package domain

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
)

// Container holds what only engines that run containers can do for a member. What is left out is the engine's default.
type Container struct {
	PullPolicy PullPolicy `json:"pull_policy,omitempty"`
	// User is who a member runs as, a name or a UID, with a group after a colon where it is not the user's own; the
	// image's where it is empty.
	User string `json:"user,omitempty"`
	// Init runs a small init as the first process, which reaps what the others leave behind.
	Init bool `json:"init,omitempty"`
	// StopSignal is what a member is told to end with, such as SIGINT; the image's own where it is empty.
	StopSignal string `json:"stop_signal,omitempty"`
	// ShmSizeMiB is the size of /dev/shm, through which PyTorch's data loaders hand over their batches.
	ShmSizeMiB int64 `json:"shm_size_mib,omitempty"`
	// Ulimits are the limits of the member's processes, by names such as "memlock".
	Ulimits     map[string]Ulimit `json:"ulimits,omitempty"`
	HealthCheck *HealthCheck      `json:"health_check,omitempty"`
	Logging     *Logging          `json:"logging,omitempty"`
	// Ports are published on the host itself, by name.
	Ports map[string]PublishedPort `json:"ports,omitempty"`
	// Configs are small files that members read, and Secrets such whose contents are kept from state, plan and log, by
	// name.
	Configs map[string]ConfigFile `json:"configs,omitempty"`
	Secrets map[string]SecretFile `json:"secrets,omitempty"`
}

// FilesDir is the folder in which containers find the files of their specification: nothing else may be there.
const FilesDir = "/run/trainyard"

// ShmDir is where processes look for shared memory.
const ShmDir = "/dev/shm"

// PullPolicy says when a host asks a registry for an image; the names are those of Kubernetes.
type PullPolicy string

// The policies for pulling images.
const (
	// PullIfNotPresent takes an image that all the hosts have as it is, without asking a registry. It is the default.
	PullIfNotPresent PullPolicy = "if_not_present"
	PullAlways       PullPolicy = "always"
	PullNever        PullPolicy = "never"
)

// PullPolicies lists the policies that a container may name.
var PullPolicies = []PullPolicy{PullIfNotPresent, PullAlways, PullNever}

// Ulimit is a soft and a hard limit; -1 is unlimited.
type Ulimit struct {
	Soft int64 `json:"soft"`
	Hard int64 `json:"hard"`
}

// HealthCheck is a command that reports whether a member is well. Members that are not are ended, and count as failed.
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

// PublishedPort makes a port of a member reachable at its host. Two members with the same published port can't be on
// one host.
type PublishedPort struct {
	Target    int `json:"target"`
	Published int `json:"published"`
	// Protocol is "tcp", "udp" or "sctp"; tcp where it is empty.
	Protocol string `json:"protocol,omitempty"`
}

// String returns what only one member on a host can have, such as "8080/tcp".
func (p PublishedPort) String() string {
	return fmt.Sprintf("%d/%s", p.Published, cmp.Or(p.Protocol, "tcp"))
}

// ConfigFile is a small file with its content.
type ConfigFile struct {
	Content string `json:"content"`
	// Target is the absolute path at which members find it. It is empty for members without a container, which find all
	// configs in one folder; Mode are its permissions, 0444 where they are zero.
	Target string   `json:"target,omitempty"`
	Mode   FileMode `json:"mode,omitempty"`
}

// SecretFile is a small file whose content is nowhere but with the engine. Another version is another content.
type SecretFile struct {
	Version string `json:"version"`
	// Target is the absolute path at which containers find it, /run/secrets/<name> where it is empty; Mode are its
	// permissions, 0400 where they are zero.
	Target string   `json:"target,omitempty"`
	Mode   FileMode `json:"mode,omitempty"`
}

// FileMode are the permissions of a file, which documents hold in octal digits, such as "0444".
type FileMode uint32

// MarshalText writes four octal digits.
func (m FileMode) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%04o", uint32(m)), nil }

// UnmarshalText reads octal digits.
func (m *FileMode) UnmarshalText(text []byte) error {
	parsed, err := strconv.ParseUint(string(text), 8, 32)
	*m = FileMode(parsed)
	return err
}

// CredentialsVariable names the folder in which members without a container find their configs and secrets by their
// names, as systemd's own credentials.
const CredentialsVariable = "CREDENTIALS_DIRECTORY"

// Path returns where containers find the secret of this name.
func (s SecretFile) Path(name string) string {
	if s.Target != "" {
		return s.Target
	}
	return "/run/secrets/" + name
}

// SecretValues are the contents of secrets, by role and name. They are handed over and never kept: neither print nor
// JSON shows them.
type SecretValues map[string]map[string][]byte

// String tells nothing of the values.
func (SecretValues) String() string { return "(secret values)" }

// Format prints what String returns, whatever the verb.
func (v SecretValues) Format(f fmt.State, _ rune) {
	// A failed write is the printer's to notice.
	_, _ = io.WriteString(f, v.String())
}

// MarshalText returns what String does, for logs and JSON.
func (v SecretValues) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
