//go:build linux

package testbed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// debianLimit limits the time of an installation, which downloads about 130 MB.
const debianLimit = 20 * time.Minute

// debian is a Debian system, installed once into the user's cache folder.
type debian struct {
	what, release string
	// packages are those beyond the base system. A different list is a different installation.
	packages string
	// from is the system to copy and add packages to; nil to install from scratch.
	from *debian
}

var (
	// debian13 is what nodes run on; procps is for docker top.
	debian13 = debian{
		what: "Debian 13 with its Docker Engine", release: "trixie",
		packages: "docker.io,iptables,ca-certificates,procps",
	}
	// debian12 is what hosts run on, debian12Docker what they run on with HostOptions.Docker.
	debian12 = debian{
		what: "Debian 12 with systemd and OpenSSH's server", release: "bookworm",
		packages: "systemd,systemd-sysv,dbus,openssh-server,sudo,python3,iproute2,ca-certificates,procps",
	}
	debian12Docker = debian{
		what: debian12.what + ", and its Docker Engine", release: debian12.release,
		packages: debian12.packages + ",docker.io,iptables", from: &debian12,
	}
)

// addPackages copies a system's folder and installs packages into the copy, in a quarter of the time that debootstrap
// takes. Names are resolved as on this machine, and no service of a package is started.
const addPackages = `set -e
from=$1 to=$2
shift 2
cp -a --reflink=auto "$from" "$to"
mount -t proc proc "$to/proc"
for file in /etc/hosts /etc/resolv.conf; do
	touch "$to$file"
	mount --bind "$file" "$to$file"
done
policy=$to/usr/sbin/policy-rc.d
printf '#!/bin/sh\nexit 101\n' > "$policy"
chmod 755 "$policy"
# As debootstrap, which does not ask how old the list of packages is.
apt() { chroot "$to" apt-get -qq -o Acquire::Retries=5 -o Acquire::Check-Valid-Until=false -o Acquire::Check-Date=false "$@" < /dev/null; }
apt update
apt install -y --no-install-recommends "$@"
rm "$policy"
`

// install returns the system's folder. The first call installs the system.
func (d debian) install(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "trainyard", "testbed")
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // everyone may run its programs
		return "", err
	}
	packages := sha256.Sum256([]byte(d.packages))
	root := filepath.Join(folder, d.release+"-"+hex.EncodeToString(packages[:4]))
	lock, err := os.OpenFile(root+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close() // also unlocks it
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("%s: %w", lock.Name(), err)
	}
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	if err := d.installInto(ctx, root); err != nil {
		return "", fmt.Errorf("installing %s into %s: %w", d.what, root, err)
	}
	return root, nil
}

// installInto installs the system. The folder appears complete or not at all.
func (d debian) installInto(ctx context.Context, root string) error {
	if _, err := lookPath("debootstrap"); err != nil {
		return fmt.Errorf("%w. Run: apt-get install debootstrap", err)
	}
	ctx, cancel := context.WithTimeout(ctx, debianLimit)
	defer cancel()
	staging := root + ".new"
	if err := os.RemoveAll(staging); err != nil {
		return err
	}
	command := []string{"debootstrap", "--variant=minbase", "--include=" + d.packages, d.release, staging}
	if d.from != nil {
		from, err := d.from.install(ctx)
		if err != nil {
			return err
		}
		command = append([]string{"sh", "-c", addPackages, "add-packages", from, staging},
			strings.Split(d.packages, ",")...)
	}
	began := time.Now()
	var output bytes.Buffer
	// A mount namespace of its own, as mounts of a killed debootstrap would outlive it.
	install := exec.CommandContext(ctx, "unshare", append([]string{"--mount"}, command...)...)
	install.Env = append(os.Environ(), "PATH="+searchPath, "DEBIAN_FRONTEND=noninteractive")
	install.Stdout, install.Stderr = &output, &output
	if err := install.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", command[0], err, output.Bytes()[max(0, output.Len()-logTail*80):])
	}
	for _, folder := range []string{"var/cache/apt", "var/lib/apt/lists"} { // a third of the size, and never used again
		if err := os.RemoveAll(filepath.Join(staging, folder)); err != nil {
			return err
		}
	}
	if err := os.Rename(staging, root); err != nil {
		return err
	}
	log.Printf("%s was installed into %s in %s", d.what, root, time.Since(began).Round(time.Second))
	return nil
}
