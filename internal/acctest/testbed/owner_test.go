//go:build linux

package testbed

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// ownerVariable makes this program the owner of a bed that waits to be killed. It names the archive of a peer.
const ownerVariable = "TRAINYARD_TESTBED_OWNER"

// own starts a bed with a container, writes its folder, and waits.
func own(archive string) {
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
	fmt.Println(bed.folder.path)
	<-ctx.Done() // never
}

func TestOwnerKilled(t *testing.T) {
	SkipIfShort(t)
	archive := t.TempDir() + "/peer.tar"
	if err := os.WriteFile(archive, peerArchive(t), 0o600); err != nil {
		t.Fatal(err)
	}
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"="+archive)
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
	bed := &Bed{folder: &folder{path: strings.TrimSpace(line)}}
	if len(processes(t, bed)) == 0 || len(controlGroups(t, bed.folder.name())) == 0 {
		t.Fatalf("%s has no processes or no control groups", bed.folder.path)
	}

	if err := sweep(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bed.folder.path); err != nil {
		t.Fatalf("the folder of a bed in use was removed: %v", err)
	}

	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // it was killed
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
