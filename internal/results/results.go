// Package results is the command "results", which downloads a folder that a member wrote to.
package results

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/trainyard/terraform-provider-trainyard/internal/command"
	"github.com/trainyard/terraform-provider-trainyard/internal/domain"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/printable"
	"github.com/trainyard/terraform-provider-trainyard/internal/reconcile"
)

const usage = `Downloads a folder of a member from its host, as a tar archive.

  terraform-provider-trainyard results MEMBER [--path FOLDER] [--output FILE]

Without --path, downloads the whole of the member's own folder, if the engine gives it one. The archive, MEMBER.tar,
contains one folder with the member's name. For the runs of a sweep, use terraform-provider-trainyard sweep results.

`

type options struct {
	cluster              command.Cluster
	member, path, output string
}

// Run fetches the folder that the arguments name.
func Run(ctx context.Context, args []string, engines engine.Registry, out io.Writer) error {
	o, err := parse(args, engines)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	_, e, err := o.cluster.Find(ctx, engines)
	if err != nil {
		return err
	}
	r := reconcile.Reconciler{Engine: e}
	folder, err := r.FolderOf(ctx, o.member, o.path)
	if err != nil {
		return err
	}
	file := cmp.Or(o.output, o.member+".tar")
	err = command.Archive(file, out, func(to io.Writer) error {
		w := tar.NewWriter(to)
		if err := r.ArchiveFolder(ctx, folder, o.member, w); err != nil {
			return err
		}
		return w.Close()
	})
	if err == nil && file != "-" {
		_, err = io.WriteString(out,
			printable.Text(fmt.Sprintf("%s: %s of host %s\n", file, e.Traits().FolderPlace(folder), folder.Host)))
	}
	return err
}

func parse(args []string, engines engine.Registry) (options, error) {
	var o options
	flags := flag.NewFlagSet("results", flag.ContinueOnError)
	o.cluster.AddFlags(flags, engines)
	flags.StringVar(&o.path, "path", "",
		"`folder` to download, as the member sees it: absolute, or relative to its own folder")
	flags.StringVar(&o.output, "output", "",
		"`file` to write the archive to, or - for standard output; defaults to MEMBER.tar")
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	words, err := command.Words(flags, args)
	if err != nil {
		return o, err
	}
	if len(words) != 1 {
		return o,
			errors.New(
				"results needs one member, such as job-worker-0: see terraform-provider-trainyard results --help",
			)
	}
	o.member = words[0]
	if o.path != "" && !path.IsAbs(o.path) && !domain.IsLocal(o.path) {
		return o, fmt.Errorf(
			"--path %q points outside the member's own folder; use an absolute path, or one below that folder", o.path,
		)
	}
	if slices.Contains(strings.Split(o.path, "/"), "..") {
		return o, fmt.Errorf("--path %q must not contain \"..\"", o.path)
	}
	return o, nil
}
