package systemd

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/agent/telemetry"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine/systemd/facts"
)

// programFor writes a program for an architecture that consists of only its ELF header.
func programFor(t *testing.T, file string, machine elf.Machine) string {
	t.Helper()
	var head bytes.Buffer
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{
			0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT),
		},
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Ehsize: 64,
	}
	if err := binary.Write(&head, binary.LittleEndian, header); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, head.Bytes(), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return file
}

// TestPrograms: hosts run the programs next to the provider, or those in its configuration, by architecture.
func TestPrograms(t *testing.T) {
	folder, own := t.TempDir(), t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	provider := programFor(t, in("provider"), elf.EM_X86_64)
	intel := programFor(t, in("trainyard_linux_amd64"), elf.EM_X86_64)
	arm := programFor(t, in("trainyard_linux_arm64"), elf.EM_AARCH64)
	programFor(t, in(telemetry.AgentName+"_linux_arm64"), elf.EM_AARCH64)
	given := programFor(t, filepath.Join(own, "given"), elf.EM_AARCH64)
	if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		intel = provider // the one for its own machine
	}

	p := Program{File: provider}
	if got, want := p.residents().Files, map[string]string{"amd64": intel, "arm64": arm}; !reflect.DeepEqual(got,
		want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if agent, found, err := p.agent("arm64"); err != nil || !found ||
		agent.From != in(telemetry.AgentName+"_linux_arm64") {
		t.Errorf("the agent is %v, %t, %v", agent, found, err)
	}
	if needs, err := p.Needs(); err != nil || len(needs) != 2 ||
		needs["arm64"].Agent != in(telemetry.AgentName+"_linux_arm64") || needs["amd64"] != (Needs{Program: intel}) {
		t.Errorf("hosts run %+v, %v", needs, err)
	}
	p.Binaries = map[string]string{"arm64": given}
	if got := p.residents().Files["arm64"]; got != given {
		t.Errorf("got %s, want the one that was given", got)
	}
	if _, found, err := p.agent("arm64"); err != nil || found {
		t.Errorf("there is an agent where none is: %v", err)
	}

	if err := os.Remove(arm); err != nil {
		t.Fatal(err)
	}
	if got := (Program{File: provider}).residents().Architectures(); !reflect.DeepEqual(got, []string{"amd64"}) {
		t.Errorf("there are programs for %v", got)
	}
}

// TestGivenPrograms: a configured program that hosts can't run is a problem of these hosts.
func TestGivenPrograms(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	provider := programFor(t, filepath.Join(folder, "provider"), elf.EM_X86_64)
	hosts := map[string]facts.Facts{"a": {Architecture: "arm64"}, "b": {Architecture: "amd64"}}
	for file, says := range map[string]string{
		programFor(t, filepath.Join(folder, "right"), elf.EM_AARCH64): "",
		programFor(t, filepath.Join(folder, "wrong"),
			elf.EM_X86_64): "is built for another architecture than arm64 (EM_X86_64)",
		text:                           "is not a Linux program",
		filepath.Join(folder, "no-it"): "no-it",
	} {
		problems, err := Program{File: provider, Binaries: map[string]string{"arm64": file}}.check(hosts)
		switch {
		case err != nil:
			t.Errorf("%s: %v", file, err)
		case says == "" && len(problems) > 0:
			t.Errorf("%s: %v", file, problems)
		case says != "" && (len(problems) != 1 || problems[0].Path.String() != `hosts["a"].address` ||
			!strings.Contains(problems[0].Detail, says)):
			t.Errorf("%s: got %v, want one of host a that says %s", file, problems, says)
		}
	}
}
