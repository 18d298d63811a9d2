"""Serves the repositories of a directory over https, as git-http-backend(1) has it.

Arguments: the directory, the certificate with its key, the port. Says on standard output that it listens.
"""

import http.server
import os
import ssl
import subprocess
import sys

root, certificate, port = sys.argv[1:]


class Git(http.server.BaseHTTPRequestHandler):
    def serve(self):
        path, _, query = self.path.partition("?")
        length = int(self.headers.get("Content-Length") or 0)
        meta = {
            "GIT_PROJECT_ROOT": root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type") or "",
            "CONTENT_LENGTH": str(length),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
        }
        backend = subprocess.run(
            ["git", "http-backend"],
            input=self.rfile.read(length),
            stdout=subprocess.PIPE,
            env=os.environ | meta,
        )
        head, _, body = backend.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        self.send_response(int(fields.pop("Status", "200").split(" ")[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        # Without it only the end of the connection tells the end, which must then be one of TLS too.
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = serve

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Git)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("ready", flush=True)
server.serve_forever()
