"""Holds idle connections under TLS: hold.py HOST PORT CONNECTIONS PATH ALPN

One request with its response on each; then `held N` is printed, and at the end of its input
`closed N`: how many the server has closed meanwhile.
"""

import ssl
import socket
import struct
import sys

host, port, connections, path, protocol = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
context.set_alpn_protocols([protocol])
authority = f"{host}:{port}".encode()
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, HEADERS, DATA = 4, 1, 0
ACK, END_STREAM, END_HEADERS = 1, 1, 4


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(text):
    # without Huffman; shorter than the seven bits of its length
    assert len(text) < 127
    return bytes([len(text)]) + text


def exactly(connection, count):
    out = b""
    while len(out) < count:
        part = connection.recv(count - len(out))
        if not part:
            raise SystemExit("the server has closed a connection")
        out += part
    return out


def http2(connection):
    # :method GET, :scheme https (static table of RFC 7541), then :path and :authority as literals
    fields = b"\x82\x87\x04" + literal(path.encode()) + b"\x01" + literal(authority)
    head = frame(HEADERS, END_STREAM | END_HEADERS, 1, fields)
    connection.sendall(PREFACE + frame(SETTINGS, 0, 0, b"") + head)
    while True:
        front = exactly(connection, 9)
        length = int.from_bytes(front[:3], "big")
        kind, flags, stream = front[3], front[4], int.from_bytes(front[5:], "big")
        exactly(connection, length)
        if kind == SETTINGS and not flags & ACK:
            connection.sendall(frame(SETTINGS, ACK, 0, b""))
        if stream == 1 and kind in (HEADERS, DATA) and flags & END_STREAM:
            return


def http1(connection):
    connection.sendall(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path.encode(), authority))
    head = b""
    while b"\r\n\r\n" not in head:
        head += exactly(connection, 1)
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            exactly(connection, int(line.split(b":")[1]))
            return
    raise SystemExit("a response without Content-Length")


def is_closed(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except ssl.SSLWantReadError:
        return False
    except OSError:
        return True


held = []
for _ in range(int(connections)):
    plain = socket.create_connection((host, int(port)), 10)
    connection = context.wrap_socket(plain)
    if connection.selected_alpn_protocol() != protocol:
        raise SystemExit(f"the server speaks {connection.selected_alpn_protocol()}")
    (http2 if protocol == "h2" else http1)(connection)
    held.append(connection)
print(f"held {len(held)}", flush=True)
sys.stdin.read()
print(f"closed {sum(map(is_closed, held))}", flush=True)
