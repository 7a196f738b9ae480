/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SIM_VM_IMPL_H
#define CORE_SIM_VM_IMPL_H

/* Between net.c, vm.c, vm_proc.c, vm_watch.c and vm_cmd.c. */

#include "core/base/buf.h"
#include "core/sim/net.h"
#include "core/sim/op.h"
#include "core/sim/vm.h"

/* --- vm_cmd.c: what a command line means ----------------------------- */

enum sim_cmd {
    SIM_CMD_OTHER, /* not understood: exit 127 */
    SIM_CMD_BOOT,  /* the boot probe */
    SIM_CMD_MD5,   /* checksum of the deployed runner */
    SIM_CMD_DEPLOY,
    SIM_CMD_IDENTITY, /* read the instance secret */
    SIM_CMD_START,
    SIM_CMD_LIST,
    SIM_CMD_KILL,
    SIM_CMD_WATCH
};

struct sim_command {
    enum sim_cmd kind;
    char path[320]; /* of the runner */
    char uuid[28];
};

void sim_command_parse(const struct sim_net *n, const char *text,
                       struct sim_command *ret);
/* The token in a start command's stdin; "" when there is none. */
void sim_command_token(const char *input, size_t n, char *out, size_t size);

/* What a command answers at once; KILL and START are not among them. */
void sim_command_answer(struct sim_machine *m, const struct sim_command *cmd,
                        const void *input, size_t n, int *code,
                        struct buf *out);
/* Is the runner there? */
bool sim_machine_has_runner(const struct sim_machine *m, const char *path);

/* --- vm_watch.c: the streams ----------------------------------------- */

struct sim_stream {
    struct op op;
    struct exec_session *session;
    struct sim_machine *machine;
    char *command;
    bool open;         /* registered at the machine */
    VEC(char *) lines; /* not delivered yet */
    struct sim_event *pump;
    struct sim_event *beat;
    void (*on_line)(void *arg, const char *line, size_t n);
    void (*end)(void *arg, const struct op_result *r);
    void *arg;
};

struct op *sim_stream_create(struct exec_session *s, const char *command,
                             void (*on_line)(void *arg, const char *line,
                                             size_t n),
                             void (*end)(void *arg, const struct op_result *r),
                             void *arg);
/* Nothing is delivered any more (its session is over). */
void sim_stream_detach(struct sim_stream *s);
bool sim_op_is_stream(const struct op *op);
/* An event {event, uuid, attempt, pid} on all streams of the machine. */
void sim_watch_event(struct sim_machine *m, const char *event,
                     const struct sim_proc *p);
void sim_watch_close_all(struct sim_machine *m);

/* --- vm_proc.c ------------------------------------------------------- */

/* The machine halts: no trace of the process is left, nothing is written. */
void sim_proc_vanish(struct sim_proc *p);

/* --- net.c ----------------------------------------------------------- */

void sim_session_forget(struct exec_session *s, struct op *op);

#endif
