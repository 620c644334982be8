// SPDX-License-Identifier: Apache-2.0
/* tile.h: how tile registers are set up, loaded and stored (Intel's manual, volume 1, chapter 18). (Where they are
 * emulated, the instructions here are functions of tests/emulated.) */
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
#ifdef __AMX_TILE__
    __asm__ volatile("ldtilecfg %0" : : "m"(*c));
#else
    emu_tile_config(c);
#endif
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

/* A tile from or to memory at base + offset; rows are `apart`. The offset is a part of the instruction where the
 * compiler knows it: an address of its own for each tile would be kept in memory. That AMX_LOAD reads memory the
 * compiler does not know: what was written before is there behind amx_fence or AMX_STORE. */
#ifdef __AMX_TILE__
#define AMX_LOAD(tile, base, offset, apart)                                                                            \
    do {                                                                                                               \
        if (__builtin_constant_p(offset))                                                                              \
            __asm__ volatile("tileloadd %c2(%0,%1,1), %%tmm" #tile                                                     \
                             :                                                                                         \
                             : "r"(base), "r"((int64_t)(apart)), "i"(__builtin_constant_p(offset) ? (offset) : 0));    \
        else __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"((base) + (offset)), "r"((int64_t)(apart)));   \
    } while (0)
#define AMX_STORE(tile, base, offset, apart)                                                                           \
    __asm__ volatile("tilestored %%tmm" #tile ", %c2(%0,%1,1)"                                                         \
                     :                                                                                                 \
                     : "r"(base), "r"((int64_t)(apart)), "i"(offset)                                                   \
                     : "memory")
/* Every row of a tile from the same memory. */
#define AMX_LOAD_SAME(tile, row) __asm__ volatile("tileloadd (%0), %%tmm" #tile : : "r"(row))
#else
#define AMX_LOAD(tile, base, offset, apart) emu_tile_load(tile, (const char *)(base) + (offset), apart)
#define AMX_STORE(tile, base, offset, apart) emu_tile_store(tile, (char *)(base) + (offset), apart)
#define AMX_LOAD_SAME(tile, row) emu_tile_load(tile, row, 0)
#endif

#endif
