#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arvados' own Python SDK (arvados-python-client from PyPI) against
crunch-api-server: lists, keyset pages over more than 1,000 records, gets,
creates, locks, updates, cancels, errors.

The SDK is a foreign client that was not written for us: what it builds from
our discovery document, and how it pages, is the test. It lives in a virtual
environment of the build tree, made at the first run. Without it the test is
skipped (77); where CI is set that is a failure. Keyset paging never ends
against a server that rounds times or ignores a filter, hence the alarm.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from apiserver import TOP, Server, definition  # noqa: E402

SDK = "arvados-python-client==3.2.1"
VENV = os.path.join(TOP, "tests", "venv-arvados")
DEADLINE = 240
MANY = 1234


def skip(why):
    print("api-sdk: %s" % why)
    sys.exit(1 if os.environ.get("CI") else 77)


def enter_venv():
    """Become the interpreter that has the SDK."""
    python = os.path.join(VENV, "bin", "python3")
    done = os.path.join(VENV, "complete-" + SDK)
    if not os.path.exists(done):
        shutil.rmtree(VENV, ignore_errors=True)
        try:
            subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
            subprocess.run([python, "-m", "pip", "-q", "install", SDK],
                           check=True, timeout=300)
        except (OSError, subprocess.SubprocessError) as e:
            shutil.rmtree(VENV, ignore_errors=True)
            skip("%s cannot be installed: %s" % (SDK, e))
        open(done, "w").close()
    if os.environ.get("CDC_IN_VENV") != VENV:
        os.environ["CDC_IN_VENV"] = VENV
        os.execv(python, [python] + sys.argv)


def api(server, token):
    import arvados
    return arvados.api(
        "v1", discoveryServiceUrl="http://127.0.0.1:%d/discovery/v1/apis/"
        "arvados/v1/rest" % server.port, token=token, cache=False,
        num_retries=0)


def refused(call, status):
    from arvados.errors import ApiError
    try:
        call.execute()
    except ApiError as e:
        assert e.resp.status == status, (status, e)
        return str(e)
    raise AssertionError("not refused with %d" % status)


def check_identity(user, dispatcher):
    me = user.users().current().execute()
    assert me["username"] == "alice" and not me["is_admin"]
    token = user.api_client_authorizations().current().execute()
    assert re.fullmatch(r"[a-z0-9]{5}-gj3su-[a-z0-9]{15}", token["uuid"])
    assert dispatcher.users().current().execute()["is_admin"]


def check_request(user):
    body = definition(name="one", properties={"k": "v"},
                      environment={"A": "ü"})
    made = user.container_requests().create(
        body={"container_request": body}).execute()
    assert made["state"] == "Committed" and made["container_count"] == 1
    got = user.container_requests().get(uuid=made["uuid"]).execute()
    assert got == made
    assert got["environment"] == {"A": "ü"}
    flat = user.container_requests().create(body=body).execute()
    assert flat["container_uuid"] != made["container_uuid"]
    up = user.container_requests().update(
        uuid=made["uuid"], body={"container_request": {"priority": 3}}
    ).execute()
    assert up["priority"] == 3
    ctr = user.containers().get(uuid=made["container_uuid"]).execute()
    age = ctr["priority"] - (3 << 50)
    assert -age // 1000 - time.time() < 5, ctr["priority"]
    return made, flat


def check_errors(user, dispatcher, made):
    text = refused(user.container_requests().create(
        body=definition(mounts={"/k": {"kind": "keep"}})), 422)
    assert "keep" in text and "req-" in text, text
    refused(user.container_requests().create(
        body=definition(command=[])), 422)
    refused(user.container_requests().create(
        body=definition(container_image="a/b")), 422)
    refused(user.container_requests().create(body=definition(nope=1)), 422)
    refused(user.containers().lock(uuid=made["container_uuid"]), 403)
    refused(user.containers().get(uuid="zzzzz-dz642-000000000000000"), 404)
    refused(dispatcher.containers().unlock(uuid=made["container_uuid"]), 422)
    refused(user.containers().list(filters=[["nope", "=", 1]]), 422)
    refused(user.containers().list(select=["secret_mounts"]), 422)
    refused(user.containers().list(limit=-1), 422)


def check_dispatch(user, dispatcher, made, flat):
    token = dispatcher.api_client_authorizations().current().execute()
    uuid = made["container_uuid"]
    locked = dispatcher.containers().lock(uuid=uuid).execute()
    assert sorted(locked) == ["auth_uuid", "locked_by_uuid", "priority",
                              "state", "uuid"], locked
    assert locked["locked_by_uuid"] == token["uuid"]
    refused(dispatcher.containers().lock(uuid=uuid), 422)
    auth = dispatcher.containers().auth(uuid=uuid).execute()
    assert auth["uuid"] == locked["auth_uuid"] and auth["api_token"]
    mine = dispatcher.containers().list(
        filters=[["locked_by_uuid", "=", token["uuid"]]], order="uuid",
        limit=1000, count="none",
        select=["uuid", "state", "priority"]).execute()
    assert [i["uuid"] for i in mine["items"]] == [uuid]
    assert "items_available" not in mine
    ran = dispatcher.containers().update(
        uuid=uuid, body={"container": {"state": "Running"}}).execute()
    assert ran["state"] == "Running" and ran["started_at"]
    done = dispatcher.containers().update(
        uuid=uuid, body={"state": "Complete", "exit_code": 3}).execute()
    assert done["state"] == "Complete" and done["exit_code"] == 3
    got = user.container_requests().get(uuid=made["uuid"]).execute()
    assert got["state"] == "Final", got
    again = dispatcher.containers().lock(
        uuid=flat["container_uuid"]).execute()
    assert again["state"] == "Locked"
    back = dispatcher.containers().unlock(
        uuid=flat["container_uuid"]).execute()
    assert back["state"] == "Queued" and back["locked_by_uuid"] is None
    ended = user.container_requests().cancel(uuid=flat["uuid"]).execute()
    assert ended["state"] == "Final" and ended["priority"] == 0, ended


def check_pages(user):
    """More records than a page, many in one millisecond, a tie by hand."""
    import arvados.util
    uuids = set()
    for i in range(MANY):
        uuids.add(user.container_requests().create(body=definition(
            state="Uncommitted", name="page %d" % i)).execute()["uuid"])
    filters = [["name", "like", "page %"]]
    for keys in ({}, {"ascending": False}, {"order_key": "modified_at"},
                 {"order_key": "name", "select": ["uuid", "name"]}):
        seen = [r["uuid"] for r in arvados.util.keyset_list_all(
            user.container_requests().list, filters=filters, **keys)]
        assert len(seen) == MANY and set(seen) == uuids, (keys, len(seen))
    page = user.container_requests().list(
        filters=filters, limit=5000, select=["uuid"]).execute()
    assert page["limit"] == 1000 and page["items_available"] == MANY
    assert sorted(page["items"][0]) == ["kind", "uuid"]
    some = sorted(uuids)[:900]  # beyond 2,048 characters: POST, overridden
    got = user.container_requests().list(
        filters=[["uuid", "in", some]], limit=1000,
        select=["uuid"]).execute()
    assert {r["uuid"] for r in got["items"]} == set(some)
    return uuids


def check_tokens(server, user):
    made = user.api_client_authorizations().create(
        body={"scopes": ["GET /arvados/v1/users/current"]}).execute()
    token = "v2/%s/%s" % (made["uuid"], made["api_token"])
    limited = api(server, token)
    assert limited.users().current().execute()["username"] == "alice"
    refused(limited.containers().list(), 403)
    user.api_client_authorizations().delete(uuid=made["uuid"]).execute()
    refused(limited.users().current(), 401)


def main():
    enter_venv()
    signal.alarm(DEADLINE)
    server = Server()
    try:
        user = api(server, server.user)
        dispatcher = api(server, server.dispatcher)
        check_identity(user, dispatcher)
        made, flat = check_request(user)
        check_errors(user, dispatcher, made)
        check_dispatch(user, dispatcher, made, flat)
        check_tokens(server, user)
        check_pages(user)
    except BaseException:
        print(server.log()[-3000:])
        raise
    finally:
        code = server.close()
    assert code == 0, "the server ended with %d" % code
    print("api-sdk: all passed")


main()
