"""Lets the power of served drives fail: cut_power.py CONTROL_SOCKET..."""

import socket
import sys

for path in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(path)
        control.sendall(b'{"do": "cut-power"}\n')
        assert b"time_ns" in control.recv(4096)
