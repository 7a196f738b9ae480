#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The life of containers and requests in crunch-api-server: locks, attempts,
rights, retries, cancelling, sharing, children, and the server killed at each
of its fault points.

  api-life.py [CASE ...]
"""
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from apiserver import PROGRAM, run_cases  # noqa: E402


def look(s, sql, *values):
    with sqlite3.connect("file:%s?mode=ro" % s.path("api-server/db.sqlite"),
                         uri=True) as db:
        return db.execute(sql, values).fetchone()[0]


def a_superseded_attempt_can_do_nothing(s):
    tokens = "SELECT count(*) FROM api_client_authorizations" \
        " WHERE container_uuid = ?"
    live = "SELECT attempt_uuid FROM containers WHERE uuid = ?"
    req = s.submit()
    uuid = req["container_uuid"]
    path = "containers/%s" % uuid
    s.refused(422, "POST", path + "/attempt", s.dispatcher)
    s.lock(uuid)
    s.refused(403, "POST", path + "/attempt", s.root)
    first = s.attempt(uuid)
    assert len(first) == 81
    s.refused(403, "PUT", path, first, {"state": "Queued"})
    second = s.attempt(uuid)
    assert look(s, tokens, uuid) == 1
    assert look(s, live, uuid) == second.split("/")[1]
    s.refused(401, "PUT", path, first, {"state": "Running"})
    s.refused(401, "GET", path, first)
    s.refused(401, "PUT", path + "/log/stdout.txt", first, b"x")
    assert s.put(uuid, second, state="Running")["attempt"] == 2
    assert s.put(uuid, second, state="Running")["state"] == "Running"
    s.ok("DELETE", path + "/attempt", s.dispatcher)
    s.ok("DELETE", path + "/attempt", s.dispatcher)  # again
    assert look(s, tokens, uuid) == 0 and look(s, live, uuid) is None
    s.refused(401, "PUT", path, second, {"state": "Complete"})
    assert s.put(uuid, s.dispatcher, state="Cancelled")["state"] == \
        "Cancelled"

    other = s.submit()["container_uuid"]
    s.lock(other)
    token = s.attempt(other)
    s.ok("POST", "containers/%s/unlock" % other, s.dispatcher)
    s.refused(401, "PUT", "containers/" + other, token, {"state": "Running"})
    s.lock(other)
    s.refused(401, "PUT", "containers/" + other, token, {"state": "Running"})
    assert look(s, tokens, other) == 0 and look(s, live, other) is None

    # Either fence holds alone: the row of the token, and the comparison.
    token = s.attempt(other)
    s.stop()
    with sqlite3.connect(s.path("api-server/db.sqlite")) as db:
        db.execute("UPDATE containers SET attempt_uuid = NULL"
                   " WHERE uuid = ?", (other,))
    db.close()
    s.start()
    assert look(s, tokens, other) == 1
    s.refused(401, "PUT", "containers/" + other, token, {"state": "Running"})


def a_runner_has_just_these_rights(s):
    req, uuid, token = s.running()
    path = "containers/" + uuid
    other = s.submit()
    assert s.ok("GET", path, token)["uuid"] == uuid
    assert s.ok("GET", "containers/current", token)["uuid"] == uuid
    s.ok("GET", path + "/secret_mounts", token)
    s.refused(403, "GET", path + "/auth", token)
    s.refused(404, "GET", "containers/" + other["container_uuid"], token)
    for method, what in (("GET", "containers"), ("GET", "container_requests"),
                         ("POST", "container_requests"),
                         ("POST", path + "/lock"), ("POST", path + "/unlock"),
                         ("POST", path + "/attempt"), ("GET", "feed"),
                         ("DELETE", path),
                         ("GET", "api_client_authorizations")):
        s.refused(403, method, what, token)
    s.refused(403, "PUT", "containers/%s/log/stdout.txt"
              % other["container_uuid"], token, b"x")
    s.refused(422, "PUT", path, token, {"priority": 1})
    s.refused(422, "PUT", path, token, {"state": "Queued"})
    s.refused(404, "PUT", "containers/" + other["container_uuid"], token,
              {"state": "Running"})
    s.put(uuid, token, progress=0.5, cost=0.25,
          runtime_status={"warning": "hot"})
    done = s.put(uuid, token, state="Complete", exit_code=7, cost=0.5)
    assert (done["exit_code"], done["cost"]) == (7, 0.5)
    # A repeated final write is answered; a different one is not taken.
    assert s.put(uuid, token, state="Complete", exit_code=7,
                 cost=0.5)["state"] == "Complete"
    s.refused(422, "PUT", path, token, {"state": "Complete", "exit_code": 0})
    assert s.get_request(req["uuid"])["cumulative_cost"] == 0.5

    _, api, token = s.running(runtime_constraints={
        "vcpus": 1, "ram": 1 << 20, "API": True})
    auth = s.ok("GET", "containers/%s/auth" % api, token)
    payload = "v2/%s/%s" % (auth["uuid"], auth["api_token"])
    assert s.ok("GET", "containers/current",
                payload + "/" + api)["uuid"] == api
    s.refused(401, "GET", "containers/current", payload + "/" + uuid)
    s.put(api, payload, progress=0.5)
    s.refused(403, "PUT", "containers/" + api, payload,
              {"state": "Complete"})
    s.put(api, token, state="Complete", exit_code=0)
    s.refused(401, "GET", "containers/current", payload)


def another_administrator_may_only_cancel(s):
    _, uuid, token = s.running()
    path = "containers/" + uuid
    s.refused(422, "PUT", path, s.root, {"state": "Complete"})
    s.refused(422, "PUT", path, s.root, {"progress": 0.5})
    s.refused(403, "GET", path + "/auth", s.root)
    assert s.put(uuid, s.root, priority=1)["priority"] == 1
    assert s.put(uuid, s.root, state="Cancelled")["state"] == "Cancelled"
    s.refused(422, "PUT", path, token, {"state": "Complete"})

    locked = s.submit()["container_uuid"]
    s.lock(locked)
    s.refused(403, "POST", "containers/%s/unlock" % locked, s.root)
    s.refused(422, "POST", "containers/%s/lock" % locked, s.root)


def one_of_many_locks_wins(s):
    for _ in range(5):
        uuid = s.submit()["container_uuid"]
        codes = []

        def lock():
            codes.append(s.request("POST", "containers/%s/lock" % uuid,
                                   s.dispatcher).status)
        threads = [threading.Thread(target=lock) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sorted(codes) == [200] + [422] * 7, codes
        assert s.container(uuid)["lock_count"] == 1


def too_many_locks_cancel_and_requests_are_retried(s):
    req = s.submit(container_count_max=2, secret_mounts={
        "/s": {"kind": "text", "content": "secret"}})
    first = req["container_uuid"]
    for _ in range(3):
        s.lock(first)
        ended = s.ok("POST", "containers/%s/unlock" % first, s.dispatcher)
    assert ended["state"] == "Cancelled" and ended["locked_by_uuid"] is None
    assert "MaxDispatchAttempts" in \
        s.container(first)["runtime_status"]["error"]
    now = s.get_request(req["uuid"])
    second = now["container_uuid"]
    assert now["state"] == "Committed" and now["container_count"] == 2
    assert second != first
    ctr = s.container(second)
    assert ctr["state"] == "Queued" and ctr["lock_count"] == 0
    assert ctr["priority"] > 0 and ctr["command"] == ["true"]
    s.lock(second)
    token = s.attempt(second)
    secrets = s.ok("GET", "containers/%s/secret_mounts" % second, token)
    assert secrets["secret_mounts"]["/s"]["content"] == "secret"
    s.put(second, token, state="Running")
    s.put(second, token, state="Cancelled", cost=2.0)
    now = s.get_request(req["uuid"])
    assert now["state"] == "Final" and now["container_count"] == 2
    assert now["cumulative_cost"] == 2.0


def whoever_ends_it_may_rule_out_a_retry(s):
    req, uuid, token = s.running()
    s.put(uuid, token, state="Cancelled",
          runtime_status={"error": "limit", "noRetry": True})
    now = s.get_request(req["uuid"])
    assert now["state"] == "Final" and now["container_uuid"] == uuid
    req, uuid, token = s.running()
    s.put(uuid, token, state="Complete", exit_code=1)  # a result
    assert s.get_request(req["uuid"])["container_count"] == 1


def cancelling(s):
    path = "container_requests/%s/cancel"
    req = s.submit()
    done = s.ok("POST", path % req["uuid"], s.user)
    assert done["state"] == "Final" and done["priority"] == 0
    assert s.container(req["container_uuid"])["state"] == "Cancelled"
    assert s.ok("POST", path % req["uuid"], s.user)["state"] == "Final"

    a, b = (s.submit(use_existing=True, command=["shared"])
            for _ in range(2))
    uuid = a["container_uuid"]
    assert b["container_uuid"] == uuid
    assert s.ok("POST", path % a["uuid"], s.user)["state"] == "Final"
    assert s.container(uuid)["state"] == "Queued"
    assert s.container(uuid)["priority"] > 0
    s.ok("POST", path % b["uuid"], s.user)
    assert s.container(uuid)["state"] == "Cancelled"

    req = s.submit()  # locked, not started: the unlock ends it
    uuid = req["container_uuid"]
    s.lock(uuid)
    assert s.ok("POST", path % req["uuid"], s.user)["state"] == "Committed"
    assert s.container(uuid)["priority"] == 0
    ended = s.ok("POST", "containers/%s/unlock" % uuid, s.dispatcher)
    assert ended["state"] == "Cancelled"
    assert s.get_request(req["uuid"])["state"] == "Final"

    req, uuid, token = s.running()  # running: its runner ends it, log kept
    s.ok("PUT", "containers/%s/log/stderr.txt" % uuid, token, b"bye")
    s.ok("POST", path % req["uuid"], s.user)
    s.put(uuid, token, state="Cancelled")
    now = s.get_request(req["uuid"])
    assert now["state"] == "Final" and now["log_uuid"]
    assert now["container_count"] == 1

    req = s.submit()  # priority 0 by an update is a hold
    uuid = req["container_uuid"]
    s.ok("PUT", "container_requests/" + req["uuid"], s.user, {"priority": 0})
    assert s.container(uuid)["state"] == "Queued"
    s.refused(422, "POST", "containers/%s/lock" % uuid, s.dispatcher)
    s.ok("PUT", "container_requests/" + req["uuid"], s.user, {"priority": 9})
    s.lock(uuid)


def equal_containers_are_shared(s):
    a = s.submit(use_existing=True)
    b = s.submit(use_existing=True)
    c = s.submit(use_existing=True, command=["false"])
    assert a["container_uuid"] == b["container_uuid"] != c["container_uuid"]
    uuid = a["container_uuid"]
    s.ok("PUT", "container_requests/" + b["uuid"], s.user, {"priority": 900})
    assert s.container(uuid)["priority"] > 899 << 50
    s.lock(uuid)
    token = s.attempt(uuid)
    s.put(uuid, token, state="Running")
    assert s.submit(use_existing=True)["container_uuid"] == uuid
    s.ok("PUT", "containers/%s/output/x" % uuid, token, b"result")
    s.put(uuid, token, state="Complete", exit_code=0)
    d = s.submit(use_existing=True)  # finished already
    assert d["state"] == "Final" and d["container_uuid"] == uuid
    assert d["output_uuid"] and d["log_uuid"]
    bob = s.ok("POST", "api_client_authorizations", s.root,
               {"user_name": "bob"})
    bob = "v2/%s/%s" % (bob["uuid"], bob["api_token"])
    e = s.submit(bob, use_existing=True)  # another's result is not his
    assert e["container_uuid"] != uuid


def children_of_a_container(s):
    parent, uuid, token = s.running(priority=7, runtime_constraints={
        "vcpus": 1, "ram": 1 << 20, "API": True})
    auth = s.ok("GET", "containers/%s/auth" % uuid, token)
    payload = "v2/%s/%s/%s" % (auth["uuid"], auth["api_token"], uuid)
    kid = s.submit(payload, priority=1)
    assert kid["requesting_container_uuid"] == uuid
    assert kid["priority"] == 7
    assert kid["owner_uuid"] == parent["owner_uuid"]
    child = s.container(kid["container_uuid"])
    assert child["priority"] == s.container(uuid)["priority"]
    s.ok("PUT", "container_requests/" + parent["uuid"], s.user,
         {"priority": 8})
    assert s.container(kid["container_uuid"])["priority"] == \
        s.container(uuid)["priority"] > 7 << 50
    other = s.submit(payload)
    s.lock(other["container_uuid"])
    runner = s.attempt(other["container_uuid"])
    s.put(other["container_uuid"], runner, state="Running")
    s.put(other["container_uuid"], runner, state="Complete", exit_code=0,
          cost=1.5)
    assert s.container(uuid)["subrequests_cost"] == 1.5
    s.put(uuid, token, state="Complete", exit_code=0, cost=1.0)
    assert s.get_request(parent["uuid"])["cumulative_cost"] == 2.5
    assert s.get_request(kid["uuid"])["state"] == "Final"
    assert s.container(kid["container_uuid"])["priority"] == 0


def a_commit_that_fails_changes_nothing(s):
    uuid = s.submit()["container_uuid"]
    s.stop()
    s.start(["COMMIT_SLOW:1:fail"])
    s.refused(500, "POST", "containers/%s/lock" % uuid, s.dispatcher)
    assert s.container(uuid)["state"] == "Queued"
    s.lock(uuid)


def killed_at_each_fault_point(s):
    def death(*call):
        try:
            s.request(*call, timeout=10)
            raise AssertionError("answered")
        except OSError:
            pass
        except Exception as e:  # http.client has classes of its own
            assert "Remote end closed" in str(e), e
        assert s.process.wait(10) == -signal.SIGKILL

    uuid = s.submit()["container_uuid"]
    path = "containers/" + uuid
    s.stop()
    s.start(["AFTER_LOCK:1:kill", "AFTER_ATTEMPT_ROW:1:kill"])
    death("POST", path + "/lock", s.dispatcher)
    s.start(["AFTER_ATTEMPT_ROW:1:kill"])
    assert s.container(uuid)["state"] == "Locked"
    death("POST", path + "/attempt", s.dispatcher)
    s.start(["BEFORE_FINAL:1:kill"])
    assert s.container(uuid)["attempt"] == 1
    token = s.attempt(uuid)
    s.put(uuid, token, state="Running")
    s.ok("PUT", path + "/output/x", token, b"data")
    final = {"container": {"state": "Complete", "exit_code": 0}}
    death("PUT", path, token, final)
    s.start(["AFTER_FINAL:1:kill"])
    assert s.container(uuid)["state"] == "Running"
    death("PUT", path, token, final)
    s.start()
    done = s.container(uuid)
    assert done["state"] == "Complete" and done["output"]
    assert s.ok("PUT", path, token, final)["state"] == "Complete"
    assert s.request("GET", "collections/%s/files/x" % done["output"],
                     s.user).body == b"data"


def stops_cleanly_and_refuses_what_it_cannot_read(s):
    epoch = s.ok("GET", "feed", s.dispatcher)
    answers = []
    t = threading.Thread(target=lambda: answers.append(s.request(
        "GET", "feed?epoch=%s&since=%d&wait=40"
        % (epoch["epoch"], epoch["cursor"]), s.dispatcher, timeout=60)))
    t.start()
    time.sleep(0.3)
    start = time.time()
    assert s.stop() == 0
    assert time.time() - start < 8
    t.join()
    assert answers[0].status == 200
    db = s.path("api-server/db.sqlite")
    with sqlite3.connect(db) as c:
        c.execute("PRAGMA user_version = 99")
    c.close()
    r = subprocess.run([PROGRAM, "-config", s.config], capture_output=True,
                       text=True, timeout=20)
    assert r.returncode == 2, r
    assert "schema version 99" in r.stderr, r.stderr


run_cases([
    (a_superseded_attempt_can_do_nothing, ""),
    (a_runner_has_just_these_rights, ""),
    (another_administrator_may_only_cancel, ""),
    (one_of_many_locks_wins, ""),
    (too_many_locks_cancel_and_requests_are_retried,
     "    Containers: {MaxDispatchAttempts: 3}\n"),
    (whoever_ends_it_may_rule_out_a_retry, ""),
    (cancelling, ""),
    (equal_containers_are_shared, ""),
    (children_of_a_container, ""),
    (a_commit_that_fails_changes_nothing, ""),
    (killed_at_each_fault_point, ""),
    (stops_cleanly_and_refuses_what_it_cannot_read, ""),
])
