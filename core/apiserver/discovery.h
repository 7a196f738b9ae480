/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_APISERVER_DISCOVERY_H
#define CORE_APISERVER_DISCOVERY_H

/*
 * The discovery document, from which Arvados' SDKs build their methods
 * (source: Google API discovery format, as Arvados serves it).
 */

struct app_cfg;

/* url: where clients reach us, without a trailing slash. For the caller to
 * free. */
char *discovery_make(const struct app_cfg *cfg, const char *url);

#endif
