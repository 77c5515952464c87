//go:build linux

package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
)

// unusedFor is how long ago a program was installed or last run by a relay that nobody uses and is removed. A younger
// one may belong to an apply that starts it next.
const unusedFor = time.Hour

// agentOf is, in the folder of an installed program, the link to the agent that was last started with it.
const agentOf = ".agent"

// markUsed keeps the folder of an installed program, and that of its agent, from being removed as unused: whoever goes
// back to an earlier version finds it installed, but no link or unit leads to it until its residents are started.
func markUsed(programs, file string, now time.Time) error {
	folder := filepath.Dir(file)
	if filepath.Dir(folder) != programs {
		return nil // not an installed one
	}
	err := os.Chtimes(folder, now, now)
	if agent, none := os.Readlink(filepath.Join(folder, agentOf)); none == nil {
		err = errors.Join(err, os.Chtimes(filepath.Dir(agent), now, now))
	}
	return err
}

// recordAgent records which agent was started with an installed program. It is installed with the program, but then
// nothing asks for it until it is started again: if it were gone by then, the host would get one without GPU support.
func recordAgent(programs, program, agent string) error {
	folder := filepath.Dir(program)
	if filepath.Dir(folder) != programs || agent == program {
		return nil
	}
	return relink(agent, filepath.Join(folder, agentOf))
}

// removeUnused removes the programs that no cluster on this host uses, such as those of earlier versions, and the rest
// of uploads that broke off. Programs that run are not affected.
func removeUnused(programs, clusters, units string, now time.Time) error {
	used, err := inUse(programs, clusters, units)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(programs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		info, gone := entry.Info()
		if gone != nil || used[entry.Name()] || now.Sub(info.ModTime()) < unusedFor {
			continue
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(programs, entry.Name())))
	}
	return err
}

// inUse returns the folders of the programs that the clusters' links lead to, or that the units of their supervisors
// run.
func inUse(programs, clusters, units string) (map[string]bool, error) {
	used := map[string]bool{}
	note := func(file string) {
		if below, is := strings.CutPrefix(file, programs+"/"); is {
			folder, _, _ := strings.Cut(below, "/")
			used[folder] = true
		}
	}
	for _, name := range []string{programLink, agentLink} {
		links, err := filepath.Glob(filepath.Join(clusters, "*", name))
		if err != nil {
			return nil, err
		}
		for _, link := range links {
			file, _ := os.Readlink(link) // it may be gone
			note(file)
		}
	}
	files, err := filepath.Glob(filepath.Join(units, layout.SupervisorUnit("*")))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for word := range strings.FieldsSeq(string(text)) {
			note(strings.TrimPrefix(word, "ExecStart="))
		}
	}
	return used, nil
}
