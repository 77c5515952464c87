//go:build linux

package statedir

import (
	"errors"
	"fmt"
	"io/fs"
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

// Open returns the state directory of a cluster, which may not exist yet. It fails if anybody but root and the user of
// this process could change its content: the supervisor runs whatever is in it.
func Open(root, cluster string) (Dir, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return Dir{}, err
	}
	d := Dir{Root: root, Cluster: cluster}
	return d, ours().check(d)
}

// Clusters returns the sorted names of the clusters with state directories in a folder; none if there is no such
// folder.
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

// Create creates the folders with access only for their owner, as specifications may hold secrets. In a world-writable
// folder such as /tmp, somebody else may have created them since [Open].
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

// MakeFolder creates a folder within a state directory, which may lack it if an earlier version created that.
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

// Remove deletes the directory, except for working directories that are not empty.
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
	// Each of these fails, and so keeps the folder, if something is left in it.
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

// Withdraw deletes the specifications of members, and reports whether there were any. If they are durable, so is that:
// a member must not return with a power loss.
func (d Dir) Withdraw(members []string, durability Durability) (withdrawn bool, err error) {
	for _, folder := range []string{Staged, Specs} {
		changed := false
		for _, member := range members {
			switch err := os.Remove(d.Document(folder, member)); {
			case err == nil:
				changed, withdrawn = true, true
			case !errors.Is(err, fs.ErrNotExist):
				return withdrawn, fmt.Errorf("removing member %q: %w", member, err)
			}
		}
		if changed && durability == Durable {
			if err := syncFolder(d.Path(folder)); err != nil {
				return withdrawn, err
			}
		}
	}
	return withdrawn, nil
}

// Forget deletes all files about a member, except for a working directory that is not empty.
func (d Dir) Forget(member string) error {
	if err := os.RemoveAll(d.FilesDir(member)); err != nil {
		return err
	}
	if err := d.forgetSecrets(member); err != nil {
		return err
	}
	_ = os.Remove(d.WorkDir(member)) // fails if it is not empty, and so keeps it
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
	// The state is deleted last: as long as it exists, a successor knows that there is something to be forgotten.
	for _, path := range append(paths, d.Document(States, member)) {
		if err := Delete(path); err != nil {
			return err
		}
	}
	return nil
}

// MayBeOf reports whether a member with this name may belong to a group; if so, its document shows whether it does.
func MayBeOf(member, group string) bool { return strings.HasPrefix(member, group+"-") }

// Stamp identifies one version of a document. Each version is a new file with another inode, as times are not enough:
// they are of the kernel's last tick, up to 10 ms ago, since when there may have been several.
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

// isEmpty reports whether a file in a folder is an empty document, which counts as none, as in [Read]. An empty item is
// an error.
func isEmpty(folder string, info os.FileInfo) bool {
	return info.Size() == 0 && suffixIn(folder) == documentSuffix
}

// Names returns the names of the documents of a folder, without the suffix.
func (d Dir) Names(folder string) (map[string]bool, error) {
	entries, err := os.ReadDir(d.Path(folder))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	names := make(map[string]bool, len(entries))
	for _, entry := range entries {
		name, isDocument := strings.CutSuffix(entry.Name(), suffixIn(folder))
		if !isDocument {
			continue
		}
		if info, err := entry.Info(); err != nil || !isEmpty(folder, info) {
			names[name] = true // one that is gone by now may have moved to where it was not listed
		}
	}
	return names, nil
}

// List returns the documents of a folder: their names, without the suffix, and the stamps of their files.
func (d Dir) List(folder string) (map[string]Stamp, error) {
	return d.ListOf(folder, func(string) bool { return true })
}

// ListOf returns the documents of a folder with wanted names, as [Dir.List] does.
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
		if !isEmpty(folder, info) {
			stamps[name] = stampOf(info)
		}
	}
	return stamps, nil
}

// Start is the request to start staged members of a group. Each has its own document, so that none overwrites the
// previous one.
type Start struct {
	Group string `json:"group"`
	Run   int    `json:"run"`
	// Members are the names of those that were staged at the time: what is staged before the supervisor handles the
	// request belongs to the next one. Requests of earlier versions name none, and are for all.
	Members []string `json:"members,omitempty"`
}

// Starts reports whether the request is for a staged member.
func (s Start) Starts(spec domain.MemberSpec) bool {
	return spec.Group == s.Group && spec.Run == s.Run && (s.Members == nil || slices.Contains(s.Members, spec.Name))
}

// Name returns the name of the request's document.
func (s Start) Name() string { return fmt.Sprintf("%s.%d", s.Group, s.Run) }

// Stop is the request to stop a member in this run.
type Stop struct {
	Run    int               `json:"run"`
	Reason domain.StopReason `json:"reason"`
}

// State is the supervisor's record of a member.
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
	// LogFrom is when the run's first instance was requested: before it could write anything, unlike RunStartedAt,
	// which is when that was noticed to run.
	LogFrom *time.Time `json:"log_from,omitempty"`
	// OutOfMemory is the last time that an instance ran out of its allowed memory.
	OutOfMemory *domain.OutOfMemory `json:"out_of_memory,omitempty"`
	StopReason  domain.StopReason   `json:"stop_reason,omitempty"`
	// RestartAt is when the next instance is due, if the state is restarting.
	RestartAt *time.Time `json:"restart_at,omitempty"`

	// Instance is the mark of the current instance's processes; empty if none was started. PID and StartTime (in clock
	// ticks since Boot) identify its shell; they are 0 until it is known to run.
	Instance  string `json:"instance,omitempty"`
	PID       int    `json:"pid,omitempty"`
	StartTime uint64 `json:"start_time,omitempty"`
	Boot      string `json:"boot,omitempty"`
	// Container is set if the current instance is a container.
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
