// SPDX-License-Identifier: Apache-2.0
/* immintrin_names.h: the compiler's names for what immintrin.h emulates, which includes it at its end. */
#ifndef WEFT_TESTS_EMULATED_IMMINTRIN_NAMES_H
#define WEFT_TESTS_EMULATED_IMMINTRIN_NAMES_H

#define _mm512_add_ps emu_add_ps
#define _mm512_sub_ps emu_sub_ps
#define _mm512_mul_ps emu_mul_ps
#define _mm512_div_ps emu_div_ps
#define _mm512_max_ps emu_max_ps
#define _mm512_min_ps emu_min_ps
#define _mm512_and_ps emu_and_ps
#define _mm512_or_ps emu_or_ps
#define _mm512_unpacklo_ps emu_unpacklo_ps
#define _mm512_unpackhi_ps emu_unpackhi_ps
#define _mm512_fmadd_ps emu_fmadd_ps
#define _mm512_fnmadd_ps emu_fnmadd_ps
#define _mm512_fmaddsub_ps emu_fmaddsub_ps
#define _mm512_moveldup_ps emu_moveldup_ps
#define _mm512_movehdup_ps emu_movehdup_ps
#define _mm512_add_pd emu_add_pd
#define _mm512_mul_pd emu_mul_pd
#define _mm512_unpacklo_pd emu_unpacklo_pd
#define _mm512_unpackhi_pd emu_unpackhi_pd
#define _mm512_fmadd_pd emu_fmadd_pd
#define _mm512_abs_epi8 emu_abs_epi8
#define _mm512_add_epi16 emu_add_epi16
#define _mm512_add_epi32 emu_add_epi32
#define _mm512_sub_epi8 emu_sub_epi8
#define _mm512_sub_epi16 emu_sub_epi16
#define _mm512_sub_epi32 emu_sub_epi32
#define _mm512_max_epi32 emu_max_epi32
#define _mm512_and_si512 emu_and_si512
#define _mm512_andnot_si512 emu_andnot_si512
#define _mm512_or_si512 emu_or_si512
#define _mm512_xor_si512 emu_xor_si512
#define _mm512_madd_epi16 emu_madd_epi16
#define _mm512_maddubs_epi16 emu_maddubs_epi16
#define _mm512_mullo_epi16 emu_mullo_epi16
#define _mm512_packs_epi16 emu_packs_epi16
#define _mm512_packs_epi32 emu_packs_epi32
#define _mm512_shuffle_epi8 emu_shuffle_epi8
#define _mm512_unpacklo_epi32 emu_unpacklo_epi32
#define _mm512_unpackhi_epi32 emu_unpackhi_epi32
#define _mm512_unpacklo_epi64 emu_unpacklo_epi64
#define _mm512_unpackhi_epi64 emu_unpackhi_epi64
#define _mm512_slli_epi32 emu_slli_epi32
#define _mm512_srli_epi32 emu_srli_epi32
#define _mm512_roundscale_ps emu_roundscale_ps
#define _mm512_abs_ps(a) emu_and_ps(a, _mm512_castsi512_ps(emu_set1_epi32(0x7FFFFFFF)))

#define _mm512_set1_ps emu_set1_ps
#define _mm512_set1_pd emu_set1_pd
#define _mm512_set1_epi8 emu_set1_epi8
#define _mm512_set1_epi16 emu_set1_epi16
#define _mm512_set1_epi32 emu_set1_epi32
#define _mm512_setzero_ps() ((__m512){0})
#define _mm512_setzero_pd() ((__m512d){0})
#define _mm512_setzero_si512() ((__m512i){0})
#define _mm512_setr_ps(...) ((__m512){__VA_ARGS__})
#define _mm512_setr_epi32(...) (((emu){.w = {__VA_ARGS__}}).i)
#define _mm512_broadcast_i32x4 emu_broadcast_i32x4
#define _mm512_loadu_ps(p) ((__m512)emu_load(p))
#define _mm512_loadu_si512(p) emu_load(p)
#define _mm512_load_si512 emu_load_aligned
#define _mm512_storeu_ps(p, a) emu_store(p, (__m512i)(a))
#define _mm512_storeu_si512(p, a) emu_store(p, a)
#define _mm512_maskz_loadu_ps(mask, p) ((__m512)emu_load_lanes(p, mask, 4))
#define _mm512_mask_storeu_ps(p, mask, a) emu_store_lanes(p, mask, 4, (__m512i)(a))
#define _mm256_maskz_loadu_ps(mask, p) emu_half((__m512)emu_load_lanes(p, mask, 4), 0)
#define _mm256_maskz_loadu_epi16(mask, p) ((__m256i)emu_half((__m512)emu_load_lanes(p, mask, 2), 0))
#define _mm256_mask_storeu_epi16(p, mask, a) emu_store_lanes(p, mask, 2, ((emu){.i2 = {a}}).i)

#define _mm512_castps_si512(a) ((__m512i)(a))
#define _mm512_castsi512_ps(a) ((__m512)(a))
#define _mm512_castps_pd(a) ((__m512d)(a))
#define _mm512_castpd_ps(a) ((__m512)(a))
#define _mm512_castps512_ps256(a) emu_half(a, 0)
#define _mm512_castps256_ps512(a) (((emu){.f2 = {a}}).f)
#define _mm512_extractf32x8_ps emu_half
#define _mm512_insertf32x8 emu_with_half
#define _mm512_cvtepi32_ps emu_cvtepi32_ps
#define _mm512_cvtps_epi32 emu_cvtps_epi32
#define _mm512_cvtepi8_epi32 emu_cvtepi8_epi32
#define _mm512_cvtepu8_epi32 emu_cvtepu8_epi32
#define _mm512_cvtepu16_epi32 emu_cvtepu16_epi32
#define _mm512_cvtph_ps emu_cvtph_ps
#define _mm512_cvtps_ph emu_cvtps_ph
#define _mm512_cvtps_pd emu_cvtps_pd
#define _mm512_cvtpd_ps emu_cvtpd_ps
#define _mm512_cvtpd_epi32 emu_cvtpd_epi32
#define _mm256_cvtepi32_epi8 emu_low_bytes
#define _mm512_cvtneps_pbh emu_cvtneps_pbh

#define _mm512_permutexvar_epi32 emu_permutexvar
#define _mm512_permutexvar_ps(index, a) ((__m512)emu_permutexvar(index, (__m512i)(a)))
#define _mm512_permutex2var_epi32 emu_permutex2var
#define _mm512_permutex2var_ps(a, index, b) ((__m512)emu_permutex2var((__m512i)(a), index, (__m512i)(b)))
#define _mm512_permute_ps emu_permute_ps
#define _mm512_shuffle_i32x4 emu_shuffle_quarters
#define _mm512_shuffle_f32x4(a, b, imm) ((__m512)emu_shuffle_quarters((__m512i)(a), (__m512i)(b), imm))
#define _mm512_ternarylogic_epi32 emu_ternarylogic
#define _mm512_reduce_add_ps emu_reduce_add_ps
#define _mm512_reduce_add_pd emu_reduce_add_pd
#define _mm512_reduce_max_ps emu_reduce_max_ps

#define _mm512_cmp_ps_mask emu_cmp_ps_mask
#define _mm512_mask_cmp_ps_mask(mask, a, b, op) ((mask)&emu_cmp_ps_mask(a, b, op))
#define _mm512_cmpge_epu16_mask emu_cmpge_epu16_mask
#define _mm512_mask_cmpge_epu32_mask(mask, a, b) ((mask)&emu_cmpge_epu32_mask(a, b))
#define _mm512_test_epi32_mask emu_test_epi32_mask
#define _mm512_movepi8_mask emu_movepi8_mask
#define _mm512_mask_blend_epi16(mask, a, b) emu_blend(mask, 2, a, b)
#define _mm512_mask_blend_epi32(mask, a, b) emu_blend(mask, 4, a, b)
#define _mm512_mask_blend_ps(mask, a, b) ((__m512)emu_blend(mask, 4, (__m512i)(a), (__m512i)(b)))
#define _mm512_maskz_mov_epi32(mask, a) emu_blend(mask, 4, (__m512i){0}, a)
#define _mm512_maskz_add_epi32(mask, a, b) emu_blend(mask, 4, (__m512i){0}, _mm512_add_epi32(a, b))
#define _mm512_mask_sub_epi8(from, mask, a, b) emu_blend(mask, 1, from, emu_sub_epi8(a, b))
#define _mm512_mask_div_ps(from, mask, a, b) _mm512_mask_blend_ps(mask, from, emu_div_ps(a, b))
#define _mm512_maskz_div_ps(mask, a, b) _mm512_mask_div_ps((__m512){0}, mask, a, b)

#define _mm512_dpbusd_epi32 emu_dpbusd_epi32
#define _mm512_dpbf16_ps(acc, a, b) emu_dpbf16_ps(acc, (__m512i)(a), (__m512i)(b))
#define _mm512_scalef_ps emu_scalef_ps

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbssd
#undef _tile_dpbsud
#undef _tile_dpbf16ps
#define _tile_loadd emu_tile_load
#define _tile_stored emu_tile_store
#define _tile_zero emu_tile_zero
#define _tile_dpbssd(to, a, b) emu_tile_dot(to, a, b, 1)
#define _tile_dpbsud(to, a, b) emu_tile_dot(to, a, b, 0)
#define _tile_dpbf16ps emu_tile_dot_bf16
#undef _tile_release
#define _tile_release emu_tile_release

#endif
