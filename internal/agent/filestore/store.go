//go:build linux

package filestore

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

const (
	manifestFile   = "manifest.json"
	temporaryStart = ".part-"
)

var folderName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Versions returns the digests of the existing versions, including damaged ones.
func (s Store) Versions() (digests []string, err error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		if folderName.MatchString(entry.Name()) {
			digests = append(digests, digestPrefix+entry.Name())
		}
	}
	return digests, nil
}

// Provide makes sure that a version exists and is complete. content returns its files as a tar archive, in any order;
// it is not called if nothing is missing.
func (s Store) Provide(ctx context.Context, tree domain.FileTree, content func() (io.ReadCloser, error)) (err error) {
	if err := tree.Check(); err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	version := s.version(tree.Digest())
	if _, err := os.Lstat(version); err == nil {
		return s.mend(ctx, version, tree, content)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temporary, err := os.MkdirTemp(s.Dir, temporaryStart)
	if err != nil {
		return err
	}
	if err = s.write(ctx, temporary, tree, tree, content); err == nil {
		err = os.Rename(temporary, version)
	}
	if err != nil {
		return errors.Join(err, removeTree(temporary))
	}
	return syncFolder(s.Dir)
}

// mend rewrites the files of a version that are missing or altered.
func (s Store) mend(
	ctx context.Context, version string, tree domain.FileTree, content func() (io.ReadCloser, error),
) error {
	if info, err := os.Lstat(version); err != nil || !info.IsDir() {
		return errors.Join(err, fmt.Errorf("%s is in the way: it is not a folder", version))
	}
	known, err := readManifest(version, tree.Digest())
	if err != nil {
		return err
	}
	if known == nil {
		known = &manifest{Files: tree, Stamps: make([]stamp, len(tree))}
	}
	before := slices.Clone(known.Stamps)
	faults, err := check(ctx, version, known)
	if err != nil {
		return err
	}
	if len(faults) == 0 {
		if err := protect(version, tree); err != nil || slices.Equal(before, known.Stamps) {
			return err
		}
		return s.seal(version, known)
	}
	names := map[string]bool{}
	for _, found := range faults {
		names[found.Path] = true
	}
	var wanted domain.FileTree
	for _, file := range tree {
		if names[file.Path] {
			wanted = append(wanted, file)
		}
	}
	return s.write(ctx, version, tree, wanted, content)
}

// write writes the wanted files of a version, and its manifest.
func (s Store) write(
	ctx context.Context, version string, tree, wanted domain.FileTree, content func() (io.ReadCloser, error),
) (err error) {
	files := filepath.Join(version, filesFolder)
	if err := clearWay(files, files); err != nil {
		return err
	}
	folders := foldersOf(tree)
	for _, folder := range folders {
		if err := clearWay(files, filepath.Join(files, folder)); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(version)
	if err != nil {
		return err
	}
	defer root.Close()
	missing := map[string]domain.TreeFile{}
	for _, file := range wanted {
		if file.Link == "" {
			missing[file.Path] = file
			continue
		}
		if err := replace(root, file.Path, func(at string) error { return root.Symlink(file.Link, at) }); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		err = unpack(ctx, root, missing, content)
	}
	if err = errors.Join(err, protect(version, tree)); err != nil {
		return err
	}
	whole := &manifest{Files: tree, Stamps: make([]stamp, len(tree))}
	for i, file := range tree {
		if whole.Stamps[i], err = stampOf(files, file); err != nil {
			return err
		}
	}
	return s.seal(version, whole)
}

// protect sets the modes of a version's folders, which their owner can write to while its files are being written.
func protect(version string, tree domain.FileTree) error {
	root, err := os.OpenRoot(version)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, folder := range foldersOf(tree) {
		err = errors.Join(err, root.Chmod(filepath.Join(filesFolder, folder), 0o555))
	}
	return errors.Join(err, root.Chmod(".", passage))
}

// clearWay creates a writable directory, replacing whatever else is there. Members may be using what is in it.
func clearWay(files, folder string) error {
	info, err := os.Lstat(folder)
	if err == nil && !info.IsDir() {
		if err := os.Remove(folder); err != nil {
			return err
		}
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		return os.Mkdir(folder, 0o700)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", files, err)
	}
	return os.Chmod(folder, 0o755) //nolint:gosec // as readable as it is when it is protected
}

// temporaryName is the name of a file before it is moved into place.
const temporaryName = temporaryStart + "file"

// replace writes a file, and then moves it into place, over what is there.
func replace(version *os.Root, name string, write func(at string) error) error {
	if err := version.RemoveAll(temporaryName); err != nil {
		return err
	}
	if err := write(temporaryName); err != nil {
		return err
	}
	name = filepath.Join(filesFolder, name)
	if info, err := version.Lstat(name); err == nil && info.IsDir() {
		if err := removeTree(filepath.Join(version.Name(), name)); err != nil {
			return err
		}
	}
	return version.Rename(temporaryName, name)
}

// unpack writes the missing files from an archive, verifying their digests.
func unpack(
	ctx context.Context, root *os.Root, missing map[string]domain.TreeFile, content func() (io.ReadCloser, error),
) error {
	from, err := content()
	if err != nil {
		return err
	}
	defer from.Close()
	archive := tar.NewReader(from)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		file, found := missing[header.Name]
		if !found || header.Typeflag != tar.TypeReg || header.Size != file.Size {
			continue
		}
		err = replace(root, file.Path, func(at string) error { return writeFile(root, at, file, archive) })
		if errors.Is(err, errOther) {
			continue // an archive may have several files of one name, and a later one may match
		}
		if err != nil {
			return err
		}
		delete(missing, file.Path)
	}
	if len(missing) > 0 {
		var names []string
		for name := range missing {
			names = append(names, name)
		}
		return fmt.Errorf("files did not arrive as announced: %s", domain.Enumerate(names))
	}
	return nil
}

var errOther = errors.New("different content")

func writeFile(root *os.Root, at string, file domain.TreeFile, content io.Reader) (err error) {
	to, err := root.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, hash), content)
	if err == nil && hex.EncodeToString(hash.Sum(nil)) != file.SHA256 {
		err = errOther
	}
	if err == nil {
		err = to.Chmod(modeOf(file))
	}
	return errors.Join(err, to.Close())
}

// modeOf returns the permissions of a file. It is readable by everyone who can reach it, as members may run as other
// users.
func modeOf(file domain.TreeFile) fs.FileMode {
	if file.Executable {
		return 0o555
	}
	return 0o444
}

// passage lets other users traverse the directory of a version, but not list it.
const passage = 0o711

// Open lets other users reach the files of versions whose digest they know.
func (s Store) Open() error {
	err := os.Chmod(s.Dir, passage) //nolint:gosec // see passage
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// seal writes the manifest of a complete version, and flushes everything to disk: members started after a power loss
// find it complete.
func (s Store) seal(version string, whole *manifest) error {
	folder, err := os.Open(version)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := writeManifest(version, whole); err != nil {
		return err
	}
	return unix.Syncfs(int(folder.Fd()))
}

// Remove removes versions and the leftovers of crashed writers. Versions that don't exist are ignored.
func (s Store) Remove(ctx context.Context, digests []string) (err error) {
	if _, err := os.Lstat(s.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	for _, digest := range digests {
		if !folderName.MatchString(strings.TrimPrefix(digest, digestPrefix)) {
			return fmt.Errorf("%q is not a digest", digest)
		}
		aside, err := os.MkdirTemp(s.Dir, temporaryStart)
		if err != nil {
			return err
		}
		if err := os.Rename(s.version(digest), filepath.Join(aside, "old")); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.sweep()
}

// Clear removes all versions.
func (s Store) Clear() error { return removeTree(s.Dir) }

// sweep removes unfinished versions. The caller holds the lock, so nobody is working on them.
func (s Store) sweep() error {
	left, err := filepath.Glob(filepath.Join(s.Dir, temporaryStart+"*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := removeTree(path); err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes a directory, including subdirectories without write permission.
func removeTree(path string) error {
	err := filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(at, 0o700)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(path))
}

const lockRetry = 20 * time.Millisecond

// lock waits until there is no other writer, and removes the leftovers of crashed ones.
func (s Store) lock(ctx context.Context) (unlock func() error, err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	folder, err := os.Open(s.Dir)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(err, folder.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("another apply is writing to %s: %w", s.Dir, context.Cause(ctx)),
				folder.Close())
		case <-time.After(lockRetry):
		}
	}
	release := func() error {
		return errors.Join(unix.Flock(int(folder.Fd()), unix.LOCK_UN), folder.Close())
	}
	if err := s.sweep(); err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// manifest records the files of a version, and their stamps when they were last verified.
type manifest struct {
	Files  domain.FileTree `json:"files"`
	Stamps []stamp         `json:"stamps"`
}

// readManifest returns the manifest of a version, or nil if there is no valid one.
func readManifest(version, digest string) (*manifest, error) {
	content, err := os.ReadFile(filepath.Join(version, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var m manifest
	if json.Unmarshal(content, &m) != nil || len(m.Files) != len(m.Stamps) || m.Files.Check() != nil ||
		m.Files.Digest() != digest {
		return nil, nil //nolint:nilerr // somebody has changed it
	}
	return &m, nil
}

func writeManifest(version string, m *manifest) (err error) {
	content, err := json.Marshal(m)
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(version, temporaryStart+manifestFile)
	if err != nil {
		return err
	}
	_, err = temporary.Write(content)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), filepath.Join(version, manifestFile))
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}
