package facts

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/crypto/ssh"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Limits on a host's answer, which may be any text.
const (
	// mostValue bounds the bytes of a value, mostItems the values of a fact.
	mostValue = 1 << 10
	mostItems = 10_000
)

// errNoShell is returned if something other than the script's output answers a command.
var errNoShell = errors.New("the remote command is not a shell")

// Parse returns the facts that the script printed. It skips earlier output of the user's shell, and nonsensical values:
// unknown facts are up to [Check].
func Parse(output []byte) (Facts, error) {
	lines, err := Answer(output, "facts")
	if err != nil {
		return Facts{}, err
	}
	f := Facts{UserID: -1}
	for _, line := range lines {
		f.set(line.Key, line.Value)
	}
	f.complete()
	return f, nil
}

// Line is a line key=value that a script printed. It can be printed, and is not long.
type Line struct{ Key, Value string }

// Answer returns the lines that a script printed between name=begin and name=end: those of the last beginning, as
// shells may print what they run.
func Answer(output []byte, name string) ([]Line, error) {
	var lines []Line
	begun := false
	for line := range strings.Lines(string(output)) {
		key, value, _ := strings.Cut(clean(line), "=")
		switch {
		case key != name:
			if begun {
				lines = append(lines, Line{key, value})
			}
		case value == "begin":
			lines, begun = nil, true
		case value == "end" && begun:
			return lines, nil
		}
	}
	last := clean(lastLine(string(output)))
	if begun {
		return nil, fmt.Errorf("querying the host: its answer broke off after %q", last)
	}
	return nil, fmt.Errorf("querying the host: %w: it printed %q; "+
		"check that the user's login shell runs commands (getent passwd USER)", errNoShell, last)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// clean returns a line with only printable characters, and a bounded length.
func clean(line string) string {
	line = strings.TrimSpace(line[:min(len(line), mostValue)])
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, ""))
}

var (
	machineID   = regexp.MustCompile(`^[0-9a-f]{32}$`)
	bootID      = regexp.MustCompile(`^[0-9a-f-]{30,40}$`)
	systemd     = regexp.MustCompile(`^systemd (\d{1,6})\b`)
	glibc       = regexp.MustCompile(`(?i)(?:^glibc|glibc.*\)|gnu libc.*\)) (\d+\.\d+(?:\.\d+)?)$`)
	version     = regexp.MustCompile(`\b\d+(?:\.\d+)+\b`)
	memory      = regexp.MustCompile(`^MemTotal: *(\d+) kB$`)
	freeKiB     = regexp.MustCompile(` (\d+) +(?:\d+%|-) `)
	programName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// set sets a fact.
func (f *Facts) set(key, value string) {
	switch key {
	case "user":
		f.User = value
	case "user_id":
		f.UserID = int(number(value, -1))
	case "root":
		f.Root = value == "0"
	case "refusal":
		f.Refusal = strings.TrimPrefix(value, "sudo: ")
	case "hostname":
		f.Hostname = value
	case "machine_id":
		f.MachineID = machineID.FindString(value)
	case "boot_id":
		f.BootID = bootID.FindString(value)
	case "machine":
		f.Machine, f.Architecture = value, architectures[value]
	case "kernel":
		f.Kernel = value
	case "os":
		f.OS.set(value)
	case "init":
		f.Init = value
	case "systemd_runs":
		f.SystemdRuns = value == "yes"
	case "systemd":
		f.Systemd = int(number(part(systemd, value), 0))
	case "glibc", "ldd":
		f.Glibc = cmp.Or(f.Glibc, part(glibc, value))
	case "cpus":
		f.Capacity.CPUs = float64(number(value, 0))
	case "memory":
		f.Capacity.MemoryMiB = number(part(memory, value), 0) >> 10
	case "python":
		f.Python = version.FindString(value)
	case "selinux":
		f.SELinux = value == "1"
	case "loader":
		add(&f.Loaders, value)
	case "lacks":
		add(&f.Lacks, value)
	case "control_groups":
		switch groups := ControlGroups(value); groups {
		case ControlGroups1, ControlGroupsHybrid, ControlGroups2:
			f.ControlGroups = groups
		}
	case "controllers":
		for controller := range strings.FieldsSeq(value) {
			add(&f.Controllers, controller)
		}
	case "clock":
		f.Clock = clock(value)
	case "home", "writable", "free", "mount":
		f.Home.set(key, value)
	case "nvidia", "nvidia_smi", "nvidia_toolkit":
		f.NVIDIA.set(key, value)
	case "docker_socket":
		f.Docker.Socket = value
	case "docker":
		f.Docker.Version, f.Docker.Silent = version.FindString(value), value == "silent"
	default:
		f.addTo(key, value)
	}
}

// addTo adds a value to a fact with several values.
func (f *Facts) addTo(key, value string) {
	switch key {
	case "program":
		size, path, _ := strings.Cut(value, " ")
		digest, name, _ := strings.Cut(path, "/")
		if raw, err := hex.DecodeString(digest); err == nil && len(raw) == 32 && programName.MatchString(name) {
			add(&f.Programs, Program{Digest: strings.ToLower(digest), Name: name, Bytes: number(size, -1)})
		}
	case "cluster":
		var problems domain.Problems
		if domain.CheckName(&problems, nil, "cluster", value); problems == nil {
			add(&f.Clusters, value)
		}
	case "port":
		if port, err := strconv.ParseUint(value, 16, 16); err == nil && port > 0 {
			add(&f.Ports, uint16(port))
		}
	case "address":
		ip, err := netip.ParseAddr(value)
		if err == nil && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() && !ip.IsUnspecified() {
			add(&f.Addresses, ip.Unmap().String())
		}
	case "host_key":
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(value)); err == nil {
			add(&f.HostKeys, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))))
		}
	}
}

// complete sorts the lists and removes duplicates: an address on several interfaces, for example, is reported more than
// once.
func (f *Facts) complete() {
	tidy(&f.Controllers)
	tidy(&f.Ports)
	tidy(&f.Addresses)
}

func tidy[T cmp.Ordered](list *[]T) {
	slices.Sort(*list)
	*list = slices.Compact(*list)
}

func add[T any](list *[]T, item T) {
	if len(*list) < mostItems {
		*list = append(*list, item)
	}
}

// set sets a fact from a line of /etc/os-release.
func (o *OS) set(line string) {
	key, value, _ := strings.Cut(line, "=")
	value = strings.Trim(value, `"'`)
	switch key {
	case "PRETTY_NAME":
		o.Name = value
	case "ID", "ID_LIKE":
		for id := range strings.FieldsSeq(value) {
			add(&o.IDs, id)
		}
	}
}

func (h *Home) set(key, value string) {
	switch key {
	case "home":
		h.Folder = value
	case "writable":
		h.Writable = value == "yes"
	case "free":
		h.FreeBytes, _ = FreeBytes(value)
	case "mount":
		point, options, _ := strings.Cut(value, " ")
		h.Mount = unescape(point)
		h.MountOptions = strings.Split(options, ",")
	}
}

func (n *NVIDIA) set(key, value string) {
	switch key {
	case "nvidia":
		n.Driver = version.FindString(value)
	case "nvidia_smi":
		n.SMI = value == "yes"
	case "nvidia_toolkit":
		n.Toolkit = value == "yes"
	}
}

// FreeBytes returns what is free by a line of df -Pk, and false where it doesn't say.
func FreeBytes(line string) (bytes int64, ok bool) {
	kib := number(part(freeKiB, line), -1)
	return max(kib, 0) << 10, kib >= 0
}

// unescape undoes how the kernel writes spaces, tabs, newlines and backslashes in a path.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// part returns what the group of an expression matches, or "".
func part(expression *regexp.Regexp, text string) string {
	if match := expression.FindStringSubmatch(text); match != nil {
		return match[1]
	}
	return ""
}

// number parses a non-negative number that is small enough to count KiB, or returns otherwise.
func number(text string, otherwise int64) int64 {
	n, err := strconv.ParseInt(text, 10, 53)
	if err != nil || n < 0 {
		return otherwise
	}
	return n
}

// clock parses the time that a host printed as seconds and, if its date supports them, nanoseconds.
func clock(text string) time.Time {
	whole, fraction, _ := strings.Cut(text, ".")
	seconds := number(whole, 0)
	if seconds == 0 {
		return time.Time{}
	}
	nanoseconds := int64(0)
	if len(fraction) == 9 {
		nanoseconds = number(fraction, 0)
	}
	return time.Unix(seconds, nanoseconds)
}

// architectures maps the output of uname -m to Go's names for Linux architectures.
var architectures = map[string]string{
	"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64",
	"i386": "386", "i486": "386", "i586": "386", "i686": "386",
	"armv6l": "arm", "armv7l": "arm", "armv8l": "arm",
	"ppc64le": "ppc64le", "ppc64": "ppc64", "s390x": "s390x", "riscv64": "riscv64", "loongarch64": "loong64",
}
