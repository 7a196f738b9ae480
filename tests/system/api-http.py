#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crunch-api-server over HTTP: tokens, parameters, definitions, files, feed,
limits, as doc/protocol-api.md promises them, with the real program.

  api-http.py [CASE ...]
"""
import hashlib
import os
import stat
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from apiserver import PROGRAM, definition, query, run_cases  # noqa: E402


def init_makes_private_folders_and_refuses_existing_ones(s):
    for root, dirs, files in os.walk(s.home):
        for name in dirs:
            mode = stat.S_IMODE(os.stat(os.path.join(root, name)).st_mode)
            assert mode == 0o700, (name, oct(mode))
        for name in files:
            mode = stat.S_IMODE(os.stat(os.path.join(root, name)).st_mode)
            assert mode & 0o077 == 0, (name, oct(mode))
    again = subprocess.run([PROGRAM, "init", s.home], capture_output=True,
                           text=True)
    assert again.returncode == 2 and "is there already" in again.stderr
    for wrong in (["init"], ["init", "/tmp/x", "-cluster-id", "toolong"],
                  ["-nonsense"], ["-config", "/nonexistent"]):
        r = subprocess.run([PROGRAM] + wrong, capture_output=True)
        assert r.returncode == 2 and r.stderr, wrong
    with open(s.path("dispatcher/config.yml")) as f:
        text = f.read()
    assert s.root not in text and "SystemRootToken" not in text
    with open(s.path("api-server/db.sqlite"), "rb") as f:
        data = f.read()
    for token in (s.dispatcher, s.user):
        assert token.split("/")[2].encode() not in data, "secret at rest"


def tokens_and_codes(s):
    s.refused(401, "GET", "containers")
    s.refused(401, "GET", "containers", "x" * 50)
    s.refused(401, "GET", "containers", s.user + "x")
    s.refused(401, "GET", "containers", s.user + "/zzzzz-dz642-" + "0" * 15)
    s.refused(404, "GET", "nonsense", s.user)
    s.refused(404, "GET", "/nonsense", s.user)
    s.refused(405, "POST", "containers/%s" % ("z" * 27), s.user)
    s.refused(400, "POST", "container_requests", s.user, b"{",
              headers={"Content-Type": "application/json"})
    s.refused(400, "POST", "container_requests", s.user, b"[]",
              headers={"Content-Type": "application/json"})
    r = s.request("GET", "users/current", s.user,
                  headers={"X-Request-Id": "req-mine"})
    assert r.headers["X-Request-Id"] == "req-mine"
    text = s.refused(404, "GET", "containers/x", s.user,
                     headers={"X-Request-Id": "req-other"})
    assert text.endswith("(req-other)"), text
    r = s.request("HEAD", "containers", s.user)
    assert r.status == 200 and r.body == b""
    assert int(r.headers["Content-Length"]) > 10
    r = s.request("OPTIONS", "containers")
    assert r.status == 200 and r.headers["Access-Control-Allow-Origin"] == "*"
    # The bare secret is a token too.
    assert s.ok("GET", "users/current",
                s.user.split("/")[2])["username"] == "alice"


def parameters_may_come_in_every_form(s):
    req = s.submit(name="x")
    where = query(filters=[["uuid", "=", req["uuid"]]], select=["uuid"],
                  count="none")
    expected = [{"kind": "arvados#containerRequest", "uuid": req["uuid"]}]
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert s.ok("GET", "container_requests?" + where, s.user)["items"] == \
        expected
    assert s.ok("POST", "container_requests", s.user, where.encode(),
                headers=dict(form, **{"X-Http-Method-Override": "GET"})
                )["items"] == expected
    assert s.ok("POST", "container_requests", s.user,
                (where + "&_method=GET").encode(), headers=form
                )["items"] == expected
    assert s.ok("GET", "container_requests", s.user,
                {"filters": [["uuid", "=", req["uuid"]]],
                 "select": ["uuid"]})["items"] == expected
    up = s.ok("PATCH", "container_requests/" + req["uuid"], s.user,
              query(container_request={"name": "y"}).encode(), headers=form)
    assert up["name"] == "y"


def users_see_their_own(s):
    bob = s.ok("POST", "api_client_authorizations", s.root,
               {"user_name": "bob"})
    bob = "v2/%s/%s" % (bob["uuid"], bob["api_token"])
    req, uuid, token = s.running()
    assert s.ok("GET", "users/current", bob)["username"] == "bob"
    for path in ("container_requests/" + req["uuid"], "containers/" + uuid,
                 "container_requests/%s/log" % req["uuid"]):
        s.refused(404, "GET", path, bob)
        s.ok("GET", path, s.user)
    s.refused(404, "POST", "container_requests/%s/cancel" % req["uuid"], bob)
    s.refused(404, "PUT", "container_requests/" + req["uuid"], bob,
              {"priority": 1})
    for path in ("container_requests", "containers", "collections"):
        assert s.ok("GET", path, bob)["items_available"] == 0
    s.refused(403, "POST", "api_client_authorizations", bob,
              {"user_name": "alice"})
    s.refused(403, "POST", "api_client_authorizations", bob,
              {"is_admin": True})
    s.refused(403, "POST", "containers", bob, {})
    s.refused(403, "GET", "feed", bob)
    s.put(uuid, token, state="Complete", exit_code=0)
    pdh = s.container(uuid)["log"]
    s.ok("GET", "collections/%s/files" % pdh, s.user)
    s.refused(404, "GET", "collections/%s/files" % pdh, bob)


def scopes_limit_a_token(s):
    made = s.ok("POST", "api_client_authorizations", s.user,
                {"scopes": ["GET /arvados/v1/containers/"]})
    token = "v2/%s/%s" % (made["uuid"], made["api_token"])
    req = s.submit()
    s.ok("GET", "containers/" + req["container_uuid"], token)
    s.refused(403, "GET", "containers", token)
    s.refused(403, "GET", "container_requests/" + req["uuid"], token)
    s.ok("GET", "api_client_authorizations/current", token)
    s.refused(403, "POST", "api_client_authorizations", token, {})
    s.ok("DELETE", "api_client_authorizations/" + made["uuid"], s.user)
    s.refused(401, "GET", "api_client_authorizations/current", token)


def definitions_are_checked(s):
    def wrong(part, **more):
        text = s.refused(422, "POST", "container_requests", s.user,
                         definition(**more))
        assert part in text, (part, text)
    out = {"kind": "tmp", "capacity": 1}
    wrong("mounts", mounts={"/out": out, "/c": {"kind": "collection"}})
    wrong("mounts", mounts={"/out": out, "rel": {"kind": "tmp"}})
    wrong("mounts", mounts={"/out": out, "/a/../b": {"kind": "tmp"}})
    wrong("mounts", mounts={"/out": dict(out, nonsense=1)})
    wrong("mounts", mounts={"/out": dict(out, path="/x")})
    wrong("stdout", mounts={"/out": out, "stdout": {"kind": "tmp"}})
    wrong("stdout", mounts={"/out": out, "stdout": {
        "kind": "file", "path": "/elsewhere/x"}})
    wrong("output_path", output_path="/nowhere")
    wrong("output_path", mounts={"/out": {"kind": "text", "content": ""}})
    wrong("container_image", container_image="docker/image:1")
    wrong("command", command=[])
    wrong("command", command=["a", 1])
    wrong("environment", environment={"A=B": "x"})
    wrong("runtime_constraints", runtime_constraints={"vcpus": 1})
    wrong("runtime_constraints", runtime_constraints={"vcpus": 1, "ram": 1,
                                                      "rma": 2})
    wrong("runtime_constraints", runtime_constraints={"vcpus": -1, "ram": 1})
    wrong("scheduling_parameters", scheduling_parameters={"x": 1})
    wrong("priority", priority=1001)
    wrong("priority", priority=None)
    wrong("secret_mounts", secret_mounts={"/out": {"kind": "text",
                                                   "content": "x"}})
    wrong("secret_mounts", secret_mounts={"/s": {"kind": "tmp"}})
    wrong("unknown attribute", nonsense=1)
    wrong("state", state="Final")
    draft = s.ok("POST", "container_requests", s.user, {"name": "draft"})
    assert draft["state"] == "Uncommitted"
    s.refused(422, "PUT", "container_requests/" + draft["uuid"], s.user,
              {"state": "Committed"})
    done = s.ok("PUT", "container_requests/" + draft["uuid"], s.user,
                definition())
    assert done["state"] == "Committed" and done["container_uuid"]
    s.refused(422, "PUT", "container_requests/" + draft["uuid"], s.user,
              {"command": ["other"]})
    ctr = s.container(done["container_uuid"])
    assert ctr["runtime_constraints"]["API"] is False
    assert ctr["scheduling_parameters"]["max_run_time"] == 0


def creates_are_idempotent_under_a_key(s):
    body = {"container_request": definition(name="k")}
    head = {"Idempotency-Key": "key-1"}
    a = s.ok("POST", "container_requests", s.user, body, headers=head)
    b = s.ok("POST", "container_requests", s.user, body, headers=head)
    assert a["uuid"] == b["uuid"]
    other = {"container_request": definition(name="other")}
    s.refused(422, "POST", "container_requests", s.user, other, headers=head)
    c = s.ok("POST", "container_requests", s.dispatcher, other, headers=head)
    assert c["uuid"] != a["uuid"]
    s.refused(422, "POST", "container_requests", s.user, body,
              headers={"Idempotency-Key": "k" * 300})
    assert s.ok("GET", "container_requests", s.user)["items_available"] == 1


def management(s):
    for path in ("/metrics", "/_health/ping"):
        assert s.request("GET", path).status == 401
        assert s.request("GET", path, s.user).status == 403
        r = s.request("GET", path, s.management)
        assert r.status == 200, r.body
    assert s.request("GET", "/_health/ping", s.management).json() == {
        "health": "OK"}
    s.submit()
    text = s.request("GET", "/metrics", s.management).body.decode()
    assert 'cdc_api_requests_total{method="POST",' \
        'resource="container_requests",code="200"}' in text, text
    status = s.ok("GET", "container_requests/%s/container_status"
                  % s.submit()["uuid"], s.user)
    assert status["container_state"] == "Queued"
    assert status["scheduling_status"] == ""


def rates_are_limited(s):
    def hammer(token):
        return [s.request("GET", "users/current", token).status
                for _ in range(60)]
    codes = hammer(s.user)
    assert codes.count(200) >= 10 and 429 in codes, codes
    # However a token is written, it is the same one.
    codes = [s.request("GET", "users/current", " " * n + s.user).status
             for n in range(1, 60)]
    assert 429 in codes, codes
    assert set(hammer(s.dispatcher)) == {200}  # administrators are not
    codes = hammer("x" * 50)
    assert 401 in codes and codes[-1] == 429, codes


def an_overload_is_a_503(s):
    uuids = [s.submit()["container_uuid"] for _ in range(12)]
    s.stop()
    s.start(["COMMIT_SLOW:1:delay=1500"])
    codes = []

    def lock(uuid):
        r = s.request("POST", "containers/%s/lock" % uuid, s.dispatcher)
        codes.append((r.status, r.body, r.headers["Retry-After"]))
    threads = [threading.Thread(target=lock, args=(u,)) for u in uuids]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    refused = [c for c in codes if c[0] == 503]
    assert len(refused) == 8, codes  # 4 may be in work
    assert refused[0][1:] == (b"", "1")
    assert sum(s.container(u)["state"] == "Locked" for u in uuids) == 4


def files_and_their_hashes(s):
    req, uuid, token = s.running()
    log = "containers/%s/log/" % uuid
    out = "containers/%s/output/" % uuid
    assert s.ok("PUT", log + "stdout.txt", token, b"hello ")["size"] == 6
    assert s.ok("PUT", log + "stdout.txt?offset=6", token,
                b"world")["size"] == 11
    assert s.ok("PUT", log + "stdout.txt?offset=6", token,
                b"world")["size"] == 11  # repeated
    text = s.refused(422, "PUT", log + "stdout.txt?offset=12", token, b"x")
    assert "11" in text
    s.refused(422, "PUT", log + "passwd", token, b"x")
    s.refused(422, "PUT", log + "stdout.txt?offset=-1", token, b"x")
    for bad in ("a//../x", "%2e%2e/x", "a/%2e%2e/b", "a/%00b", "%0a"):
        assert s.request("PUT", out + bad, token, b"x").status in (
            400, 422, 404), bad
    s.ok("PUT", out + "a%20b/f1", token, b"foo")
    s.ok("PUT", out + "f2", token, b"longer")
    assert s.ok("PUT", out + "f2", token, b"bar")["size"] == 3
    s.ok("PUT", out + "empty/e", token, b"")
    s.refused(422, "PUT", out + "f2/x", token, b"x")

    read = "container_requests/%s/log" % req["uuid"]
    assert s.ok("GET", read, s.user)["items"] == [
        {"name": "stdout.txt", "size": 11}]
    for path in (read + "/stdout.txt", read + "/%s/stdout.txt" % uuid):
        assert s.request("GET", path, s.user).body == b"hello world"
    for asked, status, body, said in (
            ("bytes=6-", 206, b"world", "bytes 6-10/11"),
            ("bytes=0-4", 206, b"hello", "bytes 0-4/11"),
            ("bytes=-3", 206, b"rld", "bytes 8-10/11"),
            ("bytes=8-99", 206, b"rld", "bytes 8-10/11"),
            ("bytes=5-1", 200, b"hello world", None),
            ("lines=1-2", 200, b"hello world", None)):
        r = s.request("GET", read + "/stdout.txt", s.user,
                      headers={"Range": asked})
        assert (r.status, r.body) == (status, body), (asked, r.status)
        assert r.headers["Content-Range"] == said, asked
    r = s.request("GET", read + "/stdout.txt", s.user,
                  headers={"Range": "bytes=11-"})
    assert r.status == 416 and r.headers["Content-Range"] == "bytes */11"
    s.refused(404, "GET", read + "/stderr.txt", s.user)

    s.put(uuid, token, state="Complete", exit_code=0)
    s.refused(422, "PUT", log + "stdout.txt?offset=11", token, b"late")
    manifest = (
        ". %s+3 0:3:f2\n" % hashlib.md5(b"bar").hexdigest() +
        "./a\\040b %s+3 0:3:f1\n" % hashlib.md5(b"foo").hexdigest() +
        "./empty d41d8cd98f00b204e9800998ecf8427e+0 0:0:e\n")
    pdh = "%s+%d" % (hashlib.md5(manifest.encode()).hexdigest(),
                     len(manifest))
    done = s.ok("GET", "containers/" + uuid, s.user)
    assert done["output"] == pdh, done["output"]
    final = s.get_request(req["uuid"])
    record = s.ok("GET", "collections/" + final["output_uuid"], s.user)
    assert record["manifest_text"] == manifest
    assert record["portable_data_hash"] == pdh
    assert (record["file_count"], record["file_size_total"]) == (3, 6)
    for name in (pdh, final["output_uuid"]):
        assert s.request("GET", "collections/%s/files/a%%20b/f1" % name,
                         s.user).body == b"foo"
    assert len(s.ok("GET", "collections/%s/files" % pdh,
                    s.user)["items"]) == 3
    assert s.request("GET", read + "/stdout.txt", s.user).body == \
        b"hello world"


def each_attempt_has_files_of_its_own(s):
    req = s.submit()
    uuid = req["container_uuid"]
    s.lock(uuid)
    first = s.attempt(uuid)
    s.ok("PUT", "containers/%s/log/stdout.txt" % uuid, first, b"first")
    second = s.attempt(uuid)
    s.ok("PUT", "containers/%s/log/stderr.txt" % uuid, second, b"second")
    s.put(uuid, second, state="Running")
    s.put(uuid, second, state="Complete", exit_code=0)
    assert s.ok("GET", "container_requests/%s/log" % req["uuid"],
                s.user)["items"] == [{"name": "stderr.txt", "size": 6}]


def files_have_limits(s):
    _, uuid, token = s.running()
    out = "containers/%s/output/" % uuid
    s.ok("PUT", out + "a", token, b"x" * 600)
    s.refused(413, "PUT", out + "b", token, b"x" * 601)
    s.refused(413, "PUT", out + "a?offset=600", token, b"x")
    s.ok("PUT", out + "b", token, b"x" * 400)
    s.refused(413, "PUT", out + "c", token, b"x" * 10)  # 1,000 in all
    s.ok("PUT", out + "c", token, b"")
    s.refused(413, "PUT", out + "d", token, b"")  # three files
    s.stop()
    s.start()  # what was counted is counted again
    s.refused(413, "PUT", out + "d", token, b"")
    s.refused(413, "PUT", out + "b", token, b"x" * 401)
    s.refused(413, "PUT", out + "b", token, b"x" * 5000)


def the_feed(s):
    now = s.ok("GET", "feed", s.dispatcher)
    epoch, cursor = now["epoch"], now["cursor"]
    assert now["items"] == [] and not now["resync"]

    def ask(since, wait=0, epoch=epoch):
        return s.ok("GET", "feed?" + query(epoch=epoch, since=str(since),
                                           wait=str(wait)), s.dispatcher)
    req = s.submit()
    got = ask(cursor)
    assert {(i["kind"], i["uuid"]) for i in got["items"]} == {
        ("arvados#containerRequest", req["uuid"]),
        ("arvados#container", req["container_uuid"])}
    assert got["cursor"] > cursor and not got["more"]
    assert ask(got["cursor"])["items"] == []

    answers = []
    start = time.time()
    t = threading.Thread(target=lambda: answers.append(
        (ask(got["cursor"], 30), time.time() - start)))
    t.start()
    time.sleep(0.3)
    s.lock(req["container_uuid"])
    t.join()
    waited, took = answers[0]
    assert took < 5 and [i["uuid"] for i in waited["items"]] == [
        req["container_uuid"]], answers
    start = time.time()
    assert ask(waited["cursor"], 1)["items"] == []
    assert 0.9 < time.time() - start < 5

    for _ in range(20):  # the ring has 16 entries
        s.submit()
    assert ask(cursor)["resync"] and ask(cursor)["items"] == []
    assert ask(cursor, 30, "other")["resync"]
    assert ask(10 ** 9)["resync"]
    s.stop()
    s.start()
    assert ask(waited["cursor"])["resync"]


run_cases([
    (init_makes_private_folders_and_refuses_existing_ones, ""),
    (tokens_and_codes, ""),
    (parameters_may_come_in_every_form, ""),
    (users_see_their_own, ""),
    (scopes_limit_a_token, ""),
    (creates_are_idempotent_under_a_key, ""),
    (definitions_are_checked, ""),
    (files_and_their_hashes, ""),
    (each_attempt_has_files_of_its_own, ""),
    (files_have_limits, "FILES"),
    (the_feed, "FEED"),
    (management, ""),
    (rates_are_limited, "RATE"),
    (an_overload_is_a_503,
     "    API: {MaxConcurrentRequests: 3, MaxQueuedRequests: 1}\n"),
])
