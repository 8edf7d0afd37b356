/* Compares this device with the golden vectors: run it once on every new processor or compiler. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tacit_device.h"
#include "tacit_golden.h"

static tacit_memory memory;
static float features[TACIT_FEATURES];

/* FNV-1a over the bits of the features, the lowest byte of each first. */
static uint64_t hash(void)
{
    uint64_t value = UINT64_C(0xcbf29ce484222325);
    size_t i;
    int b;
    for (i = 0; i < TACIT_FEATURES; i++) {
        uint32_t bits;
        memcpy(&bits, &features[i], sizeof bits);
        for (b = 0; b < 4; b++)
            value = (value ^ (bits >> (8 * b) & 0xff)) * UINT64_C(0x100000001b3);
    }
    return value;
}

int main(void)
{
    int i, symbol, wrong = 0;
    for (i = 0; i < TACIT_GOLDEN; i++) {
        int code = tacit_private_symbol(&memory, tacit_golden_series[i], TACIT_CHANNELS,
                                        TACIT_STEPS, features, &symbol);
        int label_equal = code == TACIT_OK && symbol == tacit_golden_symbol[i];
        int bits_equal = code == TACIT_OK && hash() == tacit_golden_hash[i];
        if (!label_equal || !bits_equal) {
            printf("vector %d: label or place %s, features %s\n", i + 1,
                   label_equal ? "equal" : "differ", bits_equal ? "equal" : "differ");
            wrong++;
        }
    }
    printf("%d of %d golden vectors agree\n", TACIT_GOLDEN - wrong, TACIT_GOLDEN);
    return wrong ? 1 : 0;
}
