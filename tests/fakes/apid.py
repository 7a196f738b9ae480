# SPDX-License-Identifier: Apache-2.0
"""A small, strict API server for tests of crunch-run.

It knows containers and attempts, in memory, and answers what doc/protocol-api
says, as strictly: state machine, one valid attempt token per container, file
names, offsets. Anything a real server would refuse is refused, and anything
that no well-behaved runner sends is noted in `Api.complaints`, which a test
checks to be empty.

    api = Api()                     # listens on 127.0.0.1, a free port
    token = api.add(uuid, command=["true"])
    ... run crunch-run with api.url and token ...
    api.get(uuid)["state"], api.log(uuid, "stdout.txt"), api.output(uuid)

`Api.fault` may be set to a function (method, path) -> None to go on, an int to
answer with that status, "drop" to close the connection without an answer,
"lose" to act but close without an answer, or a number of seconds (float) to
wait before acting.
"""

import json
import re
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOG_NAMES = {"crunch-run.txt", "stdout.txt", "stderr.txt", "crunchstat.txt",
             "hoststat.txt", "node-info.txt", "node.json", "container.json"}
MOVES = {("Locked", "Running"), ("Running", "Complete"),
         ("Locked", "Cancelled"), ("Running", "Cancelled")}
MAY_SET = {"state", "progress", "runtime_status", "exit_code", "cost"}
BODY_MAX = 16 << 20
FINAL = ("Complete", "Cancelled")


class Refused(Exception):
    def __init__(self, status, text):
        super().__init__(text)
        self.status = status
        self.text = text


class Container:
    def __init__(self, record, attempt, token):
        self.record = record
        self.attempt = attempt
        self.token = token      # None = revoked
        self.logs = {}
        self.outputs = {}
        self.secrets = {}       # mounts that the record does not show
        self.log_max = None     # bytes a log file may have
        self.history = []       # (monotonic time, state)


class Api:
    def __init__(self, port=0):
        self.lock = threading.Lock()
        self.containers = {}
        self.requests = []      # (monotonic time, method, path, status)
        self.complaints = []
        self.fault = None
        api = self

        class Handler(_Handler):
            pass

        Handler.api = api
        self.server = _Server(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port
        threading.Thread(target=self.server.serve_forever, args=(0.05,),
                         daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    # --- for tests ---------------------------------------------------------

    def add(self, uuid, attempt=1, **fields):
        record = {
            "uuid": uuid, "kind": "arvados#container", "state": "Locked",
            "priority": 1, "attempt": attempt, "command": ["true"],
            "container_image": "host", "cwd": ".", "environment": {},
            "mounts": {"/out": {"kind": "tmp", "capacity": 1 << 20}},
            "output_path": "/out", "output_glob": [],
            "runtime_constraints": {"vcpus": 1, "ram": 256 << 20,
                                    "API": False},
            "scheduling_parameters": {}, "runtime_status": {},
            "exit_code": None, "cost": 0, "progress": None,
        }
        constraints = fields.pop("runtime_constraints", {})
        secrets = fields.pop("secret_mounts", {})
        record["runtime_constraints"].update(constraints)
        record.update(fields)
        token = "v2/%s/%s%d" % (uuid.replace("dz642", "gj3su"),
                                "secretsecretsecretsecret", attempt)
        with self.lock:
            self.containers[uuid] = Container(record, attempt, token)
            self.containers[uuid].secrets = secrets
        return token

    def get(self, uuid):
        with self.lock:
            return dict(self.containers[uuid].record)

    def log(self, uuid, name):
        with self.lock:
            return bytes(self.containers[uuid].logs.get(name, b"")).decode(
                errors="replace")

    def output(self, uuid):
        with self.lock:
            return {k: bytes(v)
                    for k, v in self.containers[uuid].outputs.items()}

    def revoke(self, uuid):
        with self.lock:
            self.containers[uuid].token = None

    def wait(self, uuid, states=FINAL, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.get(uuid)["state"] in states:
                return self.get(uuid)
            time.sleep(0.005)
        raise AssertionError("%s stays %s" % (uuid, self.get(uuid)["state"]))

    def calls(self, uuid):
        with self.lock:
            return [(m, p.split(uuid)[1], s) for (_, m, p, s) in self.requests
                    if uuid in p]

    # --- the routes --------------------------------------------------------

    def owner(self, uuid, auth):
        c = self.containers.get(uuid)
        if auth is None or not auth.startswith("Bearer "):
            self.complaints.append("no bearer token")
            raise Refused(401, "Not logged in")
        if c is None or c.token is None or auth != "Bearer " + c.token:
            raise Refused(401, "Not logged in")
        return c

    def update(self, c, body):
        changes = json.loads(body)
        if set(changes) != {"container"}:
            self.complaints.append("update without container")
            raise Refused(422, "container is missing")
        changes = changes["container"]
        if not set(changes) <= MAY_SET:
            self.complaints.append("may not set %r" % changes)
            raise Refused(422, "may not be set")
        if all(c.record.get(k) == v for k, v in changes.items()):
            return dict(c.record)
        was, now = c.record["state"], changes.get("state", c.record["state"])
        if was in FINAL:
            raise Refused(422, "the record is final")
        if now != was and (was, now) not in MOVES:
            raise Refused(422, "state: %s to %s" % (was, now))
        if now == "Cancelled" and "exit_code" in changes:
            raise Refused(422, "exit_code cannot be modified in state %s" %
                          now)
        if now == "Complete" and not isinstance(changes.get("exit_code"),
                                                int):
            self.complaints.append("Complete without exit_code")
        c.record.update(changes)
        if now != was:
            c.history.append((time.monotonic(), now))
        return dict(c.record)

    def put_file(self, c, kind, path, query, body):
        if c.record["state"] in FINAL:
            raise Refused(422, "the record is final")
        if len(body) > BODY_MAX:
            raise Refused(413, "too large")
        offset = int(query.get("offset", "0"))
        if kind == "log" and path not in LOG_NAMES:
            self.complaints.append("log name %r" % path)
            raise Refused(422, "no such log")
        parts = path.split("/")
        if any(p in ("", ".", "..") or len(p.encode()) > 255 or
               re.search(r"[\x00-\x1f\x7f]", p) for p in parts) or \
                len(parts) > 32:
            raise Refused(422, "path: not allowed")
        if kind == "log" and c.log_max is not None and \
                offset + len(body) > c.log_max:
            raise Refused(413, "the file may not grow further")
        files = c.logs if kind == "log" else c.outputs
        data = files.setdefault(path, bytearray())
        if offset > len(data):
            raise Refused(422, "offset: the file has %d bytes" % len(data))
        if kind == "output" and offset == 0:
            del data[:]
        data[offset:offset + len(body)] = body
        return {"size": len(data)}

    def route(self, method, path, query, auth, body):
        m = re.fullmatch(r"/arvados/v1/containers/([a-z0-9-]{27})"
                         r"(?:/(auth|secret_mounts|log|output)(?:/(.+))?)?", path,
                         re.DOTALL)
        if not m:
            self.complaints.append("%s %s" % (method, path))
            raise Refused(404, "no such route")
        uuid, kind, rest = m.groups()
        c = self.owner(uuid, auth)
        if kind is None and method == "GET":
            if "select" in query:
                return {k: c.record[k] for k in json.loads(query["select"])}
            return dict(c.record)
        if kind is None and method == "PUT":
            return self.update(c, body)
        if kind == "auth" and method == "GET":
            if not c.record["runtime_constraints"].get("API"):
                raise Refused(403, "no API access")
            return {"uuid": uuid.replace("dz642", "gj3su"),
                    "api_token": "payloadpayloadpayload"}
        if kind == "secret_mounts" and method == "GET":
            return {"secret_mounts": c.secrets}
        if kind in ("log", "output") and method == "PUT" and rest:
            return self.put_file(c, kind, rest, query, body)
        self.complaints.append("%s %s" % (method, path))
        raise Refused(405, "no such method")


class _Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """A client that goes away is no news."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    api = None

    def log_message(self, *args):
        pass

    def answer(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def body(self):
        lengths = self.headers.get_all("Content-Length", [])
        if self.headers.get("Transfer-Encoding") or len(lengths) > 1:
            self.api.complaints.append("framing of the request")
            raise Refused(400, "framing")
        n = int(lengths[0]) if lengths else 0
        return self.rfile.read(n) if n else b""

    def handle_request(self):
        api, url = self.api, urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path)
        query = dict(urllib.parse.parse_qsl(url.query, True))
        body = self.body()
        fault = api.fault(self.command, self.path) if api.fault else None
        if fault == "drop":
            self.close_connection = True
            return
        if isinstance(fault, float):
            time.sleep(fault)
        status, value = 200, None
        try:
            if self.request_version != "HTTP/1.1" or \
                    len(self.headers.get_all("Host", [])) != 1:
                api.complaints.append("not HTTP/1.1 with one Host")
            if isinstance(fault, int):
                raise Refused(fault, "injected")
            with api.lock:
                value = api.route(self.command, path, query,
                                  self.headers.get("Authorization"), body)
        except Refused as e:
            status, value = e.status, {"errors": [e.text]}
        with api.lock:
            api.requests.append((time.monotonic(), self.command, self.path,
                                 status))
        if fault == "lose":
            self.close_connection = True
            return
        self.answer(status, value)

    do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = handle_request
