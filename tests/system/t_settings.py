#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Settings of Containers.CloudVMs that reach the driver, the instance or the
API server: each has the effect that crunch-dispatch-cloud.yml(5) promises.
(Times and limits are tested in the simulator, tests/sim.)

Between dispatcher and cdc-local-vm stands a small program that writes down
every call.
"""
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import (API_PORT, Cluster, build, isolate,  # noqa: E402
                     wait_until)

ONE = {"only": {"VCPUs": 4, "RAM": "512MiB", "IncludedScratch": "1GiB",
                "Price": 0.01}}

SPY = """#!%(python)s
import json, os, subprocess, sys, time
text = sys.stdin.read()
p = subprocess.run([%(real)r] + sys.argv[1:], input=text, text=True,
                   stdout=subprocess.PIPE)
out = p.stdout
if %(hide_port)r and '"port"' in out:
    doc = json.loads(out)
    for i in [doc.get("instance")] + doc.get("instances", []):
        if i:
            i["port"] = 0
    out = json.dumps(doc)
with open(%(log)r, "a") as f:
    f.write(json.dumps({"verb": sys.argv[-1], "in": json.loads(text or "{}"),
                        "out": json.loads(out or "{}")}) + "\\n")
sys.stdout.write(out)
sys.exit(p.returncode)
"""


class Spied(Cluster):
    """A cluster whose driver calls are written down."""

    def __init__(self, cloud, hide_port=False, **other):
        super().__init__(types=ONE, cloud=cloud, **other)
        self.calls_path = self.path("calls")
        spy = self.path("spy")
        with open(spy, "w") as f:
            f.write(SPY % {"python": sys.executable,
                           "real": build("cdc-local-vm"),
                           "log": self.calls_path, "hide_port": hide_port})
        os.chmod(spy, 0o755)
        self.change(lambda vms: vms["DriverParameters"].update(Program=spy))

    def change(self, how):
        with open(self.config) as f:
            doc = json.load(f)
        how(doc["Clusters"]["zzzzz"]["Containers"]["CloudVMs"])
        with open(self.config, "w") as f:
            json.dump(doc, f)

    def calls(self, verb):
        if not os.path.exists(self.calls_path):
            return []
        with open(self.calls_path) as f:
            return [c for c in map(json.loads, f) if c["verb"] == verb]

    def first_create(self):
        return wait_until("a create call",
                          lambda: self.calls("create"), 30)[0]["in"]


def what_a_create_carries():
    """ImageID, InstanceInitCommand, DeployPublicKey, ResourceTags,
    TagKeyPrefix, InstanceSetID."""
    with Spied({"ImageID": "nonesuch", "InstanceInitCommand": "echo mine",
                "DeployPublicKey": False, "ResourceTags": {"dept": "r&d"},
                "TagKeyPrefix": "Test", "InstanceSetID": "zzzzz-set-7"}) as c:
        c.start()
        uuid = c.submit(["true"])["uuid"]
        spec = c.first_create()
        assert spec["image"] == "nonesuch", spec
        assert spec["init_command"].endswith("echo mine"), spec
        assert spec["public_key"] == "", spec
        assert spec["tags"]["dept"] == "r&d", spec
        assert spec["tags"]["TestInstanceSetID"] == "zzzzz-set-7", spec
        assert spec["tags"]["TestInstanceType"] == "only", spec
        assert not [t for t in spec["tags"] if t.startswith("Arvados")], spec
        c.ctl("cancel", uuid)
        c.stop()
        c.passed()


def what_an_instance_does():
    """InstanceInitCommand, BootProbeCommand, DeployRunnerDirectory,
    MaxRunningContainersPerInstance, SSH user and key by default."""
    with Spied({"DeployRunnerDirectory": "/tmp/elsewhere",
                "MaxRunningContainersPerInstance": 2}) as c:
        c.change(lambda v: v.update(
            InstanceInitCommand="touch %s/init-ran" % c.shared,
            BootProbeCommand="test -e %s/ready" % c.shared))
        c.start()
        uuids = [c.submit(["sleep", "3"])["uuid"] for _ in range(4)]
        wait_until("the init command ran", lambda: os.path.exists(
            c.shared + "/init-ran"), 30)
        time.sleep(2)
        assert {i["worker_state"] for i in c.instances()} == {"booting"}
        open(c.shared + "/ready", "w").close()
        wait_until("all run", lambda: all(c.container_of(u)["state"] in (
            "Running", "Complete") for u in uuids), 30)
        assert any("/tmp/elsewhere/crunch-run~" in p
                   for p in c.processes()), c.processes()
        per = [len(i["running_container_uuids"] or [])
               for i in c.instances()]
        assert max(per) <= 2 and len(per) >= 2, per
        c.wait_final(uuids)
        c.wait_no_instances()
        c.stop()
        c.passed()


def no_deployment():
    """DeployRunnerBinary empty: CrunchRunCommand of the image is called, with
    CrunchRunArgumentsList."""
    with Spied({"DeployRunnerBinary": ""}) as c:
        runner = c.shared + "/image-runner"
        with open(runner, "w") as f:
            f.write("#!/bin/sh\necho \"$*\" >>%s/calls\nexec %s/real \"$@\"\n"
                    % (c.shared, c.shared))
        os.chmod(runner, 0o755)
        subprocess.run(["cp", build("crunch-run"), c.shared + "/real"],
                       check=True)
        with open(c.config) as f:
            doc = json.load(f)
        doc["Clusters"]["zzzzz"]["Containers"].update(
            CrunchRunCommand=runner,
            CrunchRunArgumentsList=["--crunchstat-interval=5s"],
            RuntimeEngine="docker")
        with open(c.config, "w") as f:
            json.dump(doc, f)
        c.start()
        uuid = c.submit(["true"])["uuid"]
        assert c.wait_final([uuid])[uuid]["exit_code"] == 0
        with open(c.shared + "/calls") as f:
            starts = [s for s in f if "--detach" in s]
        assert starts and "--crunchstat-interval=5s" in starts[0] and \
            "--runtime-engine=docker" in starts[0], starts
        c.wait_no_instances()
        c.stop()
        c.passed()


def ssh_port():
    """SSHPort is for instances whose driver names no port."""
    with Spied({"SSHPort": 2345}, hide_port=True) as c:
        listener = socket.socket()
        listener.bind(("0.0.0.0", 2345))
        listener.listen(5)
        listener.settimeout(30)
        c.start()
        uuid = c.submit(["true"])["uuid"]
        listener.accept()[0].close()
        listener.close()
        c.ctl("cancel", uuid)
        c.stop()
        c.passed()


def tokens_and_urls():
    """APIToken is the dispatcher's own; APIURLForInstances what runners
    call."""
    with Spied({}) as c:
        c.start_api()
        made = c.api("POST", "api_client_authorizations",
                     {"api_client_authorization": {"scopes": ["all"]}})
        token = made["api_token"] if made["api_token"].startswith("v2/") \
            else "v2/%s/%s" % (made["uuid"], made["api_token"])
        seen = []

        class Proxy(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def relay(self):
                n = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(n)
                seen.append((self.command, self.path))
                conn = http.client.HTTPConnection("127.0.0.1", API_PORT)
                keep = {k: v for k, v in self.headers.items()
                        if k.lower() in ("authorization", "content-type")}
                conn.request(self.command, self.path, body, keep)
                r = conn.getresponse()
                data = r.read()
                self.send_response(r.status)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(data)
                conn.close()
            do_GET = do_PUT = do_POST = relay

            def log_message(self, *_):
                pass
        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 7777), Proxy)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        c.change(lambda v: v.update(
            APIToken=token, APIURLForInstances="http://127.0.0.1:7777/"))
        c.start_dispatch()
        uuid = c.submit(["sleep", "2"])["uuid"]
        locked = wait_until("it is locked", lambda: c.container_of(uuid)[
            "locked_by_uuid"], 30)
        assert locked == made["uuid"], (locked, made["uuid"])
        assert c.wait_final([uuid])[uuid]["state"] == "Complete"
        assert any(m == "PUT" for m, _ in seen), seen
        assert not any(p.endswith("/lock") for _, p in seen), seen
        c.wait_no_instances()
        c.stop()
        proxy.shutdown()
        c.passed()


class Arvados(http.server.BaseHTTPRequestHandler):
    """As much of an Arvados server as tells that it has no attempts."""

    def do_GET(self):
        body = {"items": []}
        if "discovery" in self.path:
            body = {"kind": "discovery#restDescription",
                    "basePath": "/arvados/v1/"}
        elif "current" in self.path:
            body = {"uuid": "zzzzz-gj3su-000000000000000"}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def no_attempts():
    """A server without attempts is refused with the reason, not half used."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", API_PORT), Arvados)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Spied({}) as c:
        c.start_dispatch(wait=False)
        assert c.procs["dispatch"].wait(20) == 2
        assert "has no attempts" in c.tail("dispatch")
        c.passed()
    server.shutdown()


CASES = [what_a_create_carries, what_an_instance_does, no_deployment,
         ssh_port, tokens_and_urls, no_attempts]


def main():
    isolate()
    for case in CASES:
        if len(sys.argv) < 2 or case.__name__ in sys.argv[1:]:
            case()
            print("%s: ok" % case.__name__, flush=True)


main()
