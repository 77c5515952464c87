//go:build linux

package testbed

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// ownerVariable makes this program the owner of a bed that waits to be killed. The value ownerOfHosts starts a bed of
// hosts; any other is the path of an image archive, for a bed that runs a peer.
const (
	ownerVariable = "TRAINYARD_TESTBED_OWNER"
	ownerOfHosts  = "hosts"
)

// own starts a bed, prints its folder, and waits.
func own(what string) {
	var folder string
	if what == ownerOfHosts {
		bed, err := StartHosts(context.Background(), two)
		if err != nil {
			log.Fatal(err)
		}
		// Re-executing systemd, as an update does, must not keep it from ending with its owner.
		if _, err := bed.Hosts[0].Run(context.Background(), "systemctl daemon-reexec"); err != nil {
			log.Fatal(err)
		}
		folder = bed.folder.path
	} else {
		folder = ownPeer(what)
	}
	fmt.Println(folder)
	select {}
}

// ownPeer starts a bed with a container and returns the bed's folder.
func ownPeer(archive string) string {
	ctx := context.Background()
	content, err := os.ReadFile(archive)
	if err != nil {
		log.Fatal(err)
	}
	bed, err := Start(ctx, Options{Nodes: 1, Managers: 1})
	if err != nil {
		log.Fatal(err)
	}
	if err := bed.Load(ctx, peerRef, content); err != nil {
		log.Fatal(err)
	}
	engine := bed.Nodes[0].Client()
	created, err := engine.ContainerCreate(ctx, &container.Config{Image: peerRef}, nil, nil, nil, "")
	if err != nil {
		log.Fatal(err)
	}
	if err := engine.ContainerStart(ctx, created.ID, container.StartOptions{}); err != nil {
		log.Fatal(err)
	}
	return bed.folder.path
}

// startOwner runs this program as the owner of a bed, and returns the bed's folder and a function to kill the owner.
func startOwner(t *testing.T, what string) (folder string, kill func()) {
	t.Helper()
	// Tests of other packages also look for leftovers, and would remove the bed as soon as its owner is killed.
	t.Setenv("TMPDIR", t.TempDir())
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"="+what)
	owner.Stderr = os.Stderr
	output, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), func() {
		t.Helper()
		if err := owner.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = owner.Wait() // it was killed
	}
}

func TestOwnerKilled(t *testing.T) {
	SkipIfShort(t)
	archive := t.TempDir() + "/peer.tar"
	if err := os.WriteFile(archive, peerArchive(t), 0o600); err != nil {
		t.Fatal(err)
	}
	path, kill := startOwner(t, archive)
	bed := &Bed{folder: &folder{path: path}}
	if len(processes(t, bed)) == 0 || len(controlGroups(t, bed.folder.name())) == 0 {
		t.Fatalf("%s has no processes or no control groups", bed.folder.path)
	}

	if err := sweep(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bed.folder.path); err != nil {
		t.Fatalf("the folder of a bed in use was removed: %v", err)
	}

	kill()
	acctest.Eventually(t, "the processes to end with their owner", func() bool { return len(processes(t, bed)) == 0 })
	if _, err := os.Stat(bed.folder.path); err != nil {
		t.Fatalf("there is nothing left to remove: %v", err)
	}

	next := New(t, Options{Nodes: 1})
	if _, err := os.Stat(bed.folder.path); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
	if left := controlGroups(t, bed.folder.name()); len(left) != 0 {
		t.Errorf("control groups are left: %v", left)
	}
	if _, err := next.Nodes[0].Client().Ping(limited(t)); err != nil {
		t.Error(err)
	}
}

func TestOwnerOfHostsKilled(t *testing.T) {
	SkipIfShort(t)
	path, kill := startOwner(t, ownerOfHosts)
	name := filepath.Base(path)
	if len(hostProcesses(t, name)) == 0 || len(controlGroups(t, name)) == 0 {
		t.Fatalf("%s has no processes or no control groups", path)
	}
	if err := sweep(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the folder of a bed in use was removed: %v", err)
	}
	kill()
	acctest.Eventually(t, "the hosts to end with their owner", func() bool { return len(hostProcesses(t, name)) == 0 })
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("there is nothing left to remove: %v", err)
	}
	NewHosts(t, HostOptions{Hosts: 1})
	wantNothingLeft(t, path)
}
