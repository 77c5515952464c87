//go:build linux

package units

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// The scripts that a unit runs in addition to the member's command.
var (
	//go:embed stop.sh
	stopScript []byte
	//go:embed record.sh
	recordScript []byte
)

// Helpers are the files of those scripts. They have to be files: systemd garbles arguments when it reloads its units,
// because it doesn't read them the way it wrote them.
type Helpers struct {
	stop, record string
}

// harmless matches paths without characters that are special to systemd.
var harmless = regexp.MustCompile(`^[A-Za-z0-9/._-]+$`)

// WriteHelpers writes the scripts into a directory that only root may write to. Units started by another version keep
// using their own files.
func WriteHelpers(folder string) (Helpers, error) {
	if !harmless.MatchString(folder) {
		return Helpers{}, fmt.Errorf("the state directory can't be used for units: "+
			"%q contains characters other than letters, digits and /._-", folder)
	}
	var h Helpers
	for _, helper := range []struct {
		path   *string
		name   string
		script []byte
	}{{&h.stop, "stop", stopScript}, {&h.record, "record", recordScript}} {
		digest := sha256.Sum256(helper.script)
		*helper.path = filepath.Join(folder, "."+helper.name+"-"+hex.EncodeToString(digest[:8])+".sh")
		if err := restore(*helper.path, helper.script); err != nil {
			return Helpers{}, err
		}
	}
	return h, nil
}

// restore writes a file atomically, unless it is there with this content. A power loss may leave less of it.
func restore(path string, content []byte) error {
	present, err := os.ReadFile(path)
	if err == nil && bytes.Equal(present, content) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
