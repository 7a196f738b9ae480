/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that nobody read. The walk over a cluster's tree knows three kinds:
 * rows of the settings table, sections that belong to other Arvados programs
 * (skipped silently: a site has one file for all), and keys nobody knows, for
 * which it offers the spelling that was probably meant. Where other programs
 * read parts of a section too, an unknown key in it may be theirs and is
 * passed over. Only warns.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/conf/conf_priv.h"

/* Sections and keys of the same file that other programs read. */
static const char *const foreign[] = {
    "AuditLogs", "Collections", "Git", "Login", "Mail", "Policies",
    "PostgreSQL", "RemoteClusters", "StorageClasses", "Users", "Volumes",
    "Workbench", "BlobSigningKey", "Collections.BlobSigningKey",
    "Containers.Logging", "Containers.LSF", "Containers.SLURM",
    "Containers.ShellAccess", "Containers.JobsAPI",
    "Containers.CrunchRunCommandDefault", "Containers.LogReuseDecisions",
    "Containers.MaxComputeVMs", "Containers.MaxRetryAttemptsDefault",
    "Containers.SupportedDockerImageFormats",
    "Containers.CloudVMs.SharedResourceTags",
    "InstanceTypes", "Services", "TLS", "API", "SystemLogs", NULL
};

/* 0: nobody knows path; 1: a section that holds known keys; 2: known, do not
 * look inside. */
static int known(const char *path)
{
    size_t len = strlen(path), n;
    const struct conf_row *rows = conf_rows(&n);
    int best = 0;

    for (size_t i = 0; i < n; i++) {
        if (!strcmp(rows[i].key, path))
            return 2;
        if (!strncmp(rows[i].key, path, len) && rows[i].key[len] == '.')
            best = 1;
    }
    for (size_t i = 0; !best && foreign[i]; i++)
        if (!strcmp(foreign[i], path))
            return 2;
    if (!strcmp(path, "Containers.MaxRunningContainersPerInstance"))
        return 2;
    return best;
}

/* A key that differs in case only is the usual slip. */
static const char *suggestion(const char *path)
{
    size_t n;
    const struct conf_row *rows = conf_rows(&n);

    for (size_t i = 0; i < n; i++)
        if (!strcasecmp(rows[i].key, path))
            return rows[i].key;
    return NULL;
}

static bool only_ours_below(const char *path)
{
    /* Of these sections other programs read parts too. */
    return !strcmp(path, "Containers.CloudVMs") || !strcmp(path, "APIServer");
}

void conf_warn_unknown(const struct conf_loader *l, const struct ytree *map,
                       const char *prefix)
{
    for (size_t i = 0; i < map->n; i++) {
        char path[256];
        const char *hint;
        int k;

        snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "",
                 map->v[i]->key);
        k = known(path);
        if (k == 1 && map->v[i]->kind == YTREE_MAP)
            conf_warn_unknown(l, map->v[i], path);
        if (k)
            continue;
        hint = suggestion(path);
        if (hint)
            conf_warn(l, map->v[i], "%s: ignored; did you mean %s?", path,
                      hint);
        else if (!*prefix || only_ours_below(prefix))
            conf_warn(l, map->v[i], "%s: unknown key, ignored", path);
    }
}
