/* matmul_256.c: products with weights in blocks of 256, by AMX (matmul.h). Reentrant. */
#include "kernels/amx/matmul.h"

KERNEL(Q2_K, q2_k)
KERNEL(Q3_K, q3_k)
KERNEL(Q4_K, q4_k)
KERNEL(Q5_K, q5_k)
KERNEL(Q6_K, q6_k)
KERNEL(IQ4_XS, iq4_xs)
