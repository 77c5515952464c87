package reconcile

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// FolderOf returns a folder of a member by its path as the member sees it: absolute, or relative to the member's own
// folder. An empty path is the member's own folder.
func (r Reconciler) FolderOf(ctx context.Context, member, at string) (domain.KeptFolder, error) {
	observed, err := r.Engine.Observe(ctx, "")
	if err != nil {
		return domain.KeptFolder{}, err
	}
	i := slices.IndexFunc(observed, func(o domain.Observed) bool { return o.Name == member })
	if i < 0 {
		return domain.KeptFolder{}, fmt.Errorf("no member %q; terraform-provider-trainyard top lists them", member)
	}
	document, err := engine.Get[domain.GroupDocument](ctx, r.Engine, observed[i].Group)
	if err != nil && !errors.Is(err, engine.ErrNotFound) { // else a run of a sweep, or left over from a group
		return domain.KeptFolder{}, err
	}
	template, traits := document.Spec.EffectiveTemplate(observed[i].Role), r.Engine.Traits()
	folder := domain.KeptFolder{Member: member, Host: observed[i].Host, Path: at}
	if !path.IsAbs(at) {
		if traits.WorkDir == nil || traits.InContainer(template.Image) {
			return domain.KeptFolder{},
				fmt.Errorf("member %q runs in a container and has no folder of its own on engine %q: "+
					"name a folder in a volume or mount, such as --path /results", member, traits.Name)
		}
		folder.Path = path.Join(traits.WorkDir(member), at)
	}
	folder.Mount = domain.MountOf(template.Mounts, folder.Path)
	if traits.Supports.Images && template.Image != "" &&
		(folder.Mount == nil || folder.Mount.Type != "" && folder.Mount.Type != domain.MountBind) {
		return domain.KeptFolder{}, fmt.Errorf(
			"member %q runs in a container, and %q is not a folder of its host: name a folder in a mount of type %q",
			member, folder.Path, domain.MountBind,
		)
	}
	return folder, nil
}

// ArchiveFolder writes the contents of a folder to an archive, under the path below. A missing folder
// is [engine.ErrNotFound].
func (r Reconciler) ArchiveFolder(ctx context.Context, folder domain.KeptFolder, below string, to *tar.Writer) error {
	return r.archive(ctx, folder, below, to, func(string) {})
}

// archive writes the contents of a folder to an archive, under the path below, and calls visit for each file.
func (r Reconciler) archive(
	ctx context.Context, folder domain.KeptFolder, below string, to *tar.Writer, visit func(file string),
) error {
	begun := false
	begin := func() error {
		if begun {
			return nil
		}
		begun = true
		return to.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: below + "/", Mode: 0o755})
	}
	err := r.Engine.ReadFolder(ctx, folder, func(header *tar.Header, content io.Reader) error {
		if !domain.IsLocal(header.Name) {
			return nil // we make none of these
		}
		visit(header.Name)
		if err := begin(); err != nil {
			return err
		}
		return write(to, header, below, content)
	})
	if err != nil {
		return err
	}
	return begin()
}

// write writes a file or folder to an archive, under the path below.
func write(to *tar.Writer, header *tar.Header, below string, content io.Reader) error {
	h := *header
	h.Name, h.Format = path.Join(below, header.Name), tar.FormatUnknown
	switch header.Typeflag {
	case tar.TypeDir:
		h.Name += "/"
	case tar.TypeLink:
		h.Linkname = path.Join(below, header.Linkname)
	}
	if err := to.WriteHeader(&h); err != nil || header.Typeflag != tar.TypeReg {
		return err
	}
	_, err := io.Copy(to, content)
	return err
}
