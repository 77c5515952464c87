package relay

import (
	"net"
	"os"
	"time"
)

// Stdio is the connection that this process was started with: its standard input and output.
type Stdio struct{}

// Read reads from standard input.
func (Stdio) Read(p []byte) (int, error) { return os.Stdin.Read(p) }

// Write writes to standard output.
func (Stdio) Write(p []byte) (int, error) { return os.Stdout.Write(p) }

// Close ends both.
func (Stdio) Close() error {
	_ = os.Stdin.Close()
	return os.Stdout.Close()
}

// LocalAddr returns a meaningless address, as does RemoteAddr.
func (Stdio) LocalAddr() net.Addr { return address{} }

// RemoteAddr is LocalAddr.
func (Stdio) RemoteAddr() net.Addr { return address{} }

// SetDeadline does nothing, as the pipes of SSH servers have no deadlines.
func (Stdio) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (Stdio) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (Stdio) SetWriteDeadline(time.Time) error { return nil }

type address struct{}

func (address) Network() string { return "stdio" }
func (address) String() string  { return "stdio" }
