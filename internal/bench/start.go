//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/emptypb"
)

const (
	// startBar limits the time from the provider's start to the answer to the first call.
	startBar = 60 * time.Millisecond
	// startRuns is the number of starts measured per run of the other parts, since they are short.
	startRuns = 3
	// startTimeout limits one start.
	startTimeout = 30 * time.Second
)

// start measures the provider's start as Terraform does it: with TLS, up to the answer to the first call, which reads
// the schema.
func (b *bench) start(ctx context.Context) ([]fmt.Stringer, error) {
	binary, err := os.Stat(b.provider)
	if err != nil {
		return nil, err
	}
	client, err := newClient()
	if err != nil {
		return nil, err
	}
	b.say("start: starting the provider %d times", startRuns*b.runs)
	var handshake, answer sample
	for range startRuns * b.runs {
		started, err := b.startOnce(ctx, client)
		if err != nil {
			return nil, err
		}
		handshake, answer = append(handshake, started.handshake), append(answer, started.answer)
	}
	t := &table{head: []string{"from the start of the process to", "took", "bar", ""}}
	t.add("the handshake line", handshake.milliseconds(), "", "")
	t.add("the schema, answer to the first call", answer.milliseconds(),
		fmt.Sprintf("< %d ms", startBar.Milliseconds()), verdict(answer.median() < startBar))
	return []fmt.Stringer{
		t,
		note(fmt.Sprintf("%d starts. The binary has %s, and stays in the page cache.", len(answer),
			mebibytes(uint64(binary.Size())))),
	}, nil
}

// started is how long after its start a provider did this.
type started struct{ handshake, answer time.Duration }

// startOnce starts the provider once, and ends it.
func (b *bench) startOnce(ctx context.Context, client *client) (_ started, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.provider)
	cmd.Env = append(os.Environ(), "TF_PLUGIN_MAGIC_COOKIE="+magicCookie, "PLUGIN_PROTOCOL_VERSIONS="+protocolVersion,
		"PLUGIN_CLIENT_CERT="+client.pem, "TMPDIR="+b.work)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return started{}, err
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return started{}, err
	}
	defer func() {
		cancel()
		if waitErr := cmd.Wait(); err != nil {
			err = errors.Join(err, waitErr) // killing a provider after its answer is no error
		}
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return started{}, fmt.Errorf("the provider's handshake: %w", err)
	}
	var s started
	s.handshake = time.Since(begin)

	connection, err := client.connect(strings.TrimSpace(line))
	if err != nil {
		return started{}, err
	}
	defer connection.Close()
	if err := connection.Invoke(ctx, "/tfplugin6.Provider/GetProviderSchema", &emptypb.Empty{},
		&emptypb.Empty{}); err != nil {
		return started{}, err
	}
	s.answer = time.Since(begin)
	return s, nil
}

// The convention between Terraform and its providers: see github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server.
const (
	magicCookie     = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2"
	protocolVersion = "6"
)

// connect connects to a provider that printed this handshake line:
//
//	<core version>|<protocol version>|<network>|<address>|grpc|<certificate>
func (c *client) connect(handshake string) (*grpc.ClientConn, error) {
	fields := strings.Split(handshake, "|")
	if len(fields) < 6 || fields[1] != protocolVersion || fields[2] != "unix" || fields[4] != "grpc" {
		return nil, fmt.Errorf("the provider's handshake is %q, not 1|%s|unix|<address>|grpc|<certificate>", handshake,
			protocolVersion)
	}
	der, err := base64.RawStdEncoding.DecodeString(fields[5])
	if err != nil {
		return nil, fmt.Errorf("the provider's certificate: %w", err)
	}
	server, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("the provider's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(server)
	return grpc.NewClient("unix:"+fields[3], grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: "localhost", RootCAs: roots,
		Certificates: []tls.Certificate{c.certificate},
	})))
}
