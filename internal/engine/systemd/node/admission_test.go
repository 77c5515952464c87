//go:build linux

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/statedir"
)

// TestClustersLetInAtTheSameTime: clusters that join and leave one host concurrently leave each other's lines, and
// foreign ones, as they are.
func TestClustersLetInAtTheSameTime(t *testing.T) {
	const clusters, rounds = 8, 20
	login, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	login.HomeDir = t.TempDir()
	file := filepath.Join(login.HomeDir, ".ssh", "authorized_keys")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("ssh-ed25519 AAAA ada\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	var comeAndGo sync.WaitGroup
	failed := make([]error, clusters)
	for i := range clusters {
		p := part{dir: statedir.Dir{Root: root, Cluster: fmt.Sprint("lab", i)}}
		comeAndGo.Go(func() {
			for range rounds {
				failed[i] = errors.Join(failed[i], p.letIn(login, "ssh-ed25519 key"), p.letIn(login, ""))
			}
			if i%2 == 0 {
				failed[i] = errors.Join(failed[i], p.letIn(login, "ssh-ed25519 key"))
			}
		})
	}
	comeAndGo.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var marks []string
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		marks = append(marks, fields[len(fields)-1])
	}
	slices.Sort(marks)
	if want := []string{"ada", "lab0", "lab2", "lab4", "lab6"}; !slices.Equal(want, marks) {
		t.Errorf("the file has lines of %v, not %v:\n%s", marks, want, content)
	}
}

// TestLetInAsTheLogin: the keys of a login are changed with its own rights to files. So whatever links it has put in
// their place, it learns nothing from a file of root's, and nothing is written to a folder of root's.
func TestLetInAsTheLogin(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can act as another user")
	}
	const id = 65530
	login := &user.User{Username: "nobody's", Uid: fmt.Sprint(id), Gid: fmt.Sprint(id)}
	p := part{dir: statedir.Dir{Root: t.TempDir(), Cluster: "lab"}}
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	home := func(t *testing.T) (folder string) {
		t.Helper()
		folder, err := os.MkdirTemp("/var/tmp", "") //nolint:usetesting // only root can enter t.TempDir
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(folder) })
		login.HomeDir = filepath.Join(folder, "home")
		must(os.Chmod(folder, 0o755), os.Mkdir(login.HomeDir, 0o700), os.Chown(login.HomeDir, id, id))
		return folder
	}

	t.Run("link to a file of root's", func(t *testing.T) {
		secret := filepath.Join(home(t), "secret")
		ssh := filepath.Join(login.HomeDir, ".ssh")
		must(os.WriteFile(secret, []byte("secret"), 0o600), os.Mkdir(ssh, 0o700), os.Chown(ssh, id, id),
			os.Symlink(secret, filepath.Join(ssh, "authorized_keys")))
		if err := p.letIn(login, "ssh-ed25519 key"); !errors.Is(err, fs.ErrPermission) {
			t.Error(err)
		}
		must(p.letIn(login, "")) // there is no key to withdraw
		if info, err := os.Lstat(filepath.Join(ssh, "authorized_keys")); err != nil || info.Mode().IsRegular() {
			t.Errorf("the link is now %v, %v", info, err)
		}
	})

	for name, place := range map[string]func(file string) error{
		"unreadable": func(file string) error { return os.WriteFile(file, nil, 0) },
		"named pipe": func(file string) error { return unix.Mkfifo(file, 0o600) },
		"socket":     func(file string) error { return unix.Mknod(file, unix.S_IFSOCK|0o600, 0) },
		"loop":       func(file string) error { return os.Symlink(file, file) },
		"folder":     func(file string) error { return os.Mkdir(file, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			home(t)
			file := filepath.Join(login.HomeDir, ".ssh", "authorized_keys")
			must(os.Mkdir(filepath.Dir(file), 0o700), os.Chown(filepath.Dir(file), id, id), place(file),
				os.Lchown(file, id, id))
			if err := p.letIn(login, "ssh-ed25519 key"); err == nil {
				t.Error("a key is let in")
			}
			must(p.letIn(login, ""))
		})
	}

	t.Run("folder that can't be written", func(t *testing.T) {
		home(t)
		must(p.letIn(login, "ssh-ed25519 key"), os.Chmod(filepath.Join(login.HomeDir, ".ssh"), 0o500))
		if err := p.letIn(login, "ssh-ed25519 new"); !errors.Is(err, fs.ErrPermission) {
			t.Error(err)
		}
		must(p.letIn(login, ""))
	})

	t.Run("link to a folder of root's", func(t *testing.T) {
		folder := filepath.Join(home(t), "folder")
		must(os.Mkdir(folder, 0o755), os.Symlink(folder, filepath.Join(login.HomeDir, ".ssh")))
		if err := p.letIn(login, "ssh-ed25519 key"); !errors.Is(err, fs.ErrPermission) {
			t.Error(err)
		}
		if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
			t.Errorf("the folder has %v, %v", entries, err)
		}
	})

	t.Run("link to a folder of its own", func(t *testing.T) {
		folder := filepath.Join(home(t), "folder")
		file := filepath.Join(folder, "authorized_keys")
		must(os.Mkdir(folder, 0o700), os.WriteFile(file, []byte("ssh-ed25519 AAAA ada"), 0o600),
			os.Chown(folder, id, id), os.Chown(file, id, id), os.Symlink(folder, filepath.Join(login.HomeDir, ".ssh")))
		must(p.letIn(login, "ssh-ed25519 key"))
		content, err := os.ReadFile(file)
		if err != nil || !strings.HasSuffix(string(content), "ssh-ed25519 key trainyard cluster lab\n") {
			t.Errorf("the file is %q, %v", content, err)
		}
		must(p.letIn(login, ""))
		if content, err := os.ReadFile(file); err != nil || string(content) != "ssh-ed25519 AAAA ada\n" {
			t.Errorf("in the end, the file is %q, %v", content, err)
		}
	})

	t.Run("nothing there", func(t *testing.T) {
		home(t)
		must(p.letIn(login, "ssh-ed25519 key"))
		for path, mode := range map[string]fs.FileMode{".ssh": 0o700, ".ssh/authorized_keys": 0o600} {
			info, err := os.Stat(filepath.Join(login.HomeDir, path))
			if err != nil {
				t.Fatal(err)
			}
			owner := info.Sys().(*syscall.Stat_t) //nolint:forcetypeassert // on Linux
			if owner.Uid != id || owner.Gid != id || info.Mode().Perm() != mode {
				t.Errorf("%s belongs to %d:%d, with mode %v", path, owner.Uid, owner.Gid, info.Mode())
			}
		}
	})
}
