/* Reads one series from standard input (numbers between blanks, channel after channel) and prints
 * one release as JSON. Random bytes come from the operating system; on a microcontroller, replace
 * system_random by its hardware generator. */
#include <stdio.h>

#include "tacit_device.h"

#ifdef __linux__
#include <sys/random.h>

static int system_random(void *context, unsigned char *bytes, size_t count)
{
    (void)context;
    return getrandom(bytes, count, 0) == (long)count ? 0 : -1;
}
#else
static int system_random(void *context, unsigned char *bytes, size_t count)
{
    FILE *file = fopen("/dev/urandom", "rb");
    size_t got = file == NULL ? 0 : fread(bytes, 1, count, file);
    (void)context;
    if (file != NULL)
        fclose(file);
    return got == count ? 0 : -1;
}
#endif

static double series[TACIT_CHANNELS * TACIT_STEPS];
static tacit_memory memory;
static char text[sizeof TACIT_GUARANTEE + 200];

int main(void)
{
    size_t n = 0;
    double extra;
    int code, symbol, length;
    while (n < TACIT_CHANNELS * TACIT_STEPS && scanf("%lf", &series[n]) == 1)
        n++;
    if (n < TACIT_CHANNELS * TACIT_STEPS || scanf("%lf", &extra) == 1)
        code = TACIT_WRONG_SHAPE;
    else
        code = tacit_release(&memory, series, TACIT_CHANNELS, TACIT_STEPS, system_random, NULL,
                             &symbol);
    if (code != TACIT_OK) {
        fprintf(stderr, "%s\n", tacit_message(code));
        return 2;
    }
    length = tacit_release_json(symbol, system_random, NULL, text, sizeof text);
    if (length < 0 || length >= (int)sizeof text)
        return 1;
    puts(text);
    return 0;
}
