"""TLS before a server that speaks none."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def tls_before(port: int, folder: Path, *, asks_for_certificate: bool = False) -> Iterator[int]:
    """A port that speaks TLS and passes everything on.

    The certificate lies in `folder`: cert.pem and key.pem. Clients may have to show it as well.
    """
    openssl = shutil.which("openssl")
    assert openssl is not None
    options = "req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out cert.pem"
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [openssl, *options.split(), *name],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    if asks_for_certificate:
        context.load_verify_locations(folder / "cert.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, sink: socket.socket) -> None:
        try:
            while piece := source.recv(1 << 16):
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            source.close()

    def pass_on(plain: socket.socket) -> None:
        try:
            client = context.wrap_socket(plain, server_side=True)
        except OSError:
            plain.close()
            return
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            upwards = threading.Thread(target=pump, args=(client, server))
            upwards.start()
            pump(server, client)
            upwards.join()

    def serve() -> None:
        callers = []
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                break
            callers.append(threading.Thread(target=pass_on, args=(plain,)))
            callers[-1].start()
        for caller in callers:
            caller.join()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
