/* What the tests ask a compiled device; the numbers go through standard input and output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tacit_device.h"

static tacit_memory memory;
static double series[TACIT_CHANNELS * TACIT_STEPS];
static float features[TACIT_FEATURES];

static int system_random(void *context, unsigned char *bytes, size_t count)
{
    ++*(long *)context;
    return getrandom(bytes, count, 0) == (long)count ? 0 : -1;
}

static int broken_random(void *context, unsigned char *bytes, size_t count)
{
    ++*(long *)context;
    memset(bytes, 0, count);
    return 1;
}

/* Code, symbol and features of each series. */
static void answer(void)
{
    while (fread(series, sizeof series, 1, stdin) == 1) {
        int found[2];
        memset(features, 0, sizeof features);
        found[0] = tacit_private_symbol(&memory, series, TACIT_CHANNELS, TACIT_STEPS, features,
                                        &found[1]);
        fwrite(found, sizeof found, 1, stdout);
        fwrite(features, sizeof features, 1, stdout);
    }
}

/* How often each symbol leaves for each private one. */
static void count(long draws)
{
    static long counts[TACIT_SYMBOLS][TACIT_SYMBOLS];
    long calls = 0, i;
    int own, symbol;
    for (own = 0; own < TACIT_SYMBOLS; own++)
        for (i = 0; i < draws; i++)
            if (tacit_randomize(own, system_random, &calls, &symbol) == TACIT_OK)
                counts[own][symbol]++;
    fwrite(counts, sizeof counts, 1, stdout);
}

/* Releases of each series: code, symbol, calls for randomness. */
static void release(tacit_random random, size_t channels, size_t steps)
{
    while (fread(series, sizeof series, 1, stdin) == 1) {
        long calls = 0;
        int symbol = 99;
        int code = tacit_release(&memory, series, channels, steps, random, &calls, &symbol);
        printf("%d %d %ld\n", code, symbol, calls);
    }
}

/* What becomes of the JSON when there is no randomness: the return value and the text's length. */
static void json(tacit_random random)
{
    static char text[sizeof TACIT_GUARANTEE + 200] = "left over";
    long calls = 0;
    int length = tacit_release_json(0, random, &calls, text, sizeof text);
    printf("%d %lu\n", length, (unsigned long)strlen(text));
}

int main(int argc, char **argv)
{
    const char *task = argc > 1 ? argv[1] : "";
    if (!strcmp(task, "answer"))
        answer();
    else if (!strcmp(task, "count"))
        count(atol(argv[2]));
    else if (!strcmp(task, "release"))
        release(system_random, TACIT_CHANNELS, TACIT_STEPS);
    else if (!strcmp(task, "broken"))
        release(broken_random, TACIT_CHANNELS, TACIT_STEPS);
    else if (!strcmp(task, "none"))
        release(NULL, TACIT_CHANNELS, TACIT_STEPS);
    else if (!strcmp(task, "json-broken"))
        json(broken_random);
    else if (!strcmp(task, "json-none"))
        json(NULL);
    else if (!strcmp(task, "short"))
        release(system_random, TACIT_CHANNELS, TACIT_STEPS - 1);
    else if (!strcmp(task, "memory"))
        printf("%lu\n", (unsigned long)sizeof memory);
    else
        return 1;
    return 0;
}
