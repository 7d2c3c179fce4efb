#!/usr/bin/env python3
"""Proxies and certificates, as curl takes them from the environment.

A proxy and a TLS server of the test's own stand before tests/support/mock_copilot.c. WARDER names the binary,
MOCK the server.
"""

import base64
import os
import select
import socket
import ssl
import subprocess
import threading
import urllib.parse

import agent_help
from agent_help import AgentCase, message


def pass_on(a, b):
    """Bytes both ways until either side ends."""
    while True:
        for one in select.select([a, b], [], [], agent_help.PATIENCE)[0]:
            data = one.recv(65536)
            if not data:
                return
            (b if one is a else a).sendall(data)


class Server:
    """One connection after the other, each given to self.serve(socket)."""

    def __init__(self, case):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()
        case.addCleanup(self.socket.close)

    def run(self):
        while True:
            try:
                connection = self.socket.accept()[0]
            except OSError:
                return
            try:
                self.serve(connection)
            except OSError:
                pass  # whoever asked has gone
            finally:
                connection.close()


class Proxy(Server):
    """Forwards plain requests and CONNECT; where `user` is set, only with it."""

    def __init__(self, case, user=None, refuse=None):
        self.user, self.refuse, self.seen = user, refuse, []
        super().__init__(case)

    def serve(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(65536)
        method, target = head.split(b" ")[:2]
        self.seen.append(f"{method.decode()} {target.decode()}")
        if self.refuse:
            client.sendall(f"HTTP/1.1 {self.refuse} No\r\nContent-Length: 0\r\n\r\n".encode())
            return
        allowed = not self.user or base64.b64encode(self.user.encode()) in head
        if not allowed:
            client.sendall(b"HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic realm=x\r\n"
                           b"Content-Length: 0\r\n\r\n")
            return
        url = urllib.parse.urlsplit(target if method != b"CONNECT" else b"//" + target)
        with socket.create_connection((url.hostname.decode(), url.port)) as server:
            if method == b"CONNECT":
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                server.sendall(head.replace(target, url.path, 1))
            pass_on(client, server)


class Tls(Server):
    """What comes in by TLS goes on in the clear."""

    def __init__(self, case, certificate, port):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate)
        self.behind = port
        super().__init__(case)

    def serve(self, client):
        with self.context.wrap_socket(client, server_side=True) as tls, \
                socket.create_connection(("127.0.0.1", self.behind)) as server:
            while True:
                if not tls.pending():
                    ready = select.select([tls, server], [], [], agent_help.PATIENCE)[0]
                    if server in ready:
                        data = server.recv(65536)
                        if not data:
                            return
                        tls.sendall(data)
                        continue
                data = tls.recv(65536)
                if not data:
                    return
                server.sendall(data)


class Network(AgentCase):
    def ask(self, url, **more):
        """One turn, with a fresh environment; (status, stdout, stderr)."""
        env = self.environment(url, **more)
        done = subprocess.run(**self.command(["--provider", "copilot", "-p", "go"]), env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=agent_help.PATIENCE, start_new_session=True)
        return done.returncode, done.stdout, done.stderr

    def answers(self, url, **more):
        status, out, err = self.ask(url, **more)
        self.assertEqual((status, out), (0, "hello\n"), err)

    def fails(self, url, *says, **more):
        status, out, err = self.ask(url, **more)
        self.assertEqual(status, 1, err)
        for part in says:
            self.assertIn(part, err)
        return err

    def test_a_proxy(self):
        url = self.serve([message("hello")] * 3)
        proxy = Proxy(self)
        self.answers(url, http_proxy=f"http://127.0.0.1:{proxy.port}")
        self.assertIn(f"POST {url}/chat/completions", proxy.seen)
        proxy.seen.clear()
        self.answers(url, http_proxy=f"http://127.0.0.1:{proxy.port}", no_proxy="127.0.0.1")
        self.answers(url, all_proxy=f"http://127.0.0.1:{proxy.port}", NO_PROXY="*")
        self.assertEqual(proxy.seen, [])

    def test_a_proxy_that_wants_a_password(self):
        url = self.serve([message("hello")])
        proxy = Proxy(self, user="u:proxysecret")
        self.answers(url, http_proxy=f"http://u:proxysecret@127.0.0.1:{proxy.port}")
        err = self.fails(url, "the proxy wants a user and a password",
                         http_proxy=f"http://u:wrongsecret@127.0.0.1:{proxy.port}")
        self.assertNotIn("wrongsecret", err)

    def test_a_proxy_that_is_none(self):
        url = self.serve([])
        for proxy, part in (("http://u:hidden@[bad", "http_proxy"), ("http://u:hidden@127.0.0.1:1", "127.0.0.1")):
            err = self.fails(url, part, http_proxy=proxy)
            self.assertNotIn("hidden", err)

    def certificate(self):
        """A self-signed one for the loopback, with its key."""
        path = os.path.join(self.top, "certificate.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-days", "2", "-subj", "/CN=warder test", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", path + ".key", "-out", path],
                       check=True, capture_output=True)
        with open(path, "a") as both, open(path + ".key") as key:
            both.write(key.read())
        return path

    def test_certificates(self):
        certificate = self.certificate()
        port = int(self.serve([message("hello")] * 4).rsplit(":", 1)[1])
        url = f"https://127.0.0.1:{Tls(self, certificate, port).port}"
        self.fails(url, "no trusted TLS connection to 127.0.0.1", "CURL_CA_BUNDLE")
        self.answers(url, CURL_CA_BUNDLE=certificate)
        self.answers(url, SSL_CERT_FILE=certificate)
        folder = self.make_dir("hashed")
        name = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", certificate], check=True,
                              capture_output=True, text=True).stdout.strip()
        os.symlink(certificate, os.path.join(folder, name + ".0"))
        self.answers(url, SSL_CERT_DIR=folder)
        self.fails(url, "can't be read: correct CURL_CA_BUNDLE", CURL_CA_BUNDLE="/nonexistent")
        # Through a proxy's tunnel; and where the proxy will not.
        proxy = Proxy(self)
        self.answers(url, CURL_CA_BUNDLE=certificate, https_proxy=f"http://127.0.0.1:{proxy.port}")
        self.assertEqual(set(row.split()[0] for row in proxy.seen), {"CONNECT"})
        for status, part in ((407, "the proxy wants a user and a password before it connects to"),
                             (403, "the proxy does not connect to")):
            refusing = Proxy(self, refuse=status)
            self.fails(url, part, CURL_CA_BUNDLE=certificate, https_proxy=f"http://127.0.0.1:{refusing.port}")


if __name__ == "__main__":
    agent_help.main()
