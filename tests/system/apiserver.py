# SPDX-License-Identifier: Apache-2.0
"""A crunch-api-server of its own for a test: made by `init` in a fresh folder,
started with fault points, asked over HTTP."""
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.parse

TOP = os.environ.get("TOP_BUILDDIR", os.getcwd())
PROGRAM = os.path.join(TOP, "crunch-api-server")


class Reply:
    def __init__(self, response, body):
        self.status = response.status
        self.headers = response.headers
        self.body = body

    def json(self):
        return json.loads(self.body)


class Server:
    def __init__(self, user="alice", config="", start=True, log="warning"):
        self.dir = tempfile.mkdtemp(prefix="cdc-api-")
        self.home = os.path.join(self.dir, "s")
        subprocess.run([PROGRAM, "init", self.home, "-user", user],
                       check=True, stdout=subprocess.DEVNULL)
        self.config = self.path("api-server/config.yml")
        with open(self.config, "a") as f:
            f.write("    SystemLogs: {LogLevel: %s}\n%s" % (log, config))
        self.root = self.setting("api-server/config.yml", "SystemRootToken")
        self.management = self.setting("api-server/config.yml",
                                       "ManagementToken")
        self.dispatcher = self.setting("dispatcher/config.yml", "APIToken")
        self.user = self.setting("user/settings.conf", "ARVADOS_API_TOKEN")
        self.process = None
        if start:
            self.start()

    def path(self, name):
        return os.path.join(self.home, name)

    def setting(self, name, key):
        with open(self.path(name)) as f:
            return re.search(key + r'[:=] *"?([^"\n]+)', f.read()).group(1)

    def log(self):
        with open(os.path.join(self.dir, "log")) as f:
            return f.read()

    def start(self, faults=None):
        """faults: lines `point:nth:action` for core/base/fault.h."""
        port_file = os.path.join(self.dir, "port")
        if os.path.exists(port_file):
            os.unlink(port_file)
        env, fds = dict(os.environ), ()
        if faults:
            r, w = os.pipe()
            os.write(w, "".join(f + "\n" for f in faults).encode())
            os.close(w)
            env["CDC_FAULT_FD"] = str(r)
            fds = (r,)
        with open(os.path.join(self.dir, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "-config", self.config, "-port-file", port_file],
                stderr=log, env=env, pass_fds=fds)
        for fd in fds:
            os.close(fd)
        end = time.time() + 20
        while not os.path.exists(port_file):
            assert self.process.poll() is None and time.time() < end, \
                self.log()
            time.sleep(0.005)
        with open(port_file) as f:
            self.port = int(f.read())

    def stop(self):
        """SIGTERM; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def kill(self):
        self.process.kill()
        self.process.wait(20)

    def close(self):
        code = self.stop() if self.process else 0
        shutil.rmtree(self.dir, ignore_errors=True)
        return code

    def request(self, method, path, token=None, body=None, headers=None,
                timeout=30):
        """path below /arvados/v1/, or from / on. body: bytes, or JSON."""
        if not path.startswith("/"):
            path = "/arvados/v1/" + path
        head = dict(headers or {})
        if token:
            head["Authorization"] = "Bearer " + token
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            head.setdefault("Content-Type", "application/json")
        c = http.client.HTTPConnection("127.0.0.1", self.port,
                                       timeout=timeout)
        try:
            c.request(method, path, body=body, headers=head)
            r = c.getresponse()
            return Reply(r, r.read())
        finally:
            c.close()

    def ok(self, method, path, token=None, body=None, **more):
        r = self.request(method, path, token, body, **more)
        assert r.status in (200, 206), "%s %s: %d %s" % (
            method, path, r.status, r.body[:500])
        return r.json()

    def refused(self, status, method, path, token=None, body=None, **more):
        r = self.request(method, path, token, body, **more)
        assert r.status == status, "%s %s: %d %s, not %d" % (
            method, path, r.status, r.body[:500], status)
        return r.json()["errors"][0] if r.body else ""

    # --- what most tests do ------------------------------------------------

    def submit(self, token=None, **more):
        return self.ok("POST", "container_requests", token or self.user,
                       {"container_request": definition(**more)})

    def lock(self, uuid, token=None):
        return self.ok("POST", "containers/%s/lock" % uuid,
                       token or self.dispatcher)

    def attempt(self, uuid, token=None):
        return self.ok("POST", "containers/%s/attempt" % uuid,
                       token or self.dispatcher)["api_token"]

    def put(self, uuid, token, **attrs):
        return self.ok("PUT", "containers/%s" % uuid, token,
                       {"container": attrs})

    def container(self, uuid):
        return self.ok("GET", "containers/%s" % uuid, self.dispatcher)

    def get_request(self, uuid, token=None):
        return self.ok("GET", "container_requests/%s" % uuid,
                       token or self.user)

    def running(self, **more):
        """A request, its container's uuid, its attempt's token."""
        req = self.submit(**more)
        uuid = req["container_uuid"]
        self.lock(uuid)
        token = self.attempt(uuid)
        self.put(uuid, token, state="Running")
        return req, uuid, token


def definition(**more):
    return dict({
        "state": "Committed", "priority": 500, "use_existing": False,
        "command": ["true"], "container_image": "host",
        "output_path": "/out",
        "mounts": {"/out": {"kind": "tmp", "capacity": 1000}},
        "runtime_constraints": {"vcpus": 1, "ram": 1 << 20}}, **more)


def query(**params):
    return urllib.parse.urlencode(
        {k: v if isinstance(v, str) else json.dumps(v)
         for k, v in params.items()})


# Further keys of the APIServer section, which init has begun.
SECTIONS = {
    "FILES": ["MaxFileSize: 600", "MaxBytesPerAttempt: 1000",
              "MaxFilesPerAttempt: 3"],
    "FEED": ["FeedLength: 16"],
    "RATE": ["MaxRequestsPerSecond: 10"],
}


def make_server(config):
    """config: lines of YAML, or a name in SECTIONS."""
    if config not in SECTIONS:
        return Server(config=config)
    s = Server(start=False)
    keys = "".join("      %s\n" % k for k in SECTIONS[config])
    with open(s.config) as f:
        text = f.read()
    with open(s.config, "w") as f:
        f.write(text.replace("    APIServer:\n", "    APIServer:\n" + keys))
    s.start()
    return s


def run_cases(cases):
    """cases: (function, config), each with a server of its own. Ends the
    program; arguments choose cases by name."""
    signal.alarm(500)
    failed = 0
    for case, config in cases:
        if sys.argv[1:] and case.__name__ not in sys.argv[1:]:
            continue
        s = make_server(config)
        try:
            case(s)
            print("ok   %s" % case.__name__)
        except Exception:
            failed += 1
            print("FAIL %s" % case.__name__)
            traceback.print_exc()
            print(s.log()[-2000:])
        log = s.log()
        code = s.close()
        if code != 0:
            failed += 1
            print("FAIL %s: the server ended with %d\n%s"
                  % (case.__name__, code, log[-3000:]))
        sys.stdout.flush()
    sys.exit(1 if failed else 0)
