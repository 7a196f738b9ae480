/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CTL_HELP_H
#define CORE_CTL_HELP_H

/* Help and the verbs' part of crunchctl(1), from the verb table. */

struct verb;

void help_all(void);
void help_verb(const struct verb *verb);
void help_man(void); /* roff */

#endif
