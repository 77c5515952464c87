package swarmtest

import (
	"encoding/binary"
	"io"
	"strings"

	"github.com/docker/docker/pkg/stdcopy"

	"github.com/trainyard/terraform-provider-trainyard/internal/acctest"
)

// frameHeader is the length of a frame's header.
const frameHeader = 8

// Frames returns a gibibyte of text as an Engine sends it, on one stream, with a line in each frame.
func Frames(kind stdcopy.StdType) io.Reader {
	const size = 16 << 10
	frame := make([]byte, frameHeader, frameHeader+size)
	frame[0] = byte(kind)
	binary.BigEndian.PutUint32(frame[4:], uint32(size))
	return acctest.Offer("", string(frame)+strings.Repeat("x", size-1)+"\n")
}

// OneFrame returns a gibibyte of text in a single frame.
func OneFrame(kind stdcopy.StdType, text string) io.Reader {
	return acctest.Offer(string([]byte{byte(kind), 0, 0, 0, 0x40, 0, 0, 0}), text)
}
