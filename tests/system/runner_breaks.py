# SPDX-License-Identifier: Apache-2.0
"""Cases of t_runner.py: containers made to break the runner, or its machine."""
import os

from runner_node import expect

CASES = []


def case(f):
    CASES.append(f)
    return f


@case
def secret_mounts(n):
    """They are there, and neither in the output nor in any log."""
    pw = {"kind": "text", "content": "sesame-17"}
    done = n.sh("cat; cat /etc/pw /out/k | md5sum; touch /out/other",
                secret_mounts={"/etc/pw": pw, "/out/k": pw, "stdin": {
                    "kind": "json", "content": {"a": 1}}})
    expect(done, "Complete", 0)
    assert "a" in n.out(done) and "04fa8822" in n.out(done), n.out(done)
    assert n.api.output(done["uuid"]) == {"other": b""}
    for name in ("crunch-run.txt", "stdout.txt", "stderr.txt"):
        assert "sesame" not in n.out(done, name), name
    for bad in ({"/out": pw}, {"/x": {"kind": "tmp"}},
                {"stdout": {"kind": "file", "path": "/out/x"}},
                {"/proc/x": pw}):
        done = n.sh("true", secret_mounts=bad)
        expect(done, "Cancelled", error="secret_mounts: ", no_retry=True)


@case
def mounts_that_contradict_each_other(n):
    """The container's fault: it ends, and the machine is not broken."""
    text = {"kind": "text", "content": "x" * 100000}
    out = {"/out": {"kind": "tmp"}}
    name = "x" * 300
    for part, more in (
            ("/out/a/b", {"/out/a": text, "/out/a/b": text}),
            ("stdout", {"/out/a": text, "stdout": {"kind": "file",
                                                   "path": "/out/a/b"}}),
            ("stderr", {"/out/d/a": text, "stderr": {"kind": "file",
                                                     "path": "/out/d"}}),
            ("/out/" + name[:20], {"/out/" + name: text}),
            ("stdout", {"stdout": {"kind": "file", "path": "/out/" + name}}),
            ("/out/big", {"/out": {"kind": "tmp", "device_type": "ram",
                                   "capacity": 1}, "/out/big": text})):
        done = n.sh("echo started > /mnt/shared/contradicted",
                    mounts=dict(out, **more))
        expect(done, "Cancelled", error="mounts: " + part, no_retry=True)
    assert not os.path.exists(n.shared + "/contradicted")
    assert "broken" not in n.list()
