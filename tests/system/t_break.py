#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Careless and hostile use of the programs, each with the real program alone:
one clear line, the right exit code, no crash, no endless wait.

    t_break.py [CASE...]
"""
import os
import subprocess
import sys
import traceback

from apiserver import Server

TOP = os.environ.get("TOP_BUILDDIR", os.getcwd())


def ctl(s, *args, **more):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent",
           "CDC_API_URL": "http://127.0.0.1:%d/" % s.port,
           "ARVADOS_API_TOKEN": s.user}
    more.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([os.path.join(TOP, "crunchctl")] + list(args),
                          env=env, timeout=30, text=True,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          **more)


def one_line(p, code, part):
    assert p.returncode == code, (p.returncode, p.stderr)
    assert p.stderr.count("\n") == 1 and part in p.stderr, p.stderr


def files_of_jobs_that_cannot_be_read(s):
    """A folder looks like an empty file, /dev/zero like an endless line."""
    one_line(ctl(s, "submit", "--file", "/"), 1, "Is a directory")
    one_line(ctl(s, "submit", "--file", "/dev/zero"), 1, "too long")
    path = os.path.join(s.dir, "jobs")
    with open(path, "w") as f:
        f.write("\n" * 100001 + "{}\n" * 10)
    one_line(ctl(s, "submit", "--file", path), 1, "jobs:100001: too long")


def output_that_cannot_be_written(s):
    """The uuid of a new request was not told: that is no success."""
    with open("/dev/full", "w") as full:
        for args in (["submit", "true"], ["submit", "--json", "true"],
                     ["list"], ["--help"], ["--version"]):
            one_line(ctl(s, *args, stdout=full), 1, "standard output")
    assert ctl(s, "list").returncode == 0


CASES = [files_of_jobs_that_cannot_be_read, output_that_cannot_be_written]


def main():
    failed = 0
    s = Server()
    try:
        for case in CASES:
            if sys.argv[1:] and case.__name__ not in sys.argv[1:]:
                continue
            try:
                case(s)
                print("ok", case.__name__, flush=True)
            except Exception:  # noqa: BLE001
                failed += 1
                traceback.print_exc()
                print("not ok", case.__name__, flush=True)
    finally:
        if s.close() != 0:
            failed += 1
            print("not ok: the server's exit code")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
