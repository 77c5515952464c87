package main

import (
	"bytes"
	"encoding/binary"
)

// header is the length of a record's header: an ID of the run, the producer, and the number in the stream.
const header = 8 + 4 + 8

// encode returns the value of a record: the header, followed by the padding.
func encode(run uint64, producer uint32, number uint64, padding []byte) []byte {
	value := make([]byte, 0, header+len(padding))
	value = binary.BigEndian.AppendUint64(value, run)
	value = binary.BigEndian.AppendUint32(value, producer)
	value = binary.BigEndian.AppendUint64(value, number)
	return append(value, padding...)
}

// decode returns a record's producer and number. Records of other runs, and modified ones, aren't ours.
func decode(run uint64, value, padding []byte) (producer uint32, number uint64, ours bool) {
	if len(value) < header || binary.BigEndian.Uint64(value) != run || !bytes.Equal(value[header:], padding) {
		return 0, 0, false
	}
	return binary.BigEndian.Uint32(value[8:]), binary.BigEndian.Uint64(value[12:]), true
}
