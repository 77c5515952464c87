"""Scalars for TensorBoard: its event files are records with checksums around a protocol buffers message."""

import itertools
import os
import socket
import struct
import time


def _table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # CRC-32C, reversed
        table.append(byte)
    return table


_TABLE = _table()


def _checksum(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _varint(number):
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def _field(number, content):
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _step(event):
    if event[9:10] != b"\x10":
        return 0  # a header
    step = 0
    for i, byte in enumerate(event[10:20]):
        step |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            break
    return step


def cut(folder, last):
    """Removes the scalars after a step from all files in a folder, and those written only in part."""
    for entry in os.scandir(folder) if os.path.isdir(folder) else []:
        with open(entry.path, "r+b") as file:
            data, end = file.read(), 0
            while end + 12 <= len(data):
                begin = end + 12
                after = begin + struct.unpack_from("<Q", data, end)[0] + 4
                if after > len(data) or _step(data[begin:after]) > last:
                    break
                end = after
            file.truncate(end)


def _create(path):
    """Creates a file. In containers, an attempt in the same second can have the same name and process ID."""
    for nth in itertools.count():
        try:
            return open(f"{path}.{nth}", "xb")
        except FileExistsError:
            continue


class Writer:
    """Writes an event file into a folder. An attempt that resumes writes another one beside it."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
        self.file = _create(os.path.join(folder, name))
        self._write(_field(3, b"brain.Event:2"))

    def _write(self, event):
        event = b"\x09" + struct.pack("<d", time.time()) + event
        length = struct.pack("<Q", len(event))
        self.file.write(length + _checksum(length) + event + _checksum(event))
        self.file.flush()

    def scalars(self, step, **values):
        parts = [
            _field(1, _field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)) for tag, value in values.items()
        ]
        self._write(b"\x10" + _varint(step) + _field(5, b"".join(parts)))
