/* matmul_256.c: products with weights in blocks of 256 that have a scale for every 32, by AMX (matmul.h). Reentrant. */
#include "kernels/amx/matmul.h"

KERNEL(Q4_K, q4_k)
KERNEL(Q5_K, q5_k)
KERNEL(IQ4_XS, iq4_xs)
