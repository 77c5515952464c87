package provider

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// playsVariable selects the part that a process of this test plays: Terraform, or its provider.
const playsVariable = "TRAINYARD_TEST_PLAYS"

// TestTerraformGone: a provider notices that Terraform was killed, and not before.
func TestTerraformGone(t *testing.T) {
	switch os.Getenv(playsVariable) {
	case "terraform":
		provider := again(t.Context(), "provider")
		provider.Stderr = os.Stderr
		out, err := provider.StdoutPipe()
		fatalOn(t, err, nil)
		fatalOn(t, provider.Start(), nil)
		_, _ = io.Copy(os.Stdout, out) // until it is killed
		return
	case "provider":
		fmt.Println("serving")
		fmt.Fprintf(os.Stderr, "gone: %t\n", terraformGone())
		os.Exit(0) // the reader of the test's output is gone
	}
	terraform := again(acctest.Bounded(t), "terraform")
	var stderr bytes.Buffer
	terraform.Stderr = &stderr
	out, err := terraform.StdoutPipe()
	fatalOn(t, err, nil)
	fatalOn(t, terraform.Start(), nil)
	first := make([]byte, len("serving"))
	if _, err := io.ReadFull(out, first); err != nil || string(first) != "serving" {
		t.Fatalf("the provider prints %q: %v", first, err)
	}
	fatalOn(t, terraform.Process.Kill(), nil)
	_ = terraform.Wait() // until the provider, which shares its standard error, has ended as well
	if !strings.HasPrefix(stderr.String(), "gone: true") {
		t.Errorf("the provider says %q", stderr.String())
	}
}

// again returns a command that runs this test as one of the parts.
func again(ctx context.Context, plays string) *exec.Cmd {
	command := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestTerraformGone$") //nolint:gosec // this test
	command.Env = append(os.Environ(), playsVariable+"="+plays)
	return command
}
