/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_BASE_VEC_H
#define CORE_BASE_VEC_H

/*
 * Typed vectors: `VEC(struct x *) xs = {0};` then xs.v[i] for i < xs.n.
 * Zero-initialised is empty. Elements are moved by memmove, so an element
 * must not contain pointers into itself. Not for sizes chosen by a peer.
 */

#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"

#define VEC(T)                                                                \
    struct {                                                                  \
        T *v;                                                                 \
        size_t n;                                                             \
        size_t cap;                                                           \
    }

#define VEC_GROW(a)                                                           \
    do {                                                                      \
        if ((a)->n == (a)->cap) {                                             \
            (a)->cap = (a)->cap ? 2 * (a)->cap : 8;                           \
            (a)->v = mem_realloc((a)->v, (a)->cap, sizeof *(a)->v);           \
        }                                                                     \
    } while (0)

/* Append one element (an expression; evaluated once). */
#define VEC_PUSH(a, ...)                                                      \
    do {                                                                      \
        VEC_GROW(a);                                                          \
        (a)->v[(a)->n++] = (__VA_ARGS__);                                     \
    } while (0)

/* Insert before index i. */
#define VEC_INSERT(a, i, ...)                                                 \
    do {                                                                      \
        size_t vec_i = (i);                                                   \
        VEC_GROW(a);                                                          \
        memmove((a)->v + vec_i + 1, (a)->v + vec_i,                           \
                ((a)->n - vec_i) * sizeof *(a)->v);                           \
        (a)->v[vec_i] = (__VA_ARGS__);                                        \
        (a)->n++;                                                             \
    } while (0)

/* Remove element i, order kept. */
#define VEC_REMOVE(a, i)                                                      \
    do {                                                                      \
        size_t vec_i = (i);                                                   \
        memmove((a)->v + vec_i, (a)->v + vec_i + 1,                           \
                ((a)->n - vec_i - 1) * sizeof *(a)->v);                       \
        (a)->n--;                                                             \
    } while (0)

#define VEC_CLEAR(a) ((a)->n = 0)

/* Free the array (not what the elements point to) and make it empty. */
#define VEC_FINI(a)                                                           \
    do {                                                                      \
        free((a)->v);                                                         \
        (a)->v = NULL;                                                        \
        (a)->n = (a)->cap = 0;                                                \
    } while (0)

#endif
