/* tile.h: how tile registers are set up (Intel's manual, volume 1, chapter 18). */
#ifndef WEFT_KERNELS_AMX_TILE_H
#define WEFT_KERNELS_AMX_TILE_H

#include <immintrin.h>
#include <stdint.h>

/* What LDTILECFG reads. Zeros are tiles that are not used. */
typedef struct amx_config {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} amx_config;

/* Not _tile_loadconfig: GCC 12 takes that for a read of 8 bytes, and leaves out what was written to the others. */
static inline void amx_load_config(const amx_config *c)
{
    __asm__ volatile("ldtilecfg %0" : : "m"(*c));
}

/* Between writing memory and reading it by tiles: GCC 12 does not know that _tile_loadd reads. */
static inline void amx_fence(void)
{
    __asm__ volatile("" : : : "memory");
}

static inline void amx_shape(amx_config *c, int tile, int rows, int row_bytes)
{
    c->rows[tile] = (uint8_t)rows;
    c->row_bytes[tile] = (uint16_t)row_bytes;
}

#endif
