//go:build linux

package statedir

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// DefaultRoot returns TRAINYARD_STATE_DIR, or trainyard in the user's XDG state folder.
func DefaultRoot() (string, error) {
	if dir := os.Getenv("TRAINYARD_STATE_DIR"); dir != "" {
		return dir, nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "trainyard"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state", "trainyard"), nil
}

// Open returns the state directory of a cluster, which may not be there yet. It fails where anybody but root and the
// user of this process could change what is in it: the supervisor runs whatever lies there.
func Open(root, cluster string) (Dir, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return Dir{}, err
	}
	d := Dir{Root: root, Cluster: cluster}
	return d, ours().check(d)
}

// Clusters returns the names of the clusters whose state directories are in a folder, sorted: none, where there is no
// such folder.
func Clusters(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			continue
		}
		exists, err := Dir{Root: root, Cluster: entry.Name()}.Exists()
		if err != nil {
			return nil, err
		}
		if exists {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// Create makes the folders, for their owner alone: specifications may hold secrets. Where anybody may, as in /tmp,
// somebody else may have made them since [Open].
func (d Dir) Create() error {
	if err := ours().check(d); err != nil {
		return err
	}
	for _, folder := range folders {
		if err := os.MkdirAll(d.Path(folder), 0o700); err != nil {
			return err
		}
	}
	return ours().check(d)
}

// MakeFolder makes a folder within a state directory, which may lack it where an earlier version made it.
func MakeFolder(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}

// Exists reports whether the cluster's document is there.
func (d Dir) Exists() (bool, error) {
	_, err := os.Stat(d.Item(engine.Key{Kind: domain.ClusterKind}))
	if os.IsNotExist(err) {
		return false, nil
	}
	return err == nil, err
}

// Remove deletes the directory, but for working directories in which something was left.
func (d Dir) Remove() error {
	entries, err := os.ReadDir(d.Path())
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == work {
			continue
		}
		if err := os.RemoveAll(d.Path(entry.Name())); err != nil {
			return err
		}
	}
	// Each of these fails where something is left in the folder, and so keeps it.
	entries, _ = os.ReadDir(d.Path(work))
	for _, entry := range entries {
		if entry.IsDir() {
			_ = os.Remove(d.Path(work, entry.Name()))
		}
	}
	_ = os.Remove(d.Path(work))
	_ = os.Remove(d.Path())
	return nil
}

// Forget deletes all files about a member, but for a working directory in which something was left.
func (d Dir) Forget(member string) error {
	if err := os.RemoveAll(d.FilesDir(member)); err != nil {
		return err
	}
	if err := d.forgetSecrets(member); err != nil {
		return err
	}
	_ = os.Remove(d.WorkDir(member)) // fails where something was left in it, and so keeps it
	left, err := filepath.Glob(d.Exit(member, "*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		if _, _, is := ContainerOf(path); is {
			continue // there is still a container
		}
		if err := os.RemoveAll(path); err != nil { // one may be a folder
			return err
		}
	}
	paths := []string{d.Document(Staged, member), d.Document(Specs, member), d.Document(Stops, member)}
	paths = append(paths, d.logFiles(member)...)
	// The state last: as long as it is there, a successor knows that there is something to be forgotten.
	for _, path := range append(paths, d.Document(States, member)) {
		if err := Delete(path); err != nil {
			return err
		}
	}
	return nil
}

// MayBeOf reports whether a member of this name may be of a group; where it may, its document tells.
func MayBeOf(member, group string) bool { return strings.HasPrefix(member, group+"-") }

// Stamp identifies one version of a document. Each is a file of its own that replaces the former one, and has another
// inode: times are of the kernel's last tick, up to 10 ms ago, in which there may have been several.
type Stamp struct {
	Modified time.Time `json:"modified"`
	Size     int64     `json:"size"`
	Inode    uint64    `json:"inode"`
}

func stampOf(info os.FileInfo) Stamp {
	stamp := Stamp{Modified: info.ModTime().UTC(), Size: info.Size()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		stamp.Inode = stat.Ino
	}
	return stamp
}

// Names returns the names of the documents of a folder, without the suffix.
func (d Dir) Names(folder string) (map[string]bool, error) {
	entries, err := os.ReadDir(d.Path(folder))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	names := make(map[string]bool, len(entries))
	for _, entry := range entries {
		if name, isDocument := strings.CutSuffix(entry.Name(), suffixIn(folder)); isDocument {
			names[name] = true
		}
	}
	return names, nil
}

// List returns the documents of a folder: their names, without the suffix, and the stamps of their files.
func (d Dir) List(folder string) (map[string]Stamp, error) {
	return d.ListOf(folder, func(string) bool { return true })
}

// ListOf returns the documents of a folder, as [Dir.List] does, whose names are wanted.
func (d Dir) ListOf(folder string, wanted func(name string) bool) (map[string]Stamp, error) {
	entries, err := os.ReadDir(d.Path(folder))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	stamps := make(map[string]Stamp, len(entries))
	for _, entry := range entries {
		name, isDocument := strings.CutSuffix(entry.Name(), suffixIn(folder))
		if !isDocument || !wanted(name) {
			continue
		}
		info, err := entry.Info()
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		stamps[name] = stampOf(info)
	}
	return stamps, nil
}

// Start is the request to start staged members of a group. Each has a document of its own, so that none is lost with
// the one before.
type Start struct {
	Group string `json:"group"`
	Run   int    `json:"run"`
	// Members are the names of those that were staged by then: what is staged before the supervisor deals with the
	// request is the next one's. Requests of earlier versions name none, and are for all.
	Members []string `json:"members,omitempty"`
}

// Starts reports whether the request is for a staged member.
func (s Start) Starts(spec domain.MemberSpec) bool {
	return spec.Group == s.Group && spec.Run == s.Run && (s.Members == nil || slices.Contains(s.Members, spec.Name))
}

// Name returns the name of the request's document.
func (s Start) Name() string { return fmt.Sprintf("%s.%d", s.Group, s.Run) }

// Stop is the request to stop a member in its run.
type Stop struct {
	Run    int               `json:"run"`
	Reason domain.StopReason `json:"reason"`
}

// State is what became of a member.
type State struct {
	Name    string `json:"name"`
	Group   string `json:"group"`
	Role    string `json:"role"`
	Index   int    `json:"index"`
	Host    string `json:"host"`
	Address string `json:"address"`
	Hash    string `json:"hash"`
	Run     int    `json:"run"`
	// Spec is the stamp of the specification's file that this state is about.
	Spec Stamp `json:"spec"`

	State        domain.State `json:"state"`
	Restarts     int          `json:"restarts,omitempty"`
	ExitCode     *int         `json:"exit_code,omitempty"`
	RunStartedAt *time.Time   `json:"run_started_at,omitempty"`
	StartedAt    *time.Time   `json:"started_at,omitempty"`
	FinishedAt   *time.Time   `json:"finished_at,omitempty"`
	LastError    string       `json:"last_error,omitempty"`
	// OutOfMemory is when an instance ran out of the memory that it was allowed, the last time.
	OutOfMemory *domain.OutOfMemory `json:"out_of_memory,omitempty"`
	StopReason  domain.StopReason   `json:"stop_reason,omitempty"`
	// RestartAt is when the next instance is due, where the state is restarting.
	RestartAt *time.Time `json:"restart_at,omitempty"`

	// Instance is the mark of the present instance's processes; empty where none was started. PID and
	// StartTime (in clock ticks since Boot) identify its shell; they are 0 until it is known to run.
	Instance  string `json:"instance,omitempty"`
	PID       int    `json:"pid,omitempty"`
	StartTime uint64 `json:"start_time,omitempty"`
	Boot      string `json:"boot,omitempty"`
	// Container is true where the present instance is a container.
	Container bool `json:"container,omitempty"`
}

// Observed returns the state as the engine reports it.
func (s State) Observed() domain.Observed {
	return domain.Observed{
		Name: s.Name, Group: s.Group, Role: s.Role, Index: s.Index, Host: s.Host, Address: s.Address,
		Hash: s.Hash, Run: s.Run, State: s.State, Restarts: s.Restarts, ExitCode: s.ExitCode,
		RunStartedAt: s.RunStartedAt, StartedAt: s.StartedAt, FinishedAt: s.FinishedAt,
		LastError: s.LastError, StopReason: s.StopReason, OutOfMemory: s.OutOfMemory,
	}
}
