/* matmul_32.c: products with weights in blocks of 32, by AMX (matmul.h). Reentrant. */
#include "kernels/amx/matmul.h"

KERNEL(Q4_0, q4_0)
KERNEL(Q4_1, q4_1)
KERNEL(Q5_0, q5_0)
KERNEL(Q5_1, q5_1)
KERNEL(Q8_0, q8_0)
KERNEL(IQ4_NL, iq4_nl)
