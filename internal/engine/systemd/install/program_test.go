package install

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
)

func TestOpen(t *testing.T) {
	from := filepath.Join(t.TempDir(), "built")
	modified := time.Now().Add(-time.Hour)
	// write writes the file, and sets its modification time.
	write := func(content string, at time.Time) {
		must(t, os.WriteFile(from, []byte(content), 0o600))
		must(t, os.Chtimes(from, at, at))
	}
	check := func(content string) {
		t.Helper()
		file, err := Open("trainyard", from)
		must(t, err)
		sum := sha256.Sum256([]byte(content))
		digest := hex.EncodeToString(sum[:])
		want := File{facts.Program{Digest: digest, Name: "trainyard", Bytes: int64(len(content))}, from}
		if file != want {
			t.Errorf("it is %+v, want %+v", file, want)
		}
		if got, want := file.Path(), "/var/lib/trainyard/bin/"+digest+"/trainyard"; got != want {
			t.Errorf("it is at %s, want %s", got, want)
		}
	}
	write("first", modified)
	check("first")
	write("other", modified)
	check("first") // it is not read again
	write("longer", modified)
	check("longer")
	write("bigger", modified.Add(time.Second))
	check("bigger")
	must(t, os.Remove(from))
	if _, err := Open("trainyard", from); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
	if _, err := Open("trainyard", filepath.Dir(from)); err == nil ||
		!strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("the error is %v", err)
	}
	for _, name := range []string{"", ".upload", "a/b", "a b", "ä"} {
		if _, err := Open(name, from); err == nil || !strings.Contains(err.Error(), "is not a valid program name") {
			t.Errorf("%q: the error is %v", name, err)
		}
	}
}

func TestProgram(t *testing.T) {
	from := filepath.Join(t.TempDir(), "built")
	must(t, os.WriteFile(from, []byte("program"), 0o600))
	program := Program{"trainyard", map[string]string{"arm64": from, "amd64": from + ".absent"}}
	file, err := program.For("arm64")
	must(t, err)
	if file.From != from || file.Name != "trainyard" || file.Bytes != 7 {
		t.Errorf("it is %+v", file)
	}
	if _, err := program.For("amd64"); !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "architecture amd64") {
		t.Errorf("the error is %v", err)
	}
	_, err = program.For("riscv64")
	for _, part := range []string{
		"hosts with the architecture riscv64", "available: amd64, arm64", `agent_binaries = { riscv64 = "PATH" }`,
	} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
	if _, err := (Program{Name: "trainyard"}).For("amd64"); err == nil ||
		!strings.Contains(err.Error(), "available: none") {
		t.Errorf("the error is %v", err)
	}
}
