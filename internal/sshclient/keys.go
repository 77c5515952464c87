package sshclient

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/trainyard/terraform-provider-trainyard/internal/engine"
)

// keyring holds the keys to log in with, in the order in which they are offered.
type keyring struct {
	keys  []key
	notes []string // why other keys are missing
	agent net.Conn // has to stay open for its keys to sign; nil without an agent
}

// key is a private key, possibly held by an agent, and its origin.
type key struct {
	ssh.Signer
	origin string
}

// defaultKeys are the files that ssh offers by default, except for kinds that need a device.
var defaultKeys = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}

// loadKeys collects the keys. Given keys must exist; those tried by default may be missing. The keyring has to be
// closed.
func loadKeys(ctx context.Context, credentials Credentials) (*keyring, error) {
	ring := &keyring{}
	given := credentials.PrivateKey != "" || len(credentials.IdentityFiles) > 0
	if credentials.PrivateKey != "" {
		if err := ring.add("the given private key", []byte(credentials.PrivateKey),
			credentials.Passphrase); err != nil {
			return nil, Failed(nil, "%s", err)
		}
	}
	for _, path := range credentials.IdentityFiles {
		if err := ring.addFile(path, credentials.Passphrase); err != nil {
			return nil, Failed(nil, "private key: %s", err)
		}
	}
	if credentials.Agent || !given {
		if err := ring.addAgent(ctx); err != nil {
			if credentials.Agent || ctx.Err() != nil {
				return nil, Outcome(ctx, func() error { return Failed(nil, "%s", err) })
			}
			ring.notes = append(ring.notes, err.Error())
		}
	}
	if given || credentials.Agent {
		return ring, nil
	}
	for _, path := range defaultKeys {
		if err := ring.addFile(path, credentials.Passphrase); err != nil && !errors.Is(err, fs.ErrNotExist) {
			ring.notes = append(ring.notes, err.Error())
		}
	}
	if len(ring.keys) == 0 {
		ring.notes = append(ring.notes, "found none of "+strings.Join(defaultKeys, ", "))
	}
	return ring, nil
}

func (r *keyring) addFile(path string, passphrase engine.Secret) error {
	text, err := ReadFile(path)
	if err != nil {
		return err
	}
	return r.add(path, text, passphrase)
}

// add adds a key in PEM format. Errors name its origin, and nothing of its content.
func (r *keyring) add(origin string, text []byte, passphrase engine.Secret) error {
	signer, err := ssh.ParsePrivateKey(text)
	if _, encrypted := errors.AsType[*ssh.PassphraseMissingError](err); encrypted {
		if passphrase == "" {
			return fmt.Errorf("%s is encrypted; give its passphrase, or add it to the agent", origin)
		}
		signer, err = ssh.ParsePrivateKeyWithPassphrase(text, []byte(passphrase))
		if errors.Is(err, x509.IncorrectPasswordError) {
			return fmt.Errorf("%s: wrong passphrase", origin)
		}
	}
	if err != nil {
		return fmt.Errorf("%s is not a valid SSH private key (PEM, as written by ssh-keygen): %w", origin, err)
	}
	r.keys = append(r.keys, key{Signer: signer, origin: origin})
	return nil
}

// addAgent adds the agent's keys.
func (r *keyring) addAgent(ctx context.Context) error {
	network, address, err := agentAddress(runtime.GOOS, os.Getenv("SSH_AUTH_SOCK"))
	if err != nil {
		return err
	}
	conn, err := NetDial(ctx, network, address)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no SSH agent at %s", address)
	}
	if err != nil {
		return fmt.Errorf("the SSH agent: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		_ = conn.Close()
		return fmt.Errorf("the SSH agent at %s: %w", address, err)
	}
	if len(signers) == 0 {
		r.notes = append(r.notes, "the SSH agent has no key (ssh-add adds one)")
	}
	for _, signer := range signers {
		r.keys = append(r.keys, key{Signer: signer, origin: "the agent"})
	}
	r.agent = conn
	return nil
}

const (
	// pipes is the prefix of the paths of Windows' named pipes.
	pipes = `\\.\pipe\`
	// windowsAgent is the pipe of Windows' ssh-agent service.
	windowsAgent = pipes + "openssh-ssh-agent"
)

// agentAddress returns the address of the SSH agent on an operating system, for a value of SSH_AUTH_SOCK.
func agentAddress(goos, socket string) (network, address string, err error) {
	switch {
	case goos == "windows" && socket == "":
		return Pipe, windowsAgent, nil
	case goos == "windows" && strings.HasPrefix(socket, pipes):
		return Pipe, socket, nil
	case socket == "":
		return "", "", errors.New("no SSH agent: SSH_AUTH_SOCK is not set")
	}
	return "unix", socket, nil
}

// signers returns the keys to try.
func (r *keyring) signers() ([]ssh.Signer, error) {
	signers := make([]ssh.Signer, len(r.keys))
	for i, k := range r.keys {
		signers[i] = k.Signer
	}
	return signers, nil
}

// offered lists these keys, and why there are no others.
func (r *keyring) offered() string {
	parts := make([]string, 0, len(r.keys)+len(r.notes))
	for _, k := range r.keys {
		public := k.PublicKey()
		parts = append(parts,
			fmt.Sprintf("offered %s %s from %s", public.Type(), ssh.FingerprintSHA256(public), k.origin))
	}
	return strings.Join(append(parts, r.notes...), "; ")
}

// close ends the connection to the agent.
func (r *keyring) close() {
	if r.agent != nil {
		// No written data could be lost.
		_ = r.agent.Close()
	}
}
