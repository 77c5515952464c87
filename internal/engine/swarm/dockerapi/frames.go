package dockerapi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/docker/docker/pkg/stdcopy"

	"github.com/trainyard/terraform-provider-trainyard/internal/bounded"
)

// frameHeader is the length of a frame's header: the stream's number, three zeros, and the length of the text.
const frameHeader = 8

// Demultiplex copies a container's standard output and standard error from the frames that an Engine sends. Unlike
// [stdcopy.StdCopy], it never buffers a whole frame, whatever length that claims to have.
func Demultiplex(out, complaint io.Writer, frames io.Reader) error {
	var header [frameHeader]byte
	for {
		_, err := io.ReadFull(frames, header[:])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the Engine's stream: %w", err)
		}
		var to io.Writer
		fault := &bounded.Tail{Most: bounded.Complaint}
		switch stdcopy.StdType(header[0]) {
		case stdcopy.Stdin, stdcopy.Stdout:
			to = out
		case stdcopy.Stderr:
			to = complaint
		case stdcopy.Systemerr:
			to = fault
		default:
			return fmt.Errorf("the Engine's stream has a frame of unknown type %d, expected 0 to 3", header[0])
		}
		length := int64(binary.BigEndian.Uint32(header[4:]))
		copied, err := io.Copy(to, io.LimitReader(frames, length))
		switch {
		case err != nil:
			return err
		case copied < length:
			return fmt.Errorf("reading the Engine's stream: %w", io.ErrUnexpectedEOF)
		case to == fault:
			return fmt.Errorf("the Engine's stream ended with an error: %s", fault)
		}
	}
}
