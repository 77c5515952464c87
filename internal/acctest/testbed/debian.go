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
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// debianRelease is Debian 13. debianPackages are what nodes need beyond the base system: procps is for docker top.
	debianRelease  = "trixie"
	debianPackages = "docker.io,iptables,ca-certificates,procps"
	// debianLimit bounds the installation, which downloads some 130 MB.
	debianLimit = 20 * time.Minute
)

// debian13 returns the folder of Debian 13 with its Docker Engine. It is installed once, into the user's cache folder.
func debian13(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "trainyard", "testbed")
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // everyone may run its programs
		return "", err
	}
	packages := sha256.Sum256([]byte(debianPackages)) // a different list needs another installation
	root := filepath.Join(folder, debianRelease+"-"+hex.EncodeToString(packages[:4]))
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
	if err := installDebian(ctx, root); err != nil {
		return "", fmt.Errorf("installing Debian 13 with its Docker Engine into %s: %w", root, err)
	}
	return root, nil
}

// installDebian installs the system. The folder appears complete or not at all.
func installDebian(ctx context.Context, root string) error {
	if _, err := lookPath("debootstrap"); err != nil {
		return fmt.Errorf("%w. Run: apt-get install debootstrap", err)
	}
	ctx, cancel := context.WithTimeout(ctx, debianLimit)
	defer cancel()
	staging := root + ".new"
	if err := os.RemoveAll(staging); err != nil {
		return err
	}
	var said bytes.Buffer
	// In its own mount namespace: mounts of a debootstrap that is killed would outlive it.
	install := exec.CommandContext(ctx, "unshare", "--mount", "debootstrap", "--variant=minbase", "--include="+debianPackages, debianRelease, staging)
	install.Env = append(os.Environ(), "PATH="+searchPath)
	install.Stdout, install.Stderr = &said, &said
	if err := install.Run(); err != nil {
		return fmt.Errorf("debootstrap: %w: %s", err, said.Bytes()[max(0, said.Len()-logTail*80):])
	}
	return os.Rename(staging, root)
}
