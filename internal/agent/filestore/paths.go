// Package filestore keeps versions of files on a host, each in a folder named by its digest:
//
//	<digest>/files/           the files, read-only, and readable by everyone who can reach them
//	<digest>/manifest.json    the list of files, and the stat data by which a change of one is noticed
//	.part-*                   a version that is being written, or whose writer died
//
// Only the owner can reach them, until Open lets other users pass through the directory that holds the versions.
//
// A version appears by a rename, and none of its files changes in place, so a program that runs from it finds all of
// them. What others add to its folder, such as compiled Python modules, is left alone, and removed with the version.
package filestore

import (
	"path"
	"strings"
)

// Store is the directory that holds the versions. It need not exist.
type Store struct{ Dir string }

const (
	filesFolder  = "files"
	digestPrefix = "sha256:"
)

// Path returns the directory with the files of a version.
func (s Store) Path(digest string) string { return path.Join(s.version(digest), filesFolder) }

// version returns the directory of a version. Its name has no colon, so it can appear in path lists.
func (s Store) version(digest string) string {
	return path.Join(s.Dir, strings.TrimPrefix(digest, digestPrefix))
}
