//go:build linux

package testbed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// hostInitName is the program name under which this program becomes a host's systemd.
const hostInitName = "trainyard-testbed-host"

// init turns this program, whichever it is, into a host's first process if a bed started it as such. Standard input is
// a connection to the bed, which sends the configuration; an error is sent back, or the connection ends on success.
func init() {
	if len(os.Args) != 1 || os.Args[0] != hostInitName {
		return
	}
	runtime.LockOSThread() // its namespaces are changed
	connection, err := unix.FcntlInt(os.Stdin.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		log.Fatal(err)
	}
	bed := os.NewFile(uintptr(connection), "bed")
	var boot hostBoot
	if err = json.NewDecoder(bed).Decode(&boot); err == nil { // fails if the bed has ended
		err = boot.run()
	}
	_, _ = fmt.Fprint(bed, err)
	os.Exit(1)
}

// hostBoot is the configuration that a host boots with.
type hostBoot struct {
	Hostname string
	// System is the folder of its system, Folder the one for what it changes.
	System, Folder string
	// Mounts are folders of this machine that it can see.
	Mounts      []string
	Hierarchies []hierarchy
	// Docker reports whether it has a Docker Engine.
	Docker bool
}

// The parts of a host's folder.
const (
	diskName    = "disk" // what the host has written
	workName    = "work" // for overlayfs
	rootName    = "root" // mount point of the host's system; looks empty from outside
	bootIDName  = "boot_id"
	consoleName = "console.log"
	kmsgName    = "kmsg.log" // systemd's log before there is a journal
)

// mounting is a file system to mount within the host's root.
type mounting struct {
	kind, target string
	flags        uintptr
	data         string
	source       string // default: the kind
}

// run makes the host's file system the only one, and turns this process into the host's systemd. It returns only on
// error.
func (b hostBoot) run() error {
	unix.Umask(0)
	// From here on, the control groups in which the bed has put this process are the root ones.
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("a namespace of control groups: %w", err)
	}
	// From here on, mounts are visible only on the host.
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return err
	}
	root := filepath.Join(b.Folder, rootName)
	mounts := slices.Concat(b.systemMounts(root), controlGroupMounts(b.Hierarchies), folderMounts(b.Mounts))
	if b.Docker {
		mounts = append(mounts, b.engineMounts()...)
	}
	for _, m := range mounts {
		target := filepath.Join(root, m.target)
		if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
			if err := os.MkdirAll(target, 0o755); err != nil { //nolint:gosec // as on any host
				return err
			}
		}
		source := m.source
		if source == "" {
			source = m.kind
		}
		if err := unix.Mount(source, target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mounting %s: %w", target, err)
		}
	}
	if err := makeDevices(filepath.Join(root, "dev")); err != nil {
		return err
	}
	if err := b.showKmsg(filepath.Join(root, "dev", "kmsg")); err != nil {
		return err
	}
	if err := linkControllers(filepath.Join(root, cgroupRoot), b.Hierarchies); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(b.Hostname)); err != nil {
		return err
	}
	if err := enterRoot(root); err != nil {
		return err
	}
	unix.Umask(0o022)
	if err := forbid(); err != nil {
		return err
	}
	// The variable keeps systemd from managing devices and the kernel.
	environment := []string{"container=trainyard-testbed", "PATH=" + searchPath}
	return fmt.Errorf("systemd: %w", unix.Exec("/lib/systemd/systemd", []string{"/sbin/init"}, environment))
}

// showKmsg replaces the kernel's log with a file in the bed's folder, to which systemd writes why it can't continue.
func (b hostBoot) showKmsg(path string) error {
	log := filepath.Join(b.Folder, kmsgName)
	for _, file := range []string{log, path} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return err
		}
	}
	return unix.Mount(log, path, "", unix.MS_BIND, "")
}

// forbid keeps programs that this thread starts from changing this machine's kernel and clock.
func forbid() error {
	for _, capability := range []uintptr{unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_TIME} {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil {
			return fmt.Errorf("dropping capability %d: %w", capability, err)
		}
	}
	return nil
}

// enterRoot makes the mount point of a file system the root, and drops all earlier mounts.
func enterRoot(root string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := unix.Dup3(int(null.Fd()), unix.Stdin, 0); err != nil { // the connection ends with this program
		return err
	}
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("dropping this machine's file systems: %w", err)
	}
	return unix.Chdir("/")
}

// systemMounts are the file systems of any host.
func (b hostBoot) systemMounts(root string) []mounting {
	const strict = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s",
		b.System, filepath.Join(b.Folder, diskName), filepath.Join(b.Folder, workName))
	mounts := []mounting{
		{kind: "overlay", target: ".", data: layers},
		{kind: "proc", target: "proc", flags: strict},
		{kind: "sysfs", target: "sys", flags: strict | unix.MS_RDONLY},
		{kind: "tmpfs", target: "dev", flags: unix.MS_NOSUID, data: "mode=0755"},
		{
			kind: "devpts", target: "dev/pts", flags: unix.MS_NOSUID | unix.MS_NOEXEC,
			data: "newinstance,ptmxmode=0666,mode=0620,gid=5",
		},
		{kind: "tmpfs", target: "dev/shm", flags: unix.MS_NOSUID | unix.MS_NODEV, data: "mode=1777"},
		{kind: "mqueue", target: "dev/mqueue", flags: strict},
		{kind: "tmpfs", target: "run", flags: unix.MS_NOSUID | unix.MS_NODEV, data: "mode=0755"},
		{kind: "tmpfs", target: "run/lock", flags: strict, data: "mode=1777"},
		{kind: "tmpfs", target: "tmp", flags: unix.MS_NOSUID | unix.MS_NODEV, data: "mode=1777"},
	}
	// These kernel settings are shared by all hosts and this machine.
	for _, settings := range []string{"proc/sys", "proc/sysrq-trigger"} {
		if _, err := os.Lstat("/" + settings); err != nil {
			continue // not in this kernel
		}
		mounts = append(mounts, readOnly(filepath.Join(root, settings), settings)...)
	}
	// Network settings are the host's own, and an engine changes them.
	const network = "proc/sys/net"
	mounts = append(mounts,
		mounting{source: filepath.Join(root, network), target: network, flags: unix.MS_BIND},
		mounting{target: network, flags: unix.MS_REMOUNT | unix.MS_BIND | strict},
	)
	// Otherwise all machines would have the boot ID of this one's kernel.
	return append(mounts, mounting{
		source: filepath.Join(b.Folder, bootIDName), target: "proc/sys/kernel/random/boot_id", flags: unix.MS_BIND,
	})
}

// readOnly mounts another path, read-only.
func readOnly(source, target string) []mounting {
	return []mounting{
		{source: source, target: target, flags: unix.MS_BIND},
		{target: target, flags: unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY},
	}
}

// controlGroupMounts mount the host's own control groups where it expects them.
func controlGroupMounts(in []hierarchy) []mounting {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	var mounts []mounting
	if !slices.ContainsFunc(in, func(h hierarchy) bool { return h.Folder == "." }) {
		mounts = append(mounts, mounting{kind: "tmpfs", target: cgroupRoot, flags: flags, data: "mode=0755"})
	}
	for _, h := range in {
		m := mounting{kind: "cgroup", target: filepath.Join(cgroupRoot, h.Folder), flags: flags, data: h.Controllers}
		if h.Controllers == "" {
			m.kind = "cgroup2"
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// linkControllers makes controllers that share a hierarchy available under the name of each.
func linkControllers(root string, in []hierarchy) error {
	for _, h := range in {
		if names := strings.Split(h.Controllers, ","); len(names) > 1 {
			for _, name := range names {
				if err := os.Symlink(h.Folder, filepath.Join(root, name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// folderMounts mount folders of this machine on the host, read-only.
func folderMounts(folders []string) []mounting {
	var mounts []mounting
	for _, folder := range folders {
		mounts = append(mounts, readOnly(folder, folder)...)
	}
	return mounts
}

// makeDevices creates the devices that all machines have.
func makeDevices(folder string) error {
	for name, device := range map[string][2]uint32{
		"null": {1, 3}, "zero": {1, 5}, "full": {1, 7}, "random": {1, 8}, "urandom": {1, 9}, "tty": {5, 0},
	} {
		number := int(unix.Mkdev(device[0], device[1])) //nolint:gosec // small
		if err := unix.Mknod(filepath.Join(folder, name), unix.S_IFCHR|0o666, number); err != nil {
			return fmt.Errorf("device %s: %w", name, err)
		}
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
		"ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}
