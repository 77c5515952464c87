// Package statedir is the folder in which the process engine keeps a cluster, and through which the engine and the
// supervisor communicate.
//
// Each fact has one file, which one side writes and replaces atomically, so that either side may die at any point and
// be replaced:
//
//	file                           what it holds                      who writes it
//	documents/<kind>.<name>.item   a watched item of the store:       engine
//	                               a line with its revision, then its data
//	records/<kind>.<name>.item     an item that is not watched        engine
//	staged/<member>.json           a specification not started yet    engine
//	starts/<group>.<run>.json      a request to start what is staged  engine; the supervisor removes it
//	specs/<member>.json            a specification in force           moved from staged by the supervisor
//	stops/<member>.json            a request to stop a member         engine
//	states/<member>.json           the state of a member              supervisor
//	exits/<member>.<instance>      how an instance ended              its shell or unit, see packages supervisor and units
//	logs/, files/, work/           logs, files of the specification, and the default working directories
//	secrets/<group>/<member>/      contents of secrets,               engine
//	                               and registry credentials
//	content/<digest>/              files from trainyard_files, see package filestore
//	locks/                         locks, held by flock(2)
package statedir

import (
	"path"
	"strings"
)

// Dir is the state directory of one cluster; see [Open].
type Dir struct {
	// Root is the folder that holds the state directories of all clusters.
	Root string
	// Cluster is the cluster's name.
	Cluster string
}

// The folders of a state directory.
const (
	Documents = "documents"
	Records   = "records"
	Staged    = "staged"
	Starts    = "starts"
	Specs     = "specs"
	Stops     = "stops"
	States    = "states"
	Content   = "content"
	Exits     = "exits"
	logs      = "logs"
	files     = "files"
	work      = "work"
	secrets   = "secrets"
	locks     = "locks"
)

var folders = []string{
	Documents, Records, Staged, Starts, Specs, Stops, States, Content, Exits, logs, files, work, secrets, locks,
}

const (
	documentSuffix = ".json"
	itemSuffix     = ".item"
)

// suffixIn is the suffix of the file names in a folder.
func suffixIn(folder string) string {
	if folder == Documents || folder == Records {
		return itemSuffix
	}
	return documentSuffix
}

// Path returns a path within the directory.
func (d Dir) Path(elements ...string) string {
	return path.Join(append([]string{d.Root, d.Cluster}, elements...)...)
}

// Document returns the path of the document with this name in a folder.
func (d Dir) Document(folder, name string) string { return d.Path(folder, name+suffixIn(folder)) }

// Log returns the path of a member's log.
func (d Dir) Log(member string) string { return d.Path(logs, member+".log") }

// FilesDir returns the folder for the files of a member's specification.
func (d Dir) FilesDir(member string) string { return d.Path(files, member) }

// WorkDir returns the working directory of a member that sets none.
func (d Dir) WorkDir(member string) string { return d.Path(work, member) }

// Exit returns the path at which an instance records how it ended.
func (d Dir) Exit(member, instance string) string { return d.Path(Exits, member+"."+instance) }

// containerSuffix is the suffix of the folder of an instance that is a container.
const containerSuffix = ".container"

// ContainerFolder returns the folder with the files for an instance that is a container. It exists as long as the
// container may.
func (d Dir) ContainerFolder(member, instance string) string {
	return d.Exit(member, instance) + containerSuffix
}

// ContainerOf returns the member and the instance that a folder belongs to, by its name.
func ContainerOf(folder string) (member, instance string, ok bool) {
	name, is := strings.CutSuffix(path.Base(folder), containerSuffix)
	member, instance, ok = strings.Cut(name, ".")
	return member, instance, ok && is
}

// SupervisorLog returns the path of the supervisor's own log.
func (d Dir) SupervisorLog() string { return d.Path(logs, "supervisor.log") }
