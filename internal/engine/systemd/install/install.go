package install

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
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

// otherDigest is the exit status of receive if the content does not have the digest.
const otherDigest = 65

// upload uploads a file to a host.
func upload(ctx context.Context, host facts.Runner, f facts.Facts, file File) error {
	content, err := os.Open(file.From)
	if err != nil {
		return err
	}
	defer content.Close()
	packed := pack(content)
	defer packed.Close()
	_, err = host.RunInput(ctx, f.AsRoot("sh", "-c", receive, "sh", layout.Programs, file.Digest, file.Name), packed)
	if err == nil {
		return nil
	}
	ended, _ := errors.AsType[*ssh.ExitError](err)
	says := func(text string) bool { return strings.Contains(err.Error(), text) }
	switch {
	case ended != nil && ended.ExitStatus() == otherDigest:
		return fmt.Errorf("copying %s: %w; the file was changed meanwhile: run terraform apply again", file.From, err)
	case says("No space left on device"), says("Disk quota exceeded"):
		return noRoom(file, err)
	}
	return fmt.Errorf("copying %s: %w", file.From, err)
}

// packet is the payload size of an SSH packet.
const packet = 32 << 10

// pack returns a reader of gzip-compressed content. It has to be closed.
func pack(content io.Reader) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() {
		// The network is slower than even this.
		whole := bufio.NewWriterSize(writer, packet) // gzip writes a few hundred bytes at a time
		packer, err := gzip.NewWriterLevel(whole, gzip.BestSpeed)
		if err == nil {
			_, err = io.Copy(packer, content)
			err = errors.Join(err, packer.Close(), whole.Flush())
		}
		writer.CloseWithError(err)
	}()
	return reader
}
