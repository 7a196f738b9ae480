/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of the API server that only measures: blocking sockets, one thread
 * for each client, requests written by hand.
 *
 *   apibench PORT TOKEN load N             N containers, priorities 1..N
 *   apibench PORT TOKEN pairs N SECONDS    lock + unlock, over N containers
 *   apibench PORT TOKEN hello SECONDS      the smallest authenticated request
 *   apibench PORT TOKEN page N WHERE       first | last keyset page of 100
 *   apibench - FILE floor SECONDS          SQLite alone, see floor()
 *
 * One line of JSON on standard output. Any unexpected answer ends it.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 8, REPLY_MAX = 4 << 20, PAGE = 100, ROUNDS = 200 };

static int port;
static const char *token;
static long total;
static double seconds;
static char (*uuids)[28];

static void die(const char *what, const char *text)
{
    fprintf(stderr, "apibench: %s: %.300s\n", what, text);
    exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

/* ---------------------------------------------------------------- HTTP -- */

struct client {
    int fd;
    int number;
    char *reply;
    size_t len;
    long done;
};

static void client_open(struct client *c)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t) port)};
    int one = 1;

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->reply = malloc(REPLY_MAX);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (!c->reply || c->fd < 0 ||
        connect(c->fd, (struct sockaddr *) &a, sizeof a) < 0)
        die("connect", "refused");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void client_close(struct client *c)
{
    close(c->fd);
    free(c->reply);
}

static size_t whole(const char *reply, size_t len)
{
    const char *end = memmem(reply, len, "\r\n\r\n", 4);
    const char *length = memmem(reply, len, "Content-Length: ", 16);

    if (!end)
        return 0;
    if (!length || length > end)
        die("reply without a length", reply);
    return (size_t) (end + 4 - reply) + strtoul(length + 16, NULL, 10);
}

/* The body of a 200; any other status ends the program. */
static const char *ask(struct client *c, const char *method, const char *path,
                       const char *body)
{
    char head[4096];
    size_t want = 0;
    int n = snprintf(head, sizeof head,
                     "%s /arvados/v1/%s HTTP/1.1\r\nHost: b\r\n"
                     "Authorization: Bearer %s\r\n"
                     "Content-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n%s",
                     method, path, token, strlen(body), body);

    if (write(c->fd, head, (size_t) n) != n)
        die("write", path);
    c->len = 0;
    while (want == 0 || c->len < want) {
        ssize_t got = read(c->fd, c->reply + c->len, REPLY_MAX - 1 - c->len);
        if (got <= 0)
            die("read", path);
        c->len += (size_t) got;
        c->reply[c->len] = '\0';
        want = whole(c->reply, c->len);
    }
    if (strncmp(c->reply, "HTTP/1.1 200", 12) != 0)
        die(path, c->reply);
    return strstr(c->reply, "\r\n\r\n") + 4;
}

/* ------------------------------------------------------------- clients -- */

static void *load(void *arg)
{
    struct client *c = arg;
    char body[512];

    client_open(c);
    for (long i = c->number; i < total; i += CLIENTS) {
        snprintf(body, sizeof body,
                 "{\"container\":{\"command\":[\"true\"],"
                 "\"container_image\":\"host\",\"output_path\":\"/out\","
                 "\"mounts\":{\"/out\":{\"kind\":\"tmp\",\"capacity\":1}},"
                 "\"runtime_constraints\":{\"vcpus\":1,\"ram\":1048576},"
                 "\"priority\":%ld}}", i + 1);
        ask(c, "POST", "containers?select=%5B%22uuid%22%5D", body);
        c->done++;
    }
    client_close(c);
    return NULL;
}

/* Each client has containers of its own: what is measured is the server, not
 * a race. */
static void *pairs(void *arg)
{
    struct client *c = arg;
    double end = now() + seconds;
    char path[64];

    client_open(c);
    for (long i = c->number; now() < end; i += CLIENTS) {
        const char *uuid = uuids[i % total];
        snprintf(path, sizeof path, "containers/%s/lock", uuid);
        ask(c, "POST", path, "");
        snprintf(path, sizeof path, "containers/%s/unlock", uuid);
        ask(c, "POST", path, "");
        c->done++;
    }
    client_close(c);
    return NULL;
}

static void *hello(void *arg)
{
    struct client *c = arg;
    double end = now() + seconds;

    client_open(c);
    while (now() < end) {
        ask(c, "GET", "users/current", "");
        c->done++;
    }
    client_close(c);
    return NULL;
}

static void run_clients(void *(*work)(void *), const char *name)
{
    struct client c[CLIENTS] = {0};
    pthread_t threads[CLIENTS];
    double start = now(), took;
    long sum = 0;

    for (int i = 0; i < CLIENTS; i++) {
        c[i].number = i;
        if (pthread_create(&threads[i], NULL, work, &c[i]) != 0)
            die("thread", name);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        sum += c[i].done;
    }
    took = now() - start;
    printf("{\"%s\": %.1f, \"count\": %ld, \"seconds\": %.2f}\n", name,
           (double) sum / took, sum, took);
}

/* --------------------------------------------------------------- pages -- */

#define SELECT "%5B%22uuid%22,%22state%22,%22priority%22,"                    \
    "%22runtime_constraints%22,%22container_image%22,"                        \
    "%22scheduling_parameters%22,%22created_at%22%5D"
#define QUEUED "%5B%22state%22,%22%3D%22,%22Queued%22%5D,"                    \
    "%5B%22priority%22,%22%3E%22,%220%22%5D"
#define ORDER "%5B%22priority%20desc%22,%22uuid%22%5D"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

/* The last page begins below the priority of item N - PAGE. */
static void page(bool last)
{
    struct client c = {0};
    double t[ROUNDS];
    char path[1024], below[64] = "";
    size_t n;

    if (last)
        snprintf(below, sizeof below,
                 ",%%5B%%22priority%%22,%%22%%3C%%22,%d%%5D", PAGE + 1);
    snprintf(path, sizeof path,
             "containers?count=none&limit=%d&order=%s&select=%s"
             "&filters=%%5B%s%s%%5D", PAGE, ORDER, SELECT, QUEUED, below);
    client_open(&c);
    for (int i = 0; i < ROUNDS; i++) {
        double start = now();
        const char *body = ask(&c, "GET", path, "");
        t[i] = now() - start;
        for (n = 0; (body = strstr(body, "\"uuid\":")); n++)
            body++;
        if (n != PAGE)
            die("page", "has not 100 items");
    }
    client_close(&c);
    qsort(t, ROUNDS, sizeof t[0], by_value);
    printf("{\"page_us\": %.0f, \"p99_us\": %.0f}\n", t[ROUNDS / 2] * 1e6,
           t[ROUNDS - 3] * 1e6);
}

/* The uuids of the whole queue, page by page. */
static void read_uuids(void)
{
    struct client c = {0};
    char path[1024], last[28] = "";
    long n = 0;

    uuids = calloc((size_t) total, sizeof *uuids);
    if (!uuids)
        die("memory", "none");
    client_open(&c);
    while (n < total) {
        snprintf(path, sizeof path,
                 "containers?count=none&limit=1000&order=uuid&select="
                 "%%5B%%22uuid%%22%%5D&filters="
                 "%%5B%%5B%%22uuid%%22,%%22%%3E%%22,%%22%s%%22%%5D%%5D", last);
        const char *body = ask(&c, "GET", path, "");
        long before = n;
        while (n < total && (body = strstr(body, "\"uuid\":\""))) {
            body += 8;
            snprintf(uuids[n], sizeof uuids[n], "%.27s", body);
            snprintf(last, sizeof last, "%s", uuids[n++]);
        }
        if (n == before)
            die("uuids", "too few containers");
    }
    client_close(&c);
}

/* --------------------------------------------------------------- floor -- */

static void exec_sql(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        die(sql, sqlite3_errmsg(db));
}

/*
 * What no server on this file system and library can beat: two updates of one
 * indexed column for each pair, 8 updates (one of each client) a commit, WAL,
 * synchronous=FULL, no HTTP, no tokens, no records.
 */
static void floor_rate(const char *file)
{
    double start, end;
    sqlite3_stmt *s;
    sqlite3 *db;
    long n = 0;

    if (sqlite3_open(file, &db) != SQLITE_OK)
        die(file, "cannot open");
    exec_sql(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                 "PRAGMA wal_autocheckpoint = 4096;"
                 "CREATE TABLE t (id INTEGER PRIMARY KEY, state TEXT,"
                 " pad TEXT) STRICT; CREATE INDEX i ON t (state, id);"
                 "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1"
                 " FROM c WHERE x < 100000) INSERT INTO t"
                 " SELECT x, 'Queued', hex(zeroblob(400)) FROM c");
    sqlite3_prepare_v2(db, "UPDATE t SET state = ? WHERE id = ?", -1, &s,
                       NULL);
    for (start = now(), end = start + seconds; now() < end; n++) {
        exec_sql(db, "BEGIN IMMEDIATE");
        for (int i = 0; i < CLIENTS; i++) {
            sqlite3_bind_text(s, 1, n % 2 ? "Queued" : "Locked", -1,
                              SQLITE_STATIC);
            sqlite3_bind_int64(s, 2, (n / 2 * CLIENTS + i) * 7919 % 100000);
            sqlite3_step(s);
            sqlite3_reset(s);
        }
        exec_sql(db, "COMMIT");
    }
    printf("{\"pairs\": %.1f, \"commits\": %ld}\n",
           (double) n * CLIENTS / 2 / (now() - start), n);
    sqlite3_finalize(s);
    sqlite3_close(db);
}

int main(int argc, char **argv)
{
    const char *what = argc > 3 ? argv[3] : "";

    if (argc < 4)
        die("usage", "apibench PORT TOKEN WHAT ...");
    port = atoi(argv[1]);
    token = argv[2];
    total = argc > 4 ? atol(argv[4]) : 0;
    seconds = atof(argv[argc - 1]);
    if (strcmp(what, "load") == 0) {
        run_clients(load, "creates");
    } else if (strcmp(what, "hello") == 0) {
        run_clients(hello, "requests");
    } else if (strcmp(what, "pairs") == 0) {
        read_uuids();
        run_clients(pairs, "pairs");
        free(uuids);
    } else if (strcmp(what, "page") == 0) {
        page(strcmp(argv[argc - 1], "last") == 0);
    } else if (strcmp(what, "floor") == 0) {
        floor_rate(token);
    } else {
        die("unknown", what);
    }
    return 0;
}
