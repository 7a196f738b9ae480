/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SIM_VM_H
#define CORE_SIM_VM_H

/*
 * The inside of an instance: sshd's view of it (up, stopped, cut off, dead),
 * files, and a model of crunch-run with its payloads.
 *
 * A process of crunch-run asks the API server before its payload starts, and
 * starts it only after the acknowledgement; it reports the final state after
 * its payload is dead, and holds its lock until then. Commands arrive as the
 * text that the dispatcher wrote (vm_cmd.c understands it).
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/sim/world.h"

struct sim_ctr;
struct sim_stream;
struct sim_vm;

enum sim_phase {
    SIM_PROC_ASKING,  /* lock held, payload not started */
    SIM_PROC_RUNNING, /* payload alive */
    SIM_PROC_ENDING,  /* payload dead, final state not written yet */
    SIM_PROC_STALE    /* runner dead, payload tree alive */
};

struct sim_proc {
    struct sim_machine *machine;
    struct sim_ctr *ctr;
    char uuid[28];
    char token[64];
    int64_t attempt;
    size_t start; /* index in ctr->starts */
    int pid;
    enum sim_phase phase;
    bool killed;             /* told to end before its time */
    bool crash_late;         /* the runner will die under the payload */
    int64_t ignore_us;       /* the payload lives on so long after TERM */
    int64_t give_up_us;      /* the final write is given up then */
    struct sim_event *next;  /* of the phase */
    struct sim_event *beat;  /* write of the log */
    struct sim_event *death; /* after TERM */
};

struct sim_file {
    char *path;
    bool runner; /* the very bytes of the runner */
};

struct sim_machine {
    struct sim_net *net;
    struct sim_vm *vm;
    struct sim_rng rng;
    char user[32];
    char host_key[80];
    int64_t vcpus, ram, scratch; /* what its type offers; 0 = not checked */
    int64_t boot_us;             /* sshd is up from here; INT64_MAX: never */
    int64_t ready_us;            /* the boot probe succeeds from here */
    bool halted;
    int boots;             /* how often it was started */
    bool impostor;         /* another machine answers at its address */
    int64_t hung_until_us; /* sshd and its sessions are stopped */
    int64_t cut_until_us;  /* nothing in or out */
    bool broken;           /* has marked itself broken */
    bool unkillable;       /* a payload outlived TERM by long, or was stale */
    bool operator_kill;    /* an operator asked for its end */
    int64_t contact_us;    /* the dispatcher last heard something good */
    int64_t excused_us;    /* ... after a long silence: until when that may
                            * still have consequences */
    int next_pid;
    VEC(struct sim_file) files;
    VEC(struct sim_proc *) procs;
    VEC(struct sim_stream *) streams;
};

struct sim_machine *sim_machine_create(struct sim_net *n, struct sim_vm *vm,
                                       int64_t boot_us);
void sim_machine_destroy(struct sim_machine *m);

/* The dispatcher hears something good of it. */
void sim_machine_contact(struct sim_machine *m);
/* It was silent for as long as the dispatcher must bear, now or just now. */
bool sim_machine_lost(const struct sim_machine *m);

bool sim_machine_up(const struct sim_machine *m);
/* Commands and streams get no answer now; when they will again. */
bool sim_machine_silent(const struct sim_machine *m);
int64_t sim_machine_thaw_us(const struct sim_machine *m);

/* Everything on it dies, sessions time out. */
void sim_machine_halt(struct sim_machine *m);
/* sshd and its sessions stop (SIGSTOP) for so long. */
void sim_machine_hang(struct sim_machine *m, int64_t for_us);
void sim_machine_cut(struct sim_machine *m, int64_t for_us);
void sim_machine_break(struct sim_machine *m);
/* It starts anew: no process and no deployed file survives, nor does anything
 * that was accepted before. */
void sim_machine_reboot(struct sim_machine *m);

/* A watch stream begins: hello, runs, sync. */
void sim_machine_watch(struct sim_machine *m, struct sim_stream *s);

struct sim_proc *sim_machine_proc(struct sim_machine *m, const char *uuid);
/* The dispatcher is told this text: each process named in it is known to it
 * from now on. */
void sim_machine_told(struct sim_machine *m, const char *text);
/* Start command executed: 0, or 1 with a text when the lock is held. */
int sim_proc_start(struct sim_machine *m, struct sim_ctr *c, const char *token,
                   int64_t attempt, size_t start);
/* TERM to the runner. */
void sim_proc_term(struct sim_proc *p);

#endif
