"""SQLite in WAL mode on a served device, whose power fails in the middle of transactions.

Usage: sqlite.py NBD-SOCKET CONTROL-SOCKET. Two exports, `db` and `wal`, are the two files of the
database. A sector at the end of each holds the file's length, as a file system would.
"""

import json
import os
import socket
import struct
import sys

import apsw

SECTOR = 512


class Export:
    """A client of one export."""

    def __init__(self, path, name):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.take(18)
        self.socket.sendall(struct.pack(">I", 3))
        data = struct.pack(">I", len(name)) + name.encode() + b"\0\0"
        self.socket.sendall(b"IHAVEOPT" + struct.pack(">II", 7, len(data)) + data)
        while True:
            kind, length = struct.unpack(">12xII", self.take(20))
            reply = self.take(length)
            if kind == 3 and reply[:2] == b"\0\0":
                (self.bytes,) = struct.unpack(">Q", reply[2:10])
            if kind == 1:
                break

    def take(self, count):
        out = b""
        while len(out) < count:
            part = self.socket.recv(count - len(out))
            if not part:
                raise ConnectionError("the power failed")
            out += part
        return out

    def call(self, kind, offset=0, length=0, data=b"", flags=0):
        head = struct.pack(">IHHQQI", 0x25609513, flags, kind, 1, offset, length)
        self.socket.sendall(head + data)
        (error,) = struct.unpack(">4xI8x", self.take(16))
        if error:
            raise OSError(error, os.strerror(error))
        return self.take(length) if kind == 0 else b""


class File:
    """A file of the database, on an export."""

    def __init__(self, export):
        self.export = export
        self.end = export.bytes - SECTOR
        magic, self.size = struct.unpack("<8sQ", export.call(0, self.end, SECTOR)[:16])
        if magic != b"a length":
            self.size = 0

    def read(self, amount, offset):
        amount = max(0, min(amount, self.size - offset))
        first = offset // SECTOR * SECTOR
        length = -(-(offset + amount - first) // SECTOR) * SECTOR
        return self.export.call(0, first, length)[offset - first :][:amount] if amount else b""

    def write(self, data, offset):
        first = offset // SECTOR * SECTOR
        length = -(-(offset + len(data) - first) // SECTOR) * SECTOR
        is_whole = length == len(data)
        whole = bytearray(data if is_whole else self.export.call(0, first, length))
        whole[offset - first : offset - first + len(data)] = data
        self.export.call(1, first, length, bytes(whole))
        if offset + len(data) > self.size:
            self.resize(offset + len(data))

    def resize(self, size):
        self.size = size
        sector = struct.pack("<8sQ", b"a length", size).ljust(SECTOR, b"\0")
        self.export.call(1, self.end, SECTOR, sector)

    def flush(self):
        self.export.call(3)


class Memory:
    """The rollback journal, which is used only until the log is."""

    def __init__(self):
        self.data = bytearray()

    size = property(lambda self: len(self.data))

    def read(self, amount, offset):
        return bytes(self.data[offset : offset + amount])

    def write(self, data, offset):
        self.data[offset : offset + len(data)] = data

    def resize(self, size):
        del self.data[size:]

    def flush(self):
        pass


class Vfs(apsw.VFS):
    """Two files: the database and its write-ahead log."""

    count = 0

    def __init__(self, path, flushes):
        Vfs.count += 1
        self.name = f"served{Vfs.count}"
        self.files = {name: File(Export(path, name)) for name in ("db", "wal")}
        self.files["journal"] = Memory()
        self.flushes = flushes
        self.writes = 0
        super().__init__(self.name, "")

    def file_of(self, name):
        _, _, kind = name.rpartition("-")
        return self.files.get(kind, self.files["db"])

    def xOpen(self, name, flags):
        name = name.filename() if hasattr(name, "filename") else name
        return VfsFile(self, self.file_of(name or "db"), flags)

    def xDelete(self, name, sync):
        self.file_of(name).resize(0)

    def xAccess(self, name, flags):
        return self.file_of(name).size > 0

    def xFullPathname(self, name):
        return name


class VfsFile:
    def __init__(self, vfs, file, flags):
        self.vfs, self.file = vfs, file
        flags[1] = flags[0]

    def xRead(self, amount, offset):
        return self.file.read(amount, offset)

    def xWrite(self, data, offset):
        self.vfs.writes += 1
        self.file.write(bytes(data), offset)

    def xTruncate(self, size):
        self.file.resize(size)

    def xSync(self, flags):
        if self.vfs.flushes:
            self.file.flush()

    def xFileSize(self):
        return self.file.size

    def xLock(self, level):
        pass

    def xUnlock(self, level):
        pass

    def xCheckReservedLock(self):
        return False

    def xClose(self):
        pass

    def xFileControl(self, op, pointer):
        return False

    def xSectorSize(self):
        return SECTOR

    def xDeviceCharacteristics(self):
        return 0


def control(path, request):
    with socket.socket(socket.AF_UNIX) as it:
        it.connect(path)
        it.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(it.makefile().readline())


def connect(path, flushes):
    vfs = Vfs(path, flushes)
    db = apsw.Connection("db", vfs=vfs.name)
    for pragma in ("locking_mode=exclusive", "journal_mode=wal", "synchronous=full"):
        db.execute(f"pragma {pragma}").fetchall()
    db.execute("create table if not exists t (id integer primary key, text)")
    return vfs, db


def main(path, control_path, flushes=True, cuts=8):
    lost, corrupt, acknowledged = 0, 0, 0
    for cut in range(cuts):
        vfs, db = connect(path, flushes)
        for number in range(acknowledged + 1, acknowledged + 12 + 3 * cut):
            db.execute("insert into t values (?, ?)", (number, "x" * 300))
            acknowledged = number
        # A transaction that has not committed. In every other round its pages exceed the cache of
        # SQLite, so that some are on the disk.
        is_large = cut % 2 == 1
        if is_large:
            db.execute("pragma cache_size=4").fetchall()
        written = vfs.writes
        db.execute("begin")
        for number in range(1, 5 if is_large else 2):
            db.execute("insert into t values (?, ?)", (acknowledged + number, "y" * 9000))
        assert (vfs.writes > written) == is_large, "the pages of the transaction"
        assert "time_ns" in control(control_path, {"do": "cut-power"})
        try:
            db.close(True)
        except Exception:
            pass
        del db, vfs
        try:
            vfs, db = connect(path, flushes)
            corrupt += db.execute("pragma integrity_check").fetchall() != [("ok",)]
            (there,) = db.execute("select coalesce(max(id), 0) from t").fetchone()
            (count,) = db.execute("select count(*) from t").fetchone()
            lost += acknowledged - there + (there - count)
            acknowledged = there
            db.close(True)
        except apsw.Error as error:
            print(error)
            corrupt += 1
    how = "with" if flushes else "without"
    print(f"{how} flushes: {cuts} power failures, {lost} transactions lost, {corrupt} corrupt")


main(sys.argv[1], sys.argv[2], flushes="--no-flush" not in sys.argv)
