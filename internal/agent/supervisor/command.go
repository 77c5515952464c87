//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// Command returns a command with its program as an absolute path: looked up in the PATH of env or, if it contains a
// slash, relative to the working directory.
func Command(command []string, dir string, env map[string]string) ([]string, error) {
	if len(command) == 0 {
		return nil, errors.New("no command")
	}
	program := command[0]
	if program == Self {
		return append([]string{Executable()}, command[1:]...), nil
	}
	candidates := []string{program}
	if !strings.Contains(program, "/") {
		candidates = nil
		for _, folder := range filepath.SplitList(env["PATH"]) {
			candidates = append(candidates, filepath.Join(folder, program))
		}
	}
	for _, candidate := range candidates {
		if !filepath.IsAbs(candidate) {
			candidate = filepath.Join(dir, candidate)
		}
		if _, err := exec.LookPath(candidate); err == nil {
			return append([]string{candidate}, command[1:]...), nil
		}
	}
	if strings.Contains(program, "/") {
		return nil, fmt.Errorf("%q is not an executable file (working directory %q)", program, dir)
	}
	return nil, fmt.Errorf("%q not found in PATH %q", program, env["PATH"])
}

// Self as the program of a command stands for the supervisor's own program.
const Self = "@self"

func writeFiles(dir string, files []domain.File) error {
	if len(files) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(dir, file.Name), []byte(file.Content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// newName is the name of a file in a folder that outlives its member, before it is moved into place.
const newName = ".trainyard-new"

// keepFiles creates the folder that outlives its member, and writes the member's files into it, for this owner. Files
// are moved into place: an earlier attempt may have put anything there, such as a link to a file of the host.
func keepFiles(dir string, files []domain.File, owner *account) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	for _, file := range files {
		if err := replaceFile(folder, file, owner); err != nil {
			return err
		}
	}
	return nil
}

func replaceFile(folder *os.Root, file domain.File, owner *account) error {
	if err := folder.RemoveAll(newName); err != nil {
		return err
	}
	to, err := folder.OpenFile(newName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = to.WriteString(file.Content)
	if err == nil && owner != nil {
		err = to.Chown(owner.uid, owner.gid)
		if errors.Is(err, fs.ErrPermission) && !onlyOurs(to) {
			err = nil // on a FAT, or on an NFS where root is somebody else: the member has the file elsewhere, too
		}
	}
	if err = errors.Join(err, to.Close()); err == nil {
		err = folder.Rename(newName, file.Name)
	}
	if err != nil {
		_ = folder.RemoveAll(newName)
	}
	return err
}

// onlyOurs reports whether a new file can be read only by the user that this process runs as.
func onlyOurs(file *os.File) bool {
	var found unix.Stat_t
	err := unix.Fstat(int(file.Fd()), &found)
	return err != nil || int(found.Uid) == os.Geteuid() && found.Mode&unix.S_IROTH == 0
}
