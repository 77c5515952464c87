package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
	"github.com/trainyard/terraform-provider-trainyard/internal/sshclient"
)

// remote is the host at an address, ssh://[user@]host[:port].
func remote(address string, credentials engine.SSHCredentials) (target, error) {
	login, given := strings.CutPrefix(address, "ssh://")
	if !given && strings.Contains(address, "://") {
		return target{}, fmt.Errorf("%q is not a host address; expected ssh://[user@]host[:port]", address)
	}
	host, err := sshclient.ParseHost(strings.TrimSuffix(login, "/"))
	if err != nil {
		return target{}, err
	}
	client, err := sshclient.New(host, credentials, 0)
	if err != nil {
		return target{}, err
	}
	return target{address: "ssh://" + host.String(), host: client}, nil
}

// local is this machine.
func local() (target, error) {
	if runtime.GOOS != "linux" {
		return target{}, errors.New(
			"this machine can't be a host, as hosts run Linux: give the addresses of hosts, such as ssh://ops@gpu1",
		)
	}
	return target{host: machine{}}, nil
}

// machine runs commands on this machine.
type machine struct{}

// Host returns the name of this machine.
func (machine) Host() sshclient.Host {
	name, err := os.Hostname()
	if err != nil {
		name = "localhost"
	}
	return sshclient.Host{Name: name, Port: sshclient.DefaultPort}
}

// Hold does nothing, as there is no connection.
func (machine) Hold(context.Context) (release func(), err error) { return func() {}, nil }

// RunInput runs a command by the shell.
func (machine) RunInput(ctx context.Context, command string, stdin io.Reader) ([]byte, error) {
	shell := exec.CommandContext(ctx, "/bin/sh", "-c", command) //nolint:gosec // our own
	complaint := &bounded.Tail{Most: bounded.Complaint}
	shell.Stdin, shell.Stderr, shell.WaitDelay = stdin, complaint, time.Second
	stdout, err := shell.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := shell.Start(); err != nil {
		return nil, err
	}
	// A program that the shell started, such as a stuck nvidia-smi, may outlive it and keep the pipe open.
	defer context.AfterFunc(ctx, func() { _ = stdout.Close() })()
	output, err := bounded.ReadAll(stdout, bounded.Answer)
	if err != nil {
		_ = shell.Process.Kill()
	}
	if err := errors.Join(err, shell.Wait()); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, fmt.Errorf("%w: %s", err, complaint.LastLine())
	}
	return output, nil
}
