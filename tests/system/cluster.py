# SPDX-License-Identifier: Apache-2.0
"""A whole cluster for a system test: the real programs, the real parts.

A test script calls isolate() first. It runs the script anew in namespaces of
its own (mounts, network, processes, host name), so that several tests run at
once, fixed ports are free, and whatever a test leaves behind is seen, and
ended, with it. Then:

    with Cluster(types=..., cloud=...) as c:
        c.start()
        ...
        c.stop()
        c.check_nothing_left()

Everything a cluster writes lies in one private folder, which is kept when the
test fails. Nothing here decides whether behaviour is right; the tests do.
"""
import atexit
import http.client
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("TOP_BUILDDIR", ".")
API_PORT, DISPATCH_PORT = 8000, 9006
CGROUP_ROOT = "/sys/fs/cgroup"
SKIP = 77


def skip(why):
    print("skipped:", why)
    sys.exit(SKIP)


def isolate():
    """Run this script again in namespaces of its own."""
    if os.environ.get("CDC_ISOLATED"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    if os.geteuid() != 0:
        skip("needs root")
    if not shutil.which("unshare") or not shutil.which("ip"):
        skip("needs unshare and ip")
    probe = subprocess.run(["unshare", "-mnpuf", "--kill-child", "--mount-proc",
                            "true"], stderr=subprocess.DEVNULL)
    if probe.returncode:
        if os.environ.get("CI"):
            sys.exit("namespaces cannot be made here, and CI is set")
        skip("namespaces cannot be made here")
    env = dict(os.environ, CDC_ISOLATED="1", PYTHONDONTWRITEBYTECODE="1")
    # Ours to wait for, so that a test that is ended ends all of it.
    child = subprocess.Popen(
        ["unshare", "-mnpuf", "--kill-child", "--mount-proc",
         sys.executable, os.path.abspath(sys.argv[0])] + sys.argv[1:], env=env)
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: child.kill())
    sys.exit(child.wait())


def build(path):
    """A file of the build tree; programs are found where they are made."""
    for folder in ("", "core/runner", "core/apiserver"):
        found = os.path.join(os.path.abspath(BUILD), folder, path)
        if os.path.exists(found):
            return found
    sys.exit("%s is not built in %s" % (path, os.path.abspath(BUILD)))


def wait_until(what, condition, timeout=30.0, pause=0.05):
    """The condition's first true value; fails the test after timeout."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("timed out: " + what)
        time.sleep(pause)


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__("%d %s" % (status, body))
        self.status, self.body = status, body


def call(port, token, method, path, body=None, timeout=30, raw=False):
    """One JSON request on 127.0.0.1; Refused for a status >= 400. raw: the
    answer as text."""
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    headers = {"Authorization": "Bearer " + token}
    data = None
    if body is not None:
        data = json.dumps(body)
        headers["Content-Type"] = "application/json"
    try:
        conn.request(method, path, data, headers)
        reply = conn.getresponse()
        text = reply.read().decode("utf-8", "replace")
    finally:
        conn.close()
    if reply.status >= 400:
        raise Refused(reply.status, text)
    if raw:
        return text
    return json.loads(text) if text else {}


DEFAULT_TYPES = {
    "small": {"VCPUs": 1, "RAM": "512MiB", "IncludedScratch": "1GiB",
              "Price": 0.01},
    "large": {"VCPUs": 4, "RAM": "2GiB", "IncludedScratch": "4GiB",
              "Price": 0.04},
}

DEFAULT_CLOUD = {
    "Driver": "loopback",
    "MaxInstances": 8,
    "TimeoutIdle": "2s",
    "SyncInterval": "2s",
    "TimeoutShutdown": "2s",
    "PollInterval": "2s",
    "AbsentGrace": "5s",
    "TimeoutBooting": "1m",
}


class Cluster:
    def __init__(self, types=None, cloud=None, containers=None,
                 parameters=None, user=None):
        """user: numeric id that the programs run as; None = root."""
        self.user = user
        self.dir = tempfile.mkdtemp(prefix="cdc-system-")
        os.chmod(self.dir, 0o755)
        self.shared = self.path("shared")
        os.mkdir(self.shared)
        os.chmod(self.shared, 0o1777)
        self.token = secrets.token_hex(20)
        self.management = secrets.token_hex(20)
        self.cgroup = "cdc-test-%s" % secrets.token_hex(4)
        self.procs = {}
        self.logs = {}
        self.failed = True
        self.mounts_before = self.mounts()
        self.write_config(types or DEFAULT_TYPES, cloud or {},
                          containers or {}, parameters or {})
        if user:
            for path in [self.dir] + [self.path(n)
                                      for n in os.listdir(self.dir)]:
                os.chown(path, user, user)
        atexit.register(self.clean)

    # --- files ---------------------------------------------------------------

    def path(self, name):
        return os.path.join(self.dir, name)

    def write_config(self, types, cloud, containers, parameters):
        key = self.path("key")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                        key], check=True)
        vms = dict(DEFAULT_CLOUD)
        vms.update({
            "DriverParameters": dict({
                "Program": build("cdc-local-vm"),
                "CgroupParent": self.cgroup,
                "SharedDirs": [self.shared],
            }, **parameters),
            "DriverDirectory": build("drivers/loopback/.libs"),
            "DeployRunnerBinary": build("crunch-run"),
            "StateDirectory": self.path("state"),
        })
        vms.update(cloud)
        config = {"Clusters": {"zzzzz": {
            "SystemRootToken": self.token,
            "ManagementToken": self.management,
            "Services": {
                "Controller": {
                    "ExternalURL": "http://127.0.0.1:%d/" % API_PORT,
                    "InternalURLs": {"http://127.0.0.1:%d/" % API_PORT: {}}},
                "DispatchCloud": {"InternalURLs": {
                    "http://127.0.0.1:%d/" % DISPATCH_PORT: {}}}},
            "SystemLogs": {"Format": "json", "LogLevel": "debug"},
            "Containers": dict({
                "DispatchPrivateKey": "file://" + key,
                "CloudVMs": vms}, **containers),
            "InstanceTypes": types,
            "APIServer": {"Database": self.path("db.sqlite"),
                          "FilesDirectory": self.path("files")},
        }}}
        self.config = self.path("config.yml")
        with open(self.config, "w", opener=lambda p, f: os.open(p, f, 0o600)) \
                as f:
            json.dump(config, f, indent=1)

    # --- programs ------------------------------------------------------------

    def spawn(self, name, argv, faults=None, env=None):
        """faults: lines `point:nth:action` for core/base/fault.h."""
        env = dict(os.environ, **(env or {}))
        fds = ()
        if faults:
            r, w = os.pipe()
            os.write(w, "".join(line + "\n" for line in faults).encode())
            os.close(w)
            env["CDC_FAULT_FD"] = str(r)
            fds = (r,)
        log = open(self.path(name + ".log"), "ab")
        self.procs[name] = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env,
            pass_fds=fds, **self.as_user())
        log.close()
        for fd in fds:
            os.close(fd)
        return self.procs[name]

    def as_user(self):
        """Arguments of Popen for a cluster that is not root's."""
        if not self.user:
            return {}
        return {"user": self.user, "group": self.user, "extra_groups": []}

    def start_api(self, faults=None, wait=True):
        self.spawn("api", [build("crunch-api-server"), "-config",
                           self.config], faults)
        if wait:
            wait_until("the API server answers", self.api_answers)

    def start_dispatch(self, faults=None, wait=True, env=None):
        self.spawn("dispatch", [build("crunch-dispatch-cloud"), "-config",
                                self.config, "-trust-build-tree"], faults,
                   env)
        if wait:
            wait_until("the dispatcher is well", self.dispatch_is_well)

    def start(self, api_faults=None, dispatch_faults=None):
        self.start_api(api_faults)
        self.start_dispatch(dispatch_faults)

    def api_answers(self):
        if self.procs["api"].poll() is not None:
            raise AssertionError("the API server ended: %s" % self.tail("api"))
        try:
            return self.api("GET", "api_client_authorizations/current")
        except OSError:
            return None

    def dispatch_is_well(self):
        if self.procs["dispatch"].poll() is not None:
            raise AssertionError("the dispatcher ended: %s"
                                 % self.tail("dispatch"))
        try:
            return self.health()["health"] == "OK"
        except (OSError, Refused):
            return False

    def kill(self, name):
        """kill -9, and wait for the end."""
        self.procs[name].kill()
        self.procs[name].wait()

    def stop_one(self, name, timeout=60):
        self.procs[name].terminate()
        code = self.procs[name].wait(timeout)
        assert code == 0, "%s ended with %d: %s" % (name, code,
                                                    self.tail(name))

    def stop(self):
        for name in ("dispatch", "api"):
            if name in self.procs and self.procs[name].poll() is None:
                self.stop_one(name)

    def tail(self, name, n=2000):
        with open(self.path(name + ".log"), "rb") as f:
            return f.read()[-n:].decode("utf-8", "replace")

    def log_events(self, name="dispatch"):
        with open(self.path(name + ".log"), "rb") as f:
            for line in f:
                try:
                    yield json.loads(line)
                except ValueError:
                    pass

    # --- asking --------------------------------------------------------------

    def api(self, method, path, body=None, token=None):
        return call(API_PORT, token or self.token, method,
                    "/arvados/v1/" + path, body)

    def manage(self, method, path):
        return call(DISPATCH_PORT, self.management, method,
                    "/arvados/v1/dispatch/" + path)

    def health(self):
        return call(DISPATCH_PORT, self.management, "GET", "/_health/ping")

    def metrics(self):
        return call(DISPATCH_PORT, self.management, "GET", "/metrics",
                    raw=True)

    def instances(self):
        return self.manage("GET", "instances")["items"] or []

    def request(self, command, vcpus=1, ram=64 << 20, priority=500,
                scratch=1 << 20, **other):
        """The body of a container request."""
        body = {
            "command": command, "container_image": "host", "cwd": "/out",
            "output_path": "/out", "state": "Committed",
            "priority": priority, "use_existing": False,
            "mounts": {"/out": {"kind": "tmp", "capacity": scratch}},
            "runtime_constraints": {"vcpus": vcpus, "ram": ram},
            "container_count_max": 3,
        }
        body.update(other)
        return body

    def submit(self, command, **other):
        return self.api("POST", "container_requests",
                        {"container_request": self.request(command, **other)})

    def get_request(self, uuid):
        return self.api("GET", "container_requests/" + uuid)

    def container_of(self, uuid):
        """The container of a request, by the request's uuid."""
        r = self.get_request(uuid)
        return self.api("GET", "containers/" + r["container_uuid"])

    def wait_final(self, uuids, timeout=120):
        """Until every request is Final; {uuid: container}."""
        left = list(uuids)

        def all_final():
            while left:
                r = self.get_request(left[0])
                if r["state"] != "Final":
                    return False
                left.pop(0)
            return True
        try:
            wait_until("%d requests are final" % len(uuids), all_final,
                       timeout, 0.2)
        except AssertionError:
            print("not final:", left[:20], file=sys.stderr)
            for u in left[:3]:
                c = self.container_of(u)
                print({k: c[k] for k in ("uuid", "state", "priority",
                                         "runtime_status", "lock_count")},
                      file=sys.stderr)
            raise
        return {u: self.container_of(u) for u in uuids}

    def log_file(self, uuid, name):
        """Text of a request's log file; None when there is none."""
        try:
            return call(API_PORT, self.token, "GET",
                        "/arvados/v1/container_requests/%s/log/%s"
                        % (uuid, name), raw=True)
        except Refused as e:
            if e.status == 404:
                return None
            raise

    def ctl(self, *args, check=True, timeout=120):
        """Run crunchctl; CompletedProcess with text."""
        env = dict(os.environ, ARVADOS_API_TOKEN=self.token,
                   CDC_API_URL="http://127.0.0.1:%d/" % API_PORT,
                   CDC_DISPATCH_URL="http://127.0.0.1:%d/" % DISPATCH_PORT,
                   CDC_MANAGEMENT_TOKEN=self.management)
        return subprocess.run([build("crunchctl")] + list(args), env=env,
                              check=check, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    # --- what is left ----------------------------------------------------------

    def mounts(self):
        with open("/proc/self/mountinfo") as f:
            return sum(1 for _ in f)

    def cgroups(self):
        """Every group below our parent, in any hierarchy."""
        found = []
        for top in [CGROUP_ROOT] + [os.path.join(CGROUP_ROOT, d) for d in
                                    os.listdir(CGROUP_ROOT)]:
            ours = os.path.join(top, self.cgroup)
            if os.path.isdir(ours):
                found += [d for d, _, _ in os.walk(ours)]
        return found

    def vm_dirs(self):
        d = self.path("state/loopback")
        return [n for n in os.listdir(d) if n.startswith("lvm-")] \
            if os.path.isdir(d) else []

    def processes(self):
        """Command lines of everything in our process namespace but us and
        our own programs."""
        known = {os.getpid(), 1}
        known |= {p.pid for p in self.procs.values() if p.poll() is None}
        out = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if int(pid) in known:
                continue
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    line = f.read().replace(b"\0", b" ").decode()
                with open("/proc/%s/stat" % pid) as f:
                    state = f.read().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if state != "Z":
                out.append("%s %s" % (pid, line.strip()))
        return out

    def wait_no_instances(self, timeout=60):
        wait_until("no instance is left", lambda: not self.instances(),
                   timeout, 0.2)

    def check_nothing_left(self):
        """No VM, process, mount, control group or lock file."""
        assert not self.vm_dirs(), "VM files left: %s" % self.vm_dirs()
        assert not self.processes(), "processes left: %s" % self.processes()
        leftovers = [d for d in self.cgroups()
                     if os.path.basename(os.path.dirname(d)) != "cgroup"
                     and "lvm-" in d]
        assert not leftovers, "control groups left: %s" % leftovers
        assert self.mounts() == self.mounts_before, "mounts left"
        locks = [n for n in os.listdir("/var/lock")
                 if n.startswith("crunch-run-zzzzz")]
        assert not locks, "lock files left: %s" % locks

    def passed(self):
        self.failed = False

    def remove_cgroups(self):
        for d in sorted(self.cgroups(), key=len, reverse=True):
            try:
                os.rmdir(d)
            except OSError:
                pass

    def clean(self):
        for p in self.procs.values():
            if p.poll() is None:
                p.kill()
                p.wait()
        ids = self.vm_dirs()
        for i in ids:
            subprocess.run([build("cdc-local-vm"), "--state",
                            self.path("state/loopback"), "destroy"],
                           input=json.dumps({"id": i}), text=True,
                           stdout=subprocess.DEVNULL, timeout=30)
        self.remove_cgroups()
        if self.failed or os.environ.get("CDC_KEEP"):
            print("kept:", self.dir, file=sys.stderr)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


# --- double runs ------------------------------------------------------------------

# A payload that proves it is the only one: it holds a lock on a file named by
# its container in the shared folder, and appends its start and end to a log.
# A lock that is taken, or a second start, is a double run.
ONCE = r"""
f=%(shared)s/$CDC_CONTAINER_UUID
exec 9>>"$f.lock"
if ! flock -n 9; then echo contended >>"$f.log"; exit 99; fi
echo start >>"$f.log"
%(work)s
rc=$?
echo end >>"$f.log"
exit $rc
"""


def once(cluster, work):
    return ["sh", "-c", ONCE % {"shared": cluster.shared, "work": work}]


def check_once(cluster):
    """No container's payload ran twice; the number of those that ran."""
    n = 0
    for name in sorted(os.listdir(cluster.shared)):
        if not name.endswith(".log"):
            continue
        with open(os.path.join(cluster.shared, name)) as f:
            lines = f.read().split()
        assert "contended" not in lines, "%s: two at once" % name
        assert lines.count("start") == 1, "%s: started %d times" \
            % (name, lines.count("start"))
        n += 1
    return n
