package main

import (
	"bytes"
	"encoding/binary"
)

// Records begin with what tells them from those of other runs, and the producer and the number in the stream.
const header = 8 + 4 + 8

// encode returns the value of a record, which ends with as much of the padding as makes it that long.
func encode(run uint64, producer uint32, number uint64, padding []byte) []byte {
	value := make([]byte, 0, header+len(padding))
	value = binary.BigEndian.AppendUint64(value, run)
	value = binary.BigEndian.AppendUint32(value, producer)
	value = binary.BigEndian.AppendUint64(value, number)
	return append(value, padding...)
}

// decode returns the producer and the number of a record of a run. Records of other runs, and changed ones, aren't
// ours.
func decode(run uint64, value, padding []byte) (producer uint32, number uint64, ours bool) {
	if len(value) < header || binary.BigEndian.Uint64(value) != run || !bytes.Equal(value[header:], padding) {
		return 0, 0, false
	}
	return binary.BigEndian.Uint32(value[8:]), binary.BigEndian.Uint64(value[12:]), true
}
