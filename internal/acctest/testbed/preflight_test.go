//go:build linux

package testbed

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPreflight(t *testing.T) {
	for _, test := range []struct {
		name    string
		uid     int
		hosts   bool // needs of hosts rather than nodes
		missing []string
		want    []string // parts of the error; empty for none
	}{
		{name: "all there"},
		{name: "no root", uid: 1000, want: []string{"only root may", "user 1000", "sudo"}},
		{
			name: "no engine", missing: []string{"dockerd", "containerd", "runc"},
			want: []string{"needs dockerd, containerd, runc", "apt-get install docker.io containerd runc"},
		},
		{name: "no engine for hosts", hosts: true, missing: []string{"dockerd", "containerd", "runc", "iptables"}},
		{
			name: "no installer", hosts: true, missing: []string{"debootstrap"},
			want: []string{"needs debootstrap", "apt-get install debootstrap"},
		},
		{
			name: "no firewall", missing: []string{"iptables"},
			want: []string{"needs iptables", "apt-get install iptables"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			packages := enginePackages
			if test.hosts {
				packages = hostPackages
			}
			err := preflight(test.uid, packages, func(command string) (string, error) {
				if slices.Contains(test.missing, command) {
					return "", os.ErrNotExist
				}
				return "/usr/bin/" + command, nil
			})
			if (err == nil) != (test.want == nil) {
				t.Fatalf("error %v", err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q, want %q in it", err, part)
				}
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{Nodes: 1}, ""},
		{Options{Nodes: 99, Managers: 99}, ""},
		{Options{}, "0 nodes: it has 1 to 99"},
		{Options{Nodes: 100}, "100 nodes"},
		{Options{Nodes: 3, Managers: 4}, "3 nodes with 4 managers: it has 0 to 3"},
		{Options{Nodes: 3, Managers: -1}, "-1 managers"},
	} {
		err := test.options.validate()
		if test.want == "" && err != nil ||
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: error %v, want %q", test.options, err, test.want)
		}
	}
}

func TestHostOptions(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		options HostOptions
		want    string
	}{
		{HostOptions{Hosts: 1}, ""},
		{HostOptions{Hosts: 99, Mounts: []string{folder}}, ""},
		{HostOptions{}, "0 hosts: it has 1 to 99"},
		{HostOptions{Hosts: 100}, "100 hosts"},
		{HostOptions{Hosts: 1, CPUs: 0.5}, ""},
		{HostOptions{Hosts: 1, CPUs: -1}, "-1 processors: it is 0.01 or more"},
		{HostOptions{Hosts: 1, Mounts: []string{"some/folder"}}, "absolute path"},
		{HostOptions{Hosts: 1, Mounts: []string{"/."}}, "below /"},
		{HostOptions{Hosts: 1, Mounts: []string{folder, filepath.Join(folder, "absent")}}, "make it first"},
		{HostOptions{Hosts: 1, Mounts: []string{file}}, "no folder"},
	} {
		err := test.options.validate()
		if test.want == "" && err != nil ||
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: error %v, want %q", test.options, err, test.want)
		}
	}
}
