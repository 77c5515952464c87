//go:build linux

package testbed

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// opsID is the user and group ID of the user ops.
const opsID = 1000

// masked are units that a host doesn't need: those for devices or terminals, those for what exists once per kernel, and
// those that only take time.
var masked = []string{
	"apt-daily-upgrade.timer", "apt-daily.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap.service",
	"fstrim.timer", "systemd-tmpfiles-clean.timer", "systemd-remount-fs.service",
	"getty.target", "console-getty.service", "systemd-ask-password-console.path", "systemd-ask-password-wall.path",
	"dev-hugepages.mount", "dev-mqueue.mount", "proc-sys-fs-binfmt_misc.automount", "sys-fs-fuse-connections.mount",
	"sys-kernel-config.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount",
	"kmod-static-nodes.service", "systemd-binfmt.service", "systemd-modules-load.service", "systemd-pstore.service",
	"systemd-random-seed.service", "systemd-sysctl.service", "systemd-journald-audit.socket",
	"systemd-firstboot.service", "systemd-repart.service", "systemd-machine-id-commit.service",
	"systemd-sysusers.service",
	"systemd-initctl.socket", "systemd-update-utmp.service", "systemd-update-utmp-runlevel.service",
}

// file is a file on a host's disk.
type file struct {
	path, content string
	mode          os.FileMode
	owner         int
}

// furnish writes the files that distinguish the host from its system, and lets the user with this key log in. It
// returns the host's own key.
func (h *Host) furnish(user ssh.PublicKey) (ssh.PublicKey, error) {
	disk := filepath.Join(h.folder, diskName)
	for path, mode := range map[string]os.FileMode{
		"etc/ssh/sshd_config.d": 0o755, "root/.ssh": 0o700, "home/ops/.ssh": 0o700,
	} {
		if err := os.MkdirAll(filepath.Join(disk, path), mode); err != nil {
			return nil, err
		}
	}
	// As MkdirAll made the folders above.
	for path, mode := range map[string]os.FileMode{".": 0o755, "home": 0o755} {
		if err := os.Chmod(filepath.Join(disk, path), mode); err != nil {
			return nil, err
		}
	}
	for _, path := range []string{"home/ops", "home/ops/.ssh"} {
		if err := os.Chown(filepath.Join(disk, path), opsID, opsID); err != nil {
			return nil, err
		}
	}
	key, err := newKey(filepath.Join(disk, "etc/ssh/ssh_host_ed25519_key"))
	if err != nil {
		return nil, err
	}
	files, err := h.files(user, key)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := f.write(disk); err != nil {
			return nil, err
		}
	}
	units := filepath.Join(disk, "etc/systemd/system")
	if err := os.MkdirAll(units, 0o755); err != nil { //nolint:gosec // as on any host
		return nil, err
	}
	if err := os.Symlink("/lib/systemd/system/multi-user.target", filepath.Join(units, "default.target")); err != nil {
		return nil, err
	}
	for _, unit := range masked {
		if err := os.Symlink(os.DevNull, filepath.Join(units, unit)); err != nil {
			return nil, err
		}
	}
	return key, nil
}

// files are the host's own files.
func (h *Host) files(user, key ssh.PublicKey) ([]file, error) {
	machine := make([]byte, 16)
	_, _ = rand.Read(machine) // never fails
	var names strings.Builder
	names.WriteString("127.0.0.1 localhost\n")
	for number := range h.bed.options.Hosts {
		fmt.Fprintf(&names, "%s %s\n", machineAddress(number+1), hostName(number+1))
	}
	authorized := string(ssh.MarshalAuthorizedKey(user))
	files := append(h.engineFiles(), []file{
		{path: "etc/hostname", content: h.Name + "\n"},
		{path: "etc/machine-id", content: hex.EncodeToString(machine) + "\n", mode: 0o444},
		{path: "etc/hosts", content: names.String()},
		{path: "etc/default/locale", content: "LANG=C.UTF-8\n"},
		{path: "etc/resolv.conf", content: "# There is no name server.\n"},
		{path: "etc/ssh/ssh_host_ed25519_key.pub", content: string(ssh.MarshalAuthorizedKey(key))},
		{path: "etc/ssh/sshd_config.d/host.conf", content: "HostKey /etc/ssh/ssh_host_ed25519_key\n"},
		{path: "etc/sudoers.d/ops", content: "ops ALL=(ALL:ALL) NOPASSWD: ALL\n", mode: 0o440},
		// Debian's would empty /tmp, including folders of this machine that are mounted there.
		{path: "etc/tmpfiles.d/tmp.conf", content: "# /tmp is empty after each boot.\n"},
		{path: "root/.ssh/authorized_keys", content: authorized, mode: 0o600},
		{path: "home/ops/.ssh/authorized_keys", content: authorized, mode: 0o600, owner: opsID},
	}...)
	for _, added := range []file{
		{path: "etc/passwd", content: fmt.Sprintf("ops:x:%d:%[1]d::/home/ops:/bin/bash\n", opsID)},
		{path: "etc/group", content: fmt.Sprintf("ops:x:%d:\n", opsID)},
		{path: "etc/shadow", content: "ops:*:20000:0:99999:7:::\n", mode: 0o640},
	} {
		content, err := os.ReadFile(filepath.Join(h.bed.system, added.path))
		if err != nil {
			return nil, err
		}
		added.content = string(bytes.TrimRight(content, "\n")) + "\n" + added.content
		files = append(files, added)
	}
	return files, nil
}

// write writes the file onto a disk. Without a mode, everyone may read it.
func (f file) write(disk string) error {
	path := filepath.Join(disk, f.path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as on any host
		return err
	}
	mode := f.mode
	if mode == 0 {
		mode = 0o644
	}
	if err := os.WriteFile(path, []byte(f.content), mode); err != nil {
		return err
	}
	return os.Chown(path, f.owner, f.owner)
}
