/* See tacit_device.h. The order of every sum is fixed, so that devices agree to the bit. */
#include "tacit_device.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "tacit_weights.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define TAPS 9
#define HALF 4
#define HUGE_VALUE 1e12
#define ID_BYTES 16

static int check_series(const double *series, size_t n_channels, size_t n_steps)
{
    size_t i, c;
    int constant = 1;
    if (series == NULL || n_channels != TACIT_CHANNELS || n_steps != TACIT_STEPS)
        return TACIT_WRONG_SHAPE;
    for (i = 0; i < n_channels * n_steps; i++)
        if (!isfinite(series[i]))
            return TACIT_NOT_FINITE;
    for (i = 0; i < n_channels * n_steps; i++)
        if (fabs(series[i]) > HUGE_VALUE)
            return TACIT_TOO_LARGE;
    for (c = 0; c < n_channels; c++)
        for (i = 1; i < n_steps; i++)
            if (series[c * n_steps + i] != series[c * n_steps])
                constant = 0;
    return constant ? TACIT_CONSTANT : TACIT_OK;
}

/* One value of the series; steps first..last-1 come from the public fill instead. */
static double value_at(const double *series, int channel, int step, int first, int last)
{
    size_t at = (size_t)channel * TACIT_STEPS + (size_t)step;
#if TACIT_PLACES > 1
    if (step >= first && step < last)
        return (double)tacit_fill[at];
#else
    (void)first;
    (void)last;
#endif
    return series[at];
}

/* The standardised series between zeros. */
static void standardise(tacit_memory *memory, const tacit_body *body, const double *series,
                        int first, int last)
{
    int c, t;
    for (c = 0; c < TACIT_CHANNELS; c++) {
        float *level = memory->level[c];
        for (t = 0; t < TACIT_PADDING; t++)
            level[t] = level[TACIT_PADDING + TACIT_STEPS + t] = 0.0f;
        for (t = 0; t < TACIT_STEPS; t++) {
            double centred = value_at(series, c, t, first, last) - (double)body->offset[c];
            level[TACIT_PADDING + t] = (float)(centred * (double)body->scale[c]);
        }
    }
}

static void take_differences(tacit_memory *memory)
{
    int c, t;
    for (c = 0; c < TACIT_CHANNELS; c++) {
        float *level = memory->level[c] + TACIT_PADDING;
        for (t = TACIT_STEPS - 1; t > 0; t--)
            level[t] = level[t] - level[t - 1];
        level[0] = 0.0f;
    }
}

/* Adds the response of one channel, tap after tap. */
static void add_response(const tacit_memory *memory, int channel, const float *taps, int dilation,
                         float *restrict response)
{
    const float *x = memory->level[channel] + TACIT_PADDING - HALF * dilation;
    const float *x1 = x + dilation, *x2 = x1 + dilation, *x3 = x2 + dilation, *x4 = x3 + dilation;
    const float *x5 = x4 + dilation, *x6 = x5 + dilation, *x7 = x6 + dilation, *x8 = x7 + dilation;
    int t;
    for (t = 0; t < TACIT_STEPS; t++) {
        float sum = response[t];
        sum = sum + taps[0] * x[t];
        sum = sum + taps[1] * x1[t];
        sum = sum + taps[2] * x2[t];
        sum = sum + taps[3] * x3[t];
        sum = sum + taps[4] * x4[t];
        sum = sum + taps[5] * x5[t];
        sum = sum + taps[6] * x6[t];
        sum = sum + taps[7] * x7[t];
        sum = sum + taps[8] * x8[t];
        response[t] = sum;
    }
}

static void clear(float *values)
{
    int t;
    for (t = 0; t < TACIT_STEPS; t++)
        values[t] = 0.0f;
}

/* A feature goes into the scores at once, so that no list of them is kept. */
static void add_feature(const tacit_body *body, double *scores, float *features, size_t index,
                        float value)
{
    const float *weights = body->weights + index * TACIT_CLASSES;
    int k;
    if (features != NULL)
        features[index] = value;
    for (k = 0; k < TACIT_CLASSES; k++)
        scores[k] += (double)value * (double)weights[k];
}

static int count_above(const float *response, int first, int last, float bias)
{
    int t, count = 0;
    for (t = first; t < last; t++)
        count += response[t] > bias;
    return count;
}

static void kernel_proportions(tacit_memory *memory, const tacit_body *body, const tacit_pool *pool,
                               int kernel, const float *taps, size_t index, double *scores,
                               float *features)
{
    int pad = HALF * pool->dilation, first = 0, last = TACIT_STEPS, c, f;
    clear(memory->response[0]);
    for (c = 0; c < TACIT_CHANNELS; c++)
        if (pool->channels[kernel * TACIT_CHANNELS + c])
            add_response(memory, c, taps, pool->dilation, memory->response[0]);
    if (TACIT_STEPS > 2 * pad && kernel % 2 == pool->skip) {
        first = pad;
        last = TACIT_STEPS - pad;
    }
    for (f = 0; f < pool->count; f++) {
        float bias = pool->values[kernel * pool->count + f];
        int count = count_above(memory->response[0], first, last, bias);
        add_feature(body, scores, features, index + (size_t)(kernel * pool->count + f),
                    (float)count / (float)(last - first));
    }
}

/* The 84 kernels with three weights of 2 and six of -1, in lexicographic order. */
static void proportions(tacit_memory *memory, const tacit_body *body, const tacit_pool *pool,
                        size_t index, double *scores, float *features)
{
    int i, j, k, s, kernel = 0;
    for (i = 0; i < TAPS; i++)
        for (j = i + 1; j < TAPS; j++)
            for (k = j + 1; k < TAPS; k++) {
                float taps[TAPS];
                for (s = 0; s < TAPS; s++)
                    taps[s] = s == i || s == j || s == k ? 2.0f : -1.0f;
                kernel_proportions(memory, body, pool, kernel, taps, index, scores, features);
                kernel++;
            }
}

static void group_responses(tacit_memory *memory, const tacit_pool *pool, int group)
{
    int rank, c, t;
    for (rank = 0; rank < pool->size; rank++) {
        const float *kernel =
            pool->values + (size_t)(rank * pool->count + group) * TACIT_CHANNELS * TAPS;
        float *response = memory->response[rank];
        clear(response);
        for (c = 0; c < TACIT_CHANNELS; c++)
            add_response(memory, c, kernel + c * TAPS, pool->dilation, response);
        for (t = 0; t < TACIT_STEPS; t++) {
            if (rank == 0 || response[t] > memory->highest[t])
                memory->highest[t] = response[t];
            if (rank == 0 || response[t] < memory->lowest[t])
                memory->lowest[t] = response[t];
        }
    }
}

static void competition(tacit_memory *memory, const tacit_body *body, const tacit_pool *pool,
                        size_t index, double *scores, float *features)
{
    const float steps = (float)TACIT_STEPS;
    size_t losses = index + (size_t)(pool->count * pool->size);
    int group, rank, t;
    for (group = 0; group < pool->count; group++) {
        group_responses(memory, pool, group);
        for (rank = 0; rank < pool->size; rank++) {
            const float *response = memory->response[rank];
            size_t at = (size_t)(group * pool->size + rank);
            float strength = 0.0f;
            int lost = 0;
            for (t = 0; t < TACIT_STEPS; t++) {
                strength += response[t] == memory->highest[t] ? response[t] : 0.0f;
                lost += response[t] == memory->lowest[t];
            }
            strength = strength > 0.0f ? strength : 0.0f;
            add_feature(body, scores, features, index + at, sqrtf(strength / steps));
            add_feature(body, scores, features, losses + at, sqrtf((float)lost / steps));
        }
    }
}

static void score(tacit_memory *memory, const tacit_body *body, const double *series, int first,
                  int last, double *scores, float *features)
{
    size_t index = 0;
    int p, k, order = 0;
    for (k = 0; k < TACIT_CLASSES; k++)
        scores[k] = (double)body->intercept[k];
    standardise(memory, body, series, first, last);
    for (p = 0; p < body->n_pools; p++) {
        const tacit_pool *pool = body->pools + p;
        if (pool->order > order) {
            take_differences(memory);
            order = pool->order;
        }
        if (pool->size > 0)
            competition(memory, body, pool, index, scores, features);
        else
            proportions(memory, body, pool, index, scores, features);
        index += pool->n_features;
    }
}

#if TACIT_PLACES > 1
/* The place without which the label scores lowest. */
static int locate(tacit_memory *memory, const double *series, int label)
{
    double lowest = 0.0;
    int place, found = 0;
    for (place = 0; place < TACIT_PLACES; place++) {
        score(memory, &tacit_locator, series, tacit_edges[place], tacit_edges[place + 1],
              memory->left, NULL);
        if (place == 0 || memory->left[label] < lowest) {
            lowest = memory->left[label];
            found = place;
        }
    }
    return found;
}
#endif

int tacit_private_symbol(tacit_memory *memory, const double *series, size_t n_channels,
                         size_t n_steps, float *features, int *symbol)
{
    int code = check_series(series, n_channels, n_steps), label = 0, k;
    *symbol = -1;
    if (code != TACIT_OK)
        return code;
    score(memory, &tacit_labeller, series, 0, 0, memory->scores, features);
    for (k = 1; k < TACIT_CLASSES; k++)
        if (memory->scores[k] > memory->scores[label])
            label = k;
#if TACIT_PLACES > 1
    *symbol = label * TACIT_PLACES + locate(memory, series, label);
#else
    *symbol = label;
#endif
    return TACIT_OK;
}

int tacit_randomize(int private_symbol, tacit_random random, void *context, int *symbol)
{
    unsigned char bytes[8];
    uint64_t word = 0;
    int i, released = 0;
    *symbol = -1;
    if (private_symbol < 0 || private_symbol >= TACIT_SYMBOLS)
        return TACIT_WRONG_SHAPE;
    if (random == NULL || random(context, bytes, sizeof bytes) != 0)
        return TACIT_NO_RANDOMNESS;
    for (i = 0; i < 8; i++)
        word = word << 8 | bytes[i];
    word >>= 2; /* 62 bits, each value equally often: a row has 2^62 units */
    for (i = 0; i < TACIT_SYMBOLS; i++)
        released += tacit_thresholds[private_symbol][i] <= word;
    *symbol = released;
    return TACIT_OK;
}

int tacit_release(tacit_memory *memory, const double *series, size_t n_channels, size_t n_steps,
                  tacit_random random, void *context, int *symbol)
{
    int own, code = tacit_private_symbol(memory, series, n_channels, n_steps, NULL, &own);
    *symbol = -1;
    return code == TACIT_OK ? tacit_randomize(own, random, context, symbol) : code;
}

int tacit_release_json(int symbol, tacit_random random, void *context, char *text, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[ID_BYTES];
    char id[2 * ID_BYTES + 1];
    int i;
    if (size > 0)
        text[0] = '\0';
    if (random == NULL || random(context, bytes, sizeof bytes) != 0)
        return -1;
    for (i = 0; i < ID_BYTES; i++) {
        id[2 * i] = digits[bytes[i] >> 4];
        id[2 * i + 1] = digits[bytes[i] & 15];
    }
    id[2 * ID_BYTES] = '\0';
    return snprintf(text, size,
                    "{\"kind\": \"%s\", \"model\": \"%s\", \"guarantee\": %s, "
                    "\"id\": \"%s\", \"values\": [%d]}",
                    TACIT_KIND, TACIT_MODEL, TACIT_GUARANTEE, id, symbol);
}

int tacit_class_of(int symbol)
{
    return symbol / TACIT_PLACES;
}

int tacit_place_of(int symbol)
{
    return symbol % TACIT_PLACES;
}

const char *tacit_message(int code)
{
    switch (code) {
    case TACIT_OK:
        return "the series was released.";
    case TACIT_WRONG_SHAPE:
        return "the series does not have the channels and steps that the model reads; nothing was "
               "released, resample it or train on this shape.";
    case TACIT_NOT_FINITE:
        return "the series holds a missing or infinite value; nothing was released, fill it first.";
    case TACIT_TOO_LARGE:
        return "the series holds a value beyond 1e+12; nothing was released, replace sentinels and "
               "choose a unit of ordinary size.";
    case TACIT_CONSTANT:
        return "the series is constant in every channel; nothing was released, check the sensor.";
    case TACIT_NO_RANDOMNESS:
        return "the device gave no secure random bytes; nothing was released, check its generator.";
    default:
        return "unknown code; nothing was released.";
    }
}
