//go:build linux

package containers

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docker/docker/api/types/container"
)

// Log reads a container's log since a point in time, one message at a time: a line, or part of a long one. With follow,
// it returns when the container has ended.
func (e *Engine) Log(
	ctx context.Context, name string, since time.Time, follow bool, write func(at time.Time, text []byte) error,
) error {
	options := container.LogsOptions{ShowStdout: true, ShowStderr: true, Timestamps: true, Follow: follow}
	if !since.IsZero() {
		options.Since = fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond())
	}
	stream, err := e.client.ContainerLogs(ctx, name, options)
	if err != nil {
		return e.explain(err)
	}
	defer stream.Close()
	return readMessages(stream, write)
}

// header is the size of the header of each message: one byte for the stream, three zero bytes and the message size.
const header = 8

// maxMessage bounds a message: Engines split lines at 16 KiB, with a timestamp in front.
const maxMessage = 1 << 20

func readMessages(stream io.Reader, write func(at time.Time, text []byte) error) error {
	var head [header]byte
	for {
		if _, err := io.ReadFull(stream, head[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		size := binary.BigEndian.Uint32(head[4:])
		if size > maxMessage {
			return fmt.Errorf("message too long: %d bytes", size)
		}
		message := make([]byte, size)
		if _, err := io.ReadFull(stream, message); err != nil {
			return err
		}
		moment, text, _ := bytes.Cut(message, []byte(" "))
		at, err := time.Parse(time.RFC3339Nano, string(moment))
		if err != nil {
			return fmt.Errorf("message without a valid time: %w", err)
		}
		if err := write(at, text); err != nil {
			return err
		}
	}
}
