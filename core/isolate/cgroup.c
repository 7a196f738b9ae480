/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup.c: finding the trees of control groups, and naming groups in them.
 *
 * Where a controller is cannot be assumed: v1 hierarchies may be mounted
 * anywhere, alone or several together ("cpu,cpuacct"); a system may be v1,
 * v2 or hybrid; in a container only a part of the tree is visible, and the
 * mount shows a directory that /proc/self/cgroup calls "/docker/...". The
 * truth is in /proc/self/mountinfo (proc(5)): file system type, super options
 * (the controllers of a v1 hierarchy) and the root field (which group the
 * mount point is). From that and /proc/self/cgroup follow two struct cgroup:
 * the top group that we can see, and the one we are in.
 *
 * The parsing is pure. cgroup_make.c makes and limits groups, cgroup_kill.c
 * freezes and kills, cgroup_stat.c reads numbers. Any thread.
 */

#include "core/isolate/cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/text.h"
#include "core/isolate/cgroup_fs.h"
#include "core/isolate/sysfile.h"

enum { MOUNTINFO_MAX = 4 << 20, FIELD_SIZE = 512 };

static const char *const v1_names[] = {
#define X(name, v1, use) [CGROUP_##name] = v1,
    CGROUP_TREES(X)
#undef X
};

const char *cgroup_tree_name(enum cgroup_tree tree)
{
    return tree == CGROUP_UNIFIED ? "unified" : v1_names[tree];
}

int cgroup_version(const struct cgroup *cg)
{
    static const enum cgroup_tree limiting[] = {CGROUP_MEMORY, CGROUP_CPU,
                                                CGROUP_PIDS};
    int version = 0;
    size_t i;

    for (i = 0; i < MEM_COUNT(limiting); i++) {
        if (!cg->dir[limiting[i]][0])
            continue;
        if (!(cg->v2 & 1U << limiting[i]))
            return 1;
        version = 2;
    }
    return version;
}

/* --- words --------------------------------------------------------------- */

static bool has_word(const char *list, const char *word, const char *between)
{
    size_t want = strlen(word);

    while (*list) {
        size_t n = strcspn(list, between);
        if (n == want && memcmp(list, word, n) == 0)
            return true;
        list += n;
        list += strspn(list, between);
    }
    return false;
}

bool cgroup_has_word(const char *list, const char *word)
{
    return has_word(list, word, " \n");
}

/* --- mountinfo ----------------------------------------------------------- */

struct line {
    char root[FIELD_SIZE];    /* which group is mounted */
    char point[FIELD_SIZE];   /* where */
    char type[32];
    char options[FIELD_SIZE]; /* of the super block */
};

/* Fields have blanks and backslashes as \ooo. */
static void unescape(char *s)
{
    char *to = s;

    for (; *s; s++) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' &&
            s[2] <= '7' && s[3] >= '0' && s[3] <= '7') {
            *to++ = (char) ((s[1] - '0') * 64 + (s[2] - '0') * 8 +
                            (s[3] - '0'));
            s += 3;
        } else {
            *to++ = *s;
        }
    }
    *to = '\0';
}

/* 36 35 98:0 ROOT POINT opts [optional ...] - TYPE source OPTIONS */
static bool parse_line(const char *s, struct line *ret)
{
    const char *dash = strstr(s, " - "), *end = strchr(s, '\n');

    if (!dash || (end && dash > end))
        return false;
    if (sscanf(s, "%*d %*d %*s %511s %511s", ret->root, ret->point) != 2)
        return false;
    if (sscanf(dash, " - %31s %*s %511s", ret->type, ret->options) != 2)
        return false;
    unescape(ret->root);
    unescape(ret->point);
    return true;
}

/*
 * The line of the hierarchy with this controller ("" = the v2 tree). Several
 * mounts of one hierarchy: the one that shows most of it, a whole one first.
 */
static bool find_line(const char *mountinfo, const char *controller,
                      struct line *ret)
{
    const char *type = *controller ? "cgroup" : "cgroup2";
    bool found = false;
    struct line l;

    while (mountinfo && *mountinfo) {
        if (parse_line(mountinfo, &l) && strcmp(l.type, type) == 0 &&
            (!*controller || has_word(l.options, controller, ",")) &&
            (!found || strlen(l.root) < strlen(ret->root))) {
            *ret = l;
            found = true;
        }
        mountinfo = strchr(mountinfo, '\n');
        if (mountinfo)
            mountinfo++;
    }
    return found;
}

/* --- /proc/PID/cgroup ---------------------------------------------------- */

/* The path in a line "4:memory:/path" of that controller; NULL = none. */
static char *self_path(const char *self, const char *controller)
{
    while (self && *self) {
        const char *names = strchr(self, ':');
        const char *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            return NULL;
        CLEANUP(mem_free) char *list =
            mem_strndup(names + 1, (size_t) (path - names - 1));
        if (*controller ? has_word(list, controller, ",") : !*list)
            return mem_strndup(path + 1, strcspn(path + 1, "\n"));
        self = strchr(path, '\n');
        if (self)
            self++;
    }
    return NULL;
}

/* The directory of our own group, or the mount point where the mount does
 * not show it. false: too long. */
static bool join(const struct line *l, const char *path, char *out)
{
    size_t n = strcmp(l->root, "/") == 0 ? 0 : strlen(l->root);

    if (!path || strncmp(path, l->root, n) != 0 ||
        (path[n] != '/' && path[n] != '\0') || strcmp(path + n, "/") == 0)
        path = "";
    else
        path += n;
    return (size_t) snprintf(out, CGROUP_DIR_SIZE, "%s%s", l->point, path) <
           CGROUP_DIR_SIZE;
}

/* What the v2 tree gives where v1 has not given it. CPU time and freezing
 * need no controller there. */
static void add_v2(struct cgroup *cg, const char *controllers)
{
    int t;

    for (t = 0; t < CGROUP_UNIFIED; t++) {
        bool core = t == CGROUP_CPUACCT || t == CGROUP_FREEZER;
        if (cg->dir[t][0] || t == CGROUP_SYSTEMD ||
            (!core && !cgroup_has_word(controllers, v1_names[t])))
            continue;
        text_copy(cg->dir[t], cg->dir[CGROUP_UNIFIED], CGROUP_DIR_SIZE);
        cg->v2 |= 1U << t;
    }
}

void cgroup_parse(const char *mountinfo, const char *self,
                  const char *controllers, struct cgroup *ret)
{
    struct line l;
    int t;

    memset(ret, 0, sizeof *ret);
    for (t = 0; t < CGROUP_TREE_COUNT; t++) {
        CLEANUP(mem_free) char *path = self_path(self, v1_names[t]);
        if (!find_line(mountinfo, v1_names[t], &l) ||
            !join(&l, path, ret->dir[t]))
            ret->dir[t][0] = '\0';
    }
    if (!ret->dir[CGROUP_UNIFIED][0])
        return;
    ret->v2 = 1U << CGROUP_UNIFIED;
    add_v2(ret, controllers);
}

void cgroup_parse_unified(const char *mountinfo, char *out, size_t size)
{
    struct line l;

    text_copy(out, find_line(mountinfo, "", &l) ? l.point : "", size);
}

/* --- finding ------------------------------------------------------------- */

static void read_controllers(const char *dir, char *out, size_t size)
{
    char path[CGROUP_FILE_SIZE];

    out[0] = '\0';
    if (!*dir)
        return;
    snprintf(path, sizeof path, "%s/cgroup.controllers", dir);
    sysfile_read(path, out, size);
}

void cgroup_find(struct cgroup *ret)
{
    CLEANUP(mem_free) char *info =
        sysfile_read_all("/proc/self/mountinfo", MOUNTINFO_MAX, NULL);
    char controllers[512];

    memset(ret, 0, sizeof *ret);
    if (!info)
        return;
    cgroup_parse(info, NULL, "", ret);
    read_controllers(ret->dir[CGROUP_UNIFIED], controllers,
                     sizeof controllers);
    cgroup_parse(info, NULL, controllers, ret);
}

/* --- from known directories ---------------------------------------------- */

static int check_dir(const char *dir, struct err *err)
{
    if (dir[0] != '/' || strlen(dir) >= CGROUP_DIR_SIZE)
        return err_set(err, ERR_INVALID, "cgroup directory %.64s", dir);
    return 0;
}

int cgroup_set_v1(struct cgroup *cg, enum cgroup_tree tree, const char *dir,
                  struct err *err)
{
    if (check_dir(dir, err) < 0)
        return -1;
    text_copy(cg->dir[tree], dir, CGROUP_DIR_SIZE);
    cg->v2 &= ~(1U << tree);
    return 0;
}

int cgroup_set_v2(struct cgroup *cg, const char *dir, struct err *err)
{
    char controllers[512];

    if (check_dir(dir, err) < 0)
        return -1;
    text_copy(cg->dir[CGROUP_UNIFIED], dir, CGROUP_DIR_SIZE);
    cg->v2 |= 1U << CGROUP_UNIFIED;
    read_controllers(dir, controllers, sizeof controllers);
    add_v2(cg, controllers);
    return 0;
}

/* --- names --------------------------------------------------------------- */

static bool valid_name(const char *name)
{
    do {
        size_t n = strcspn(name, "/");
        if (n == 0 || (n <= 2 && strspn(name, ".") >= n))
            return false;
        name += n;
    } while (*name++ == '/');
    return true;
}

int cgroup_child(const struct cgroup *parent, const char *name,
                 struct cgroup *ret, struct err *err)
{
    struct cgroup cg = {.v2 = parent->v2};
    int t;

    if (!valid_name(name))
        return err_set(err, ERR_INVALID, "\"%.64s\" names no group", name);
    for (t = 0; t < CGROUP_TREE_COUNT; t++)
        if (parent->dir[t][0] &&
            (size_t) snprintf(cg.dir[t], CGROUP_DIR_SIZE, "%s/%s",
                              parent->dir[t], name) >= CGROUP_DIR_SIZE)
            return err_set(err, ERR_INVALID, "group name %.64s... is too long",
                           name);
    *ret = cg;
    return 0;
}

bool cgroup_file(const struct cgroup *cg, enum cgroup_tree tree,
                 const char *name, char out[CGROUP_FILE_SIZE])
{
    if (!cg->dir[tree][0])
        return false;
    snprintf(out, CGROUP_FILE_SIZE, "%s/%s", cg->dir[tree], name);
    return true;
}

bool cgroup_is_first(const struct cgroup *cg, enum cgroup_tree tree)
{
    int t;

    if (!cg->dir[tree][0])
        return false;
    for (t = 0; t < (int) tree; t++)
        if (strcmp(cg->dir[t], cg->dir[tree]) == 0)
            return false;
    return true;
}

bool cgroup_exists(const struct cgroup *cg)
{
    int t;

    for (t = 0; t < CGROUP_TREE_COUNT; t++)
        if (cg->dir[t][0] && access(cg->dir[t], F_OK) == 0)
            return true;
    return false;
}
