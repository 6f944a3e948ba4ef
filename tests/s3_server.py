"""An S3 server of its own for a test module, behind a proxy that counts what passes and can do harm on the way."""

import http.client
import logging
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pytest

ERROR = '<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code} on purpose</Message></Error>'
CODES = {403: "AccessDenied", 500: "InternalError", 503: "SlowDown"}
NOT_FORWARDED = ("connection", "transfer-encoding", "content-length", "date", "server")


@dataclass
class Fault:
    """What befalls the next `times` requests of this method whose path contains `part`.

    kind  a status to answer with; "cut", to break off in the middle of the body; "hang", to wait until released
    """

    method: str
    part: str
    kind: int | str
    times: int
    met: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


class Proxy:
    """Forwards to the server; `requests` are (method, path, bytes of the answer's body)."""

    def __init__(self, port):
        self.port, self.faults, self.requests = port, [], []
        self.lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # whose clients may ask whether to go on before they send a body

            def log_message(self, *args):
                pass

            def handle_any(self):
                proxy.answer(self)

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = handle_any

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def stop(self):
        for fault in self.faults:
            fault.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @contextmanager
    def failing(self, method, part, kind, times=10**9):
        fault = Fault(method, part, kind, times)
        self.faults.append(fault)
        try:
            yield fault
        finally:
            fault.released.set()
            self.faults.remove(fault)

    @contextmanager
    def counting(self):
        """The requests made within the block."""
        before = len(self.requests)
        seen = []
        yield seen
        seen += self.requests[before:]

    def _fault(self, method, path):
        with self.lock:
            for fault in self.faults:
                if fault.times > 0 and fault.method == method and fault.part in unquote(path):
                    fault.times -= 1
                    fault.met.set()
                    return fault
        return None

    def answer(self, request):
        request.close_connection = True
        body = self._body(request)
        fault = self._fault(request.command, request.path)
        kind = fault.kind if fault else None
        if kind == "hang":
            fault.released.wait(60)
            return
        if isinstance(kind, int):
            content = b"" if request.command == "HEAD" else ERROR.format(code=CODES[kind]).encode()
            request.send_response(kind)
            request.send_header("Content-Length", str(len(content)))
            request.end_headers()
            request.wfile.write(content)
            return
        status, headers, content = self._forward(request, body)
        length = next((value for name, value in headers if name.lower() == "content-length"), str(len(content)))
        with self.lock:
            self.requests.append((request.command, unquote(request.path), len(content)))
        request.send_response(status)
        for name, value in headers:
            if name.lower() not in NOT_FORWARDED:
                request.send_header(name, value)
        request.send_header("Content-Length", length)
        request.send_header("Connection", "close")
        request.end_headers()
        request.wfile.write(content[: len(content) // 2] if kind == "cut" else content)

    def _body(self, request):
        length = request.headers.get("Content-Length")
        if length is not None:
            return request.rfile.read(int(length))
        if request.headers.get("Transfer-Encoding") != "chunked":
            return None
        pieces = []
        while size := int(request.rfile.readline().split(b";")[0], 16):
            pieces.append(request.rfile.read(size))
            request.rfile.readline()
        while request.rfile.readline().strip():  # trailers, such as checksums
            pass
        return b"".join(pieces)

    def _forward(self, request, body):
        headers = {name: value for name, value in request.headers.items() if name.lower() != "transfer-encoding"}
        if body is not None:
            headers["Content-Length"] = str(len(body))
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        try:
            connection.request(request.command, request.path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


def running():
    """A fixture: the proxy before a server with an empty bucket, `bucket`; fsspec finds it by the environment."""
    boto3 = pytest.importorskip("boto3")
    pytest.importorskip("s3fs")
    threaded = pytest.importorskip("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line for each request
    server = threaded.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    proxy = Proxy(server.get_host_and_port()[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_ENDPOINT_URL", proxy.url)
        proxy.client = boto3.client("s3", endpoint_url=proxy.url)
        proxy.client.create_bucket(Bucket="bucket")
        yield proxy
        _forget_connections()
    proxy.client.close()
    proxy.stop()
    server.stop()


def _forget_connections():
    """Another module's server has another port: fsspec would go on asking this one."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()


def keys(s3, prefix=""):
    """The names of all objects in the bucket that begin so."""
    found = s3.client.list_objects_v2(Bucket="bucket", Prefix=prefix)
    return sorted(entry["Key"] for entry in found.get("Contents", []))
