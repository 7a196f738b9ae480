#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A driver that was built outside the tree, under the dispatcher.

The public headers are installed into a folder of their own; the example
driver is compiled against nothing but these; the dispatcher uses it to take,
list and give back a machine, on which a container runs. The machine is a local
VM that nobody but this test knows of.
"""
import json
import os
import subprocess
import sys

import cluster

SRCDIR = os.path.abspath(os.environ.get("TOP_SRCDIR", "."))


def install_headers(where):
    """What `make install` installs for authors of drivers."""
    env = {k: v for k, v in os.environ.items()
           if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "DESTDIR")}
    subprocess.run(["make", "-s", "-C", cluster.BUILD, "DESTDIR=" + where,
                    "install-cdcincludeHEADERS",
                    "install-nodist_cdcincludeHEADERS",
                    "install-pkgconfigDATA"], env=env, check=True,
                   stdout=subprocess.DEVNULL, timeout=60)
    for folder, _, files in os.walk(where):
        if "cdc-driver.pc" in files:
            return folder
    sys.exit("cdc-driver.pc was not installed")


def compile_driver(where, out):
    env = dict(os.environ, PKG_CONFIG_PATH=install_headers(where),
               PKG_CONFIG_SYSROOT_DIR=where)
    flags = subprocess.run(["pkg-config", "--cflags", "cdc-driver"], env=env,
                           check=True, text=True, stdout=subprocess.PIPE)
    source = os.path.join(SRCDIR, "plugins-api/example/machines.c")
    os.mkdir(out)
    subprocess.run(os.environ.get("CC", "cc").split() + [
        "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fPIC",
        "-fvisibility=hidden", "-shared", "-Wl,-z,defs", "-Wl,-z,now",
        "-Wl,-z,nodelete"] + flags.stdout.split() +
        [source, "-o", os.path.join(out, "machines.so")],
        cwd="/", check=True)


def local_vm(c, verb, request):
    r = subprocess.run([cluster.build("cdc-local-vm"), "--state",
                        c.path("machine"), verb], input=json.dumps(request),
                       text=True, check=True, timeout=60,
                       stdout=subprocess.PIPE)
    return json.loads(r.stdout)


def make_machine(c):
    with open(c.path("key.pub")) as f:
        key = f.read().strip()
    return local_vm(c, "create", {
        "token": "machine", "set_id": "machine", "image": "host",
        "type": {"name": "m", "provider_type": "m", "vcpus": 2,
                 "ram": 1 << 30, "scratch": 0, "price": 0},
        "public_key": key, "cgroup_parent": c.cgroup,
    })["instance"]


def use_driver(c, machines):
    with open(c.config) as f:
        config = json.load(f)
    config["Clusters"]["zzzzz"]["Containers"]["CloudVMs"].update({
        "Driver": "machines", "DriverDirectory": c.path("drivers"),
        "BootProbeCommand": "true",
        "DriverParameters": {"Machines": machines}})
    with open(c.config, "w") as f:
        json.dump(config, f)


def leases(c):
    folder = c.path("state/machines")
    return os.listdir(folder) if os.path.isdir(folder) else []


def main():
    cluster.isolate()
    c = cluster.Cluster()
    compile_driver(c.path("installed"), c.path("drivers"))
    m = make_machine(c)
    try:
        use_driver(c, [{
            "Name": "one", "Address": m["address"], "Port": m["port"],
            "User": m["user"], "HostKey": m["host_key"]}])
        run(c)
    finally:
        local_vm(c, "destroy", {"id": m["id"]})
    c.check_nothing_left()
    c.passed()
    print("a container ran on a machine of an out-of-tree driver")


def run(c):
    c.start()
    request = c.submit(["sh", "-c", "echo hello from $(hostname)"])
    cluster.wait_until("a machine is taken", lambda: leases(c), 30)
    assert leases(c) == ["one"], leases(c)
    done = c.wait_final([request["uuid"]])[request["uuid"]]
    assert done["state"] == "Complete" and done["exit_code"] == 0, done
    text = c.log_file(request["uuid"], "stdout.txt")
    assert text.startswith("hello from "), text
    listed = [i["instance"] for i in c.instances()]
    assert all(i.startswith("one.c") for i in listed), listed
    c.wait_no_instances()
    cluster.wait_until("it is given back", lambda: not leases(c), 30)
    c.stop()


main()
