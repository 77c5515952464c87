package install

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/layout"
)

// Install uploads in parallel those of the files that a host lacks according to its facts. If it is interrupted, each
// file is there completely or not at all; concurrent installations of the same file are safe.
func Install(ctx context.Context, host facts.Runner, f facts.Facts, files ...File) error {
	missing := slices.DeleteFunc(slices.Clone(files), func(file File) bool { return f.Has(file.Program) })
	room := f.Home.FreeBytes
	for _, file := range missing {
		if room -= file.Bytes; room < 0 {
			return noRoom(file, fmt.Errorf("%d MiB free", f.Home.FreeBytes>>20))
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, file := range missing {
		group.Go(func() error { return upload(ctx, host, f, file) })
	}
	return group.Wait()
}

// noRoom adds advice to the error of an upload that may have failed for lack of space.
func noRoom(file File, err error) error {
	return fmt.Errorf("copying %s: the disk is full, and %s needs %d MiB: %w; "+
		"free some space, and run terraform apply again",
		file.From, layout.Programs, file.Bytes>>20+1, err)
}

// receive installs its input as the file with the digest $2 and the name $3 in the folder $1. It is one line without
// single quotes, backslashes or exclamation marks, so that all login shells interpret it the same way. Its temporary
// file is in no program's folder, so it is never taken for a program.
const receive = `set -e; umask 022; export LC_ALL=C; mkdir -p "$1"; t=$(mktemp "$1/.upload.XXXXXXXX"); ` +
	`trap "rm -f $t" EXIT; trap "exit 1" HUP INT TERM PIPE; gzip -dc >"$t"; ` +
	`s=$(sha256sum "$t"); case $s in "$2 "*) ;; *) echo "received digest ${s%% *}" >&2; exit 65;; esac; ` +
	`chmod 0755 "$t"; chcon -t bin_t "$t" 2>/dev/null || :; sync "$t" 2>/dev/null || sync; ` +
	`mkdir -p "$1/$2"; mv -f "$t" "$1/$2/$3"; sync "$1/$2" 2>/dev/null || :`

// upload uploads a file to a host.
func upload(ctx context.Context, host facts.Runner, f facts.Facts, file File) error {
	packed, err := packedFile(ctx, file)
	if err != nil {
		return fmt.Errorf("copying %s: %w", file.From, err)
	}
	_, err = host.RunInput(ctx, f.AsRoot("sh", "-c", receive, "sh", layout.Programs, file.Digest, file.Name),
		bytes.NewReader(packed))
	if err == nil {
		return nil
	}
	for _, full := range []string{"No space left on device", "Disk quota exceeded"} {
		if strings.Contains(err.Error(), full) {
			return noRoom(file, err)
		}
	}
	return fmt.Errorf("copying %s: %w", file.From, err)
}
