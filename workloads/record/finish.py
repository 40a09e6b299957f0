"""Complete the per-CPU traces that were read from tracefs.

The `blk` tracer writes blktrace's record format but leaves two things out that blktrace(8) adds:
sequence numbers, by which a reader notices lost records, and the notes that give each process a
name. Both are added here, in place.

    finish.py PREFIX      PREFIX.blktrace.N and PREFIX.processes (lines of "pid name")
"""

import glob
import os
import struct
import sys

# magic, sequence, time, sector, bytes, action, pid, device, cpu, error, pdu_len
RECORD = struct.Struct("<IIQQIIIIIHH")
MAGIC = 0x65617400 | 7
NOTIFY = 1 << (10 + 16)  # BLK_TC_ACT(BLK_TC_NOTIFY); the note's kind, "process", is 0


def process_names(path):
    names = {}
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            pid, _, name = line.strip().partition(" ")
            names[int(pid)] = name
    return names


def records(data):
    at = 0
    while at < len(data):
        fields = RECORD.unpack_from(data, at)
        if fields[0] != MAGIC:
            raise ValueError(f"no trace record at byte {at}")
        end = at + RECORD.size + fields[10]
        yield fields, data[at + RECORD.size : end]
        at = end


def complete(data, names):
    named = set()
    out = bytearray()
    sequence = 0
    for fields, extra in records(data):
        _, _, time, _, _, action, pid, device, cpu, _, _ = fields
        if action & NOTIFY:
            named.add(pid)
        elif pid in names and pid not in named:
            named.add(pid)
            note = names[pid].encode()[:15].ljust(16, b"\0")
            sequence += 1
            out += RECORD.pack(MAGIC, sequence, time, 0, 0, NOTIFY, pid, device, cpu, 0, len(note))
            out += note
        sequence += 1
        out += RECORD.pack(MAGIC, sequence, *fields[2:]) + extra
    return out


def main(prefix):
    names = process_names(prefix + ".processes")
    for path in glob.glob(prefix + ".blktrace.[0-9]*"):
        with open(path, "rb") as file:
            completed = complete(file.read(), names)
        with open(path + ".new", "wb") as file:
            file.write(completed)
        os.replace(path + ".new", path)


if __name__ == "__main__":
    main(*sys.argv[1:])
