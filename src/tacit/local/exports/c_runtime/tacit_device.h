/* A Tacit device in C99: one series in, one randomised symbol out.
 *
 * Guarantee: tacit_release and tacit_randomize are epsilon-locally differentially private when the
 * whole series is replaced, with the epsilon of TACIT_GUARANTEE: everything before the channel is a
 * function of the series, and the channel is sampled in whole numbers of 2^-62.
 * Assumes: the callback gives uniform, independent, secret bytes.
 * Composes: releases about one series add up; this code keeps no account of them.
 * Not covered: whether and when a release is sent, how long it takes to compute, and whoever can
 * read the memory of the device.
 *
 * No allocation, no global state: all memory is in tacit_memory, which the caller provides and may
 * reuse. Several threads need one each. Features equal those of golden.json bit for bit where float
 * is IEEE binary32 and products are rounded before they are added (gcc -std=c99, -ffp-contract=off).
 */
#ifndef TACIT_DEVICE_H
#define TACIT_DEVICE_H

#include <stddef.h>

#include "tacit_model.h"

enum {
    TACIT_OK = 0,
    TACIT_WRONG_SHAPE,  /* not TACIT_CHANNELS channels of TACIT_STEPS steps */
    TACIT_NOT_FINITE,   /* a value is missing or infinite */
    TACIT_TOO_LARGE,    /* a value is beyond 1e12 */
    TACIT_CONSTANT,     /* no channel ever changes */
    TACIT_NO_RANDOMNESS /* the callback failed, or there is none */
};

/* Fills `bytes` from a cryptographic generator and returns 0; anything else refuses the release. */
typedef int (*tacit_random)(void *context, unsigned char *bytes, size_t count);

typedef struct {
    float level[TACIT_CHANNELS][TACIT_STEPS + 2 * TACIT_PADDING];
    float response[TACIT_GROUP][TACIT_STEPS];
    float highest[TACIT_STEPS];
    float lowest[TACIT_STEPS];
    double scores[TACIT_CLASSES];
    double left[TACIT_CLASSES];
} tacit_memory;

/* Release one series: `series` holds n_channels runs of n_steps values. On success *symbol is what
 * may leave; on any other return it is -1 and no randomness was used for it. */
int tacit_release(tacit_memory *memory, const double *series, size_t n_channels, size_t n_steps,
                  tacit_random random, void *context, int *symbol);

/* A symbol as the JSON that 'tacit classify' and 'tacit send' read, with a random id that tells a
 * copy from another release: make it once for a release and keep it. Returns the length as snprintf
 * does, or -1 without randomness. */
int tacit_release_json(int symbol, tacit_random random, void *context, char *text, size_t size);

/* What the server makes of a symbol: the number of its class, the number of its place. */
int tacit_class_of(int symbol);
int tacit_place_of(int symbol);

/* One sentence for a return value. */
const char *tacit_message(int code);

/* For tests and golden vectors. Both results are private: never send them.
 * `features` has TACIT_FEATURES values, or is a null pointer. */
int tacit_private_symbol(tacit_memory *memory, const double *series, size_t n_channels,
                         size_t n_steps, float *features, int *symbol);

/* The channel alone: what leaves for a private symbol. */
int tacit_randomize(int private_symbol, tacit_random random, void *context, int *symbol);

#endif
