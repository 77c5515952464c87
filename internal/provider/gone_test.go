package provider

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
	"github.com/trainyard/terraform-provider-trainyard/internal/acctest/patience"
)

// playsVariable selects the part that a process of this test plays: Terraform, or its provider.
const playsVariable = "TRAINYARD_TEST_PLAYS"

func TestMain(m *testing.M) {
	switch os.Getenv(playsVariable) {
	case "terraform":
		playTerraform()
	case "provider":
		playProvider()
	default:
		m.Run()
	}
}

// playTerraform starts a provider, and reads its output until it is killed.
func playTerraform() {
	provider := again(context.Background(), "provider")
	provider.Stderr = os.Stderr
	out, err := provider.StdoutPipe()
	if err == nil {
		err = provider.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	_, _ = io.Copy(io.Discard, out)
}

// playProvider serves nothing. As the library that serves providers does, it replaces its standard output.
func playProvider() {
	endWithTerraform()
	os.Stdout = os.Stderr
	fmt.Printf("serving as %d\n", os.Getpid())
	select {} // until Terraform is gone
}

// TestTerraformGone: a provider notices that Terraform was killed, and not before.
func TestTerraformGone(t *testing.T) {
	terraform := again(acctest.Bounded(t), "terraform")
	stderr, err := terraform.StderrPipe()
	fatalOn(t, err, nil)
	fatalOn(t, terraform.Start(), nil)
	var pid int
	if _, err := fmt.Fscanf(stderr, "serving as %d\n", &pid); err != nil {
		t.Fatalf("the provider doesn't say that it is serving: %v", err)
	}
	provider, err := os.FindProcess(pid)
	fatalOn(t, err, nil)
	fatalOn(t, terraform.Process.Kill(), nil)
	kill := time.AfterFunc(patience.Limit, func() {
		t.Error("the provider didn't notice that Terraform is gone")
		_ = provider.Kill()
	})
	// Both share their standard error, which is at its end when both have ended.
	rest, err := io.ReadAll(stderr)
	if len(rest) > 0 || err != nil {
		t.Errorf("the provider says %q, %v", rest, err)
	}
	kill.Stop()
	_ = terraform.Wait()
}

// again returns a command that runs this test as one of the parts.
func again(ctx context.Context, plays string) *exec.Cmd {
	command := exec.CommandContext(ctx, os.Args[0], "-test.run=^$") //nolint:gosec // this test
	command.Env = append(os.Environ(), playsVariable+"="+plays)
	return command
}
