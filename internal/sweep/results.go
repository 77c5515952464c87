package sweep

import (
	"encoding/json"
	"path"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
)

// ResultsOf returns where an attempt of a run leaves files; nil if its sweep keeps none. A relative path is below the
// run's own folder, if the engine gives it one. In a place shared by several runs, a mount or a host folder, each run
// gets its own folder.
func ResultsOf(s domain.Sweep, key string, at Site) *domain.RunResults {
	if s.Results == nil {
		return nil
	}
	where, member := s.Results.Path, domain.RunName(s.Name, key)
	if !path.IsAbs(where) {
		if at.WorkDir == nil {
			return &domain.RunResults{Path: where} // rejected by the plan
		}
		return &domain.RunResults{Path: path.Join(at.WorkDir(member), where)}
	}
	mount := domain.MountOf(s.Mounts, where)
	if mount == nil && at.WorkDir == nil {
		return &domain.RunResults{Path: path.Clean(where)}
	}
	return &domain.RunResults{Path: path.Join(where, s.Name, key), Mount: mount}
}

// Folder returns the folder with what the last attempt of a run left; false if it keeps nothing.
func Folder(sweep, key string, run domain.Run) (domain.KeptFolder, bool) {
	if run.Results == nil || run.Assignment == nil {
		return domain.KeptFolder{}, false
	}
	return domain.KeptFolder{
		Member: domain.RunName(sweep, key), Host: run.Assignment.Host, Path: run.Results.Path, Mount: run.Results.Mount,
	}, true
}

// pathOf returns the path of results; "" if none are kept.
func pathOf(r *domain.Results) string {
	if r == nil {
		return ""
	}
	return r.Path
}

// CheckResults checks where runs leave files against what an engine can keep: members' own folders or, if at.WorkDir is
// nil, volumes and mounts.
func CheckResults(s domain.Sweep, at Site, engine string) (ps domain.Problems) {
	if s.Results == nil {
		return nil
	}
	where, in := s.Results.Path, domain.Path{"results", "path"}
	if at.WorkDir == nil && !path.IsAbs(where) {
		ps.Add(in, "Relative path",
			"%q is relative, but members on engine %q have no folder that outlives them. Use an absolute path, such "+
				"as %q: each run gets a named volume there. "+
				"Or use a path in a mount that you declare, of a named volume or of a folder shared by all hosts "+
				"(type = %q): each run gets a folder in it",
			where, engine, "/results", domain.MountBind)
		return ps
	}
	mount := domain.MountOf(s.Mounts, where)
	if mount == nil || !path.IsAbs(where) {
		return nil
	}
	inputs := []domain.Path{in, {"mounts"}}
	switch {
	case mount.Type == domain.MountTmpfs:
		ps.Add(in, "Results would be lost", "%q is in the mount at %q, which is of type %q and is deleted with the "+
			"run; use a named volume, a folder shared by all hosts, or a path outside of any mount", where,
			mount.Target, mount.Type)
		ps.DecidedBy(inputs)
	case mount.ReadOnly:
		ps.Add(in, "Results can't be written", "%q is in the mount at %q, which is read-only", where, mount.Target)
		ps.DecidedBy(inputs)
	case at.WorkDir != nil && !at.asTheHost(s.Image) && mount.Type == domain.MountVolume:
		ps.Add(in, "Results out of reach", "%q is in the mount at %q, but engine %q fetches nothing from named "+
			"volumes: use a folder of the hosts (type = %q), or a path outside of any mount, where each run gets a "+
			"folder on its host",
			where, mount.Target, engine, domain.MountBind)
		ps.DecidedBy(append(inputs, domain.Path{"image"}))
	case at.WorkDir == nil && s.Results.OnDestroy == domain.DeleteResults:
		ps.Add(domain.Path{"results", "on_destroy"}, "Results can't be deleted",
			"engine %q doesn't delete what runs leave in a mount that you declare, such as at %q: set on_destroy to "+
				"%q, or use a path outside of any mount",
			engine, mount.Target, domain.KeepResults)
		ps.DecidedBy(append(inputs, domain.Path{"results", "on_destroy"}))
	}
	return ps
}

// ConfigFile returns the name of the file with a run's config. Its extension shows whether it is JSON.
func ConfigFile(config string) string {
	if json.Valid([]byte(config)) {
		return "config.json"
	}
	return "config"
}

// give adds to a specification what the attempt of a run gets in addition to other members.
func give(spec *domain.MemberSpec, own domain.RunSpec, run domain.Run, at Site) {
	if own.Config != "" {
		file := domain.File{Name: ConfigFile(own.Config), Content: own.Config}
		spec.Files = append(spec.Files, file)
		spec.Env[configVariable] = path.Join(at.FilesDir(spec.Name, spec.Image), file.Name)
	}
	if r := run.Results; r != nil {
		spec.Env[resultsVariable] = r.Path
		if r.Mount == nil || at.asTheHost(spec.Image) {
			spec.Kept = r.Path
		}
	}
}
