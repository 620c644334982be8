// SPDX-License-Identifier: Apache-2.0
/* poly.h: polynomials of the vectorised functions. Written by fit.py; do not edit. Coefficients from x^0 upwards. */
#ifndef WEFT_KERNELS_SIMD_POLY_H
#define WEFT_KERNELS_SIMD_POLY_H

/* exp(r) = 1 + r + r^2 p(r) for |r| <= ln(2) / 2; relative error 1.0e-8. */
#define POLY_EXP 5.0e-1f, 1.666657699e-1f, 4.166655462e-2f, 8.363179053e-3f, 1.392618359e-3f
enum { POLY_EXP_N = 5 };

/* tanh(y) = y + y z p(z) for z = y^2, |y| <= 0.625; relative error 1.7e-8. */
#define POLY_TANH -3.333332894e-1f, 1.333276974e-1f, -5.385090958e-2f, 2.0997179e-2f, -6.096714166e-3f
enum { POLY_TANH_N = 5 };

/* exp(z^2) erfc(z) = t p(t) for t = 1 / (1 + z/2), 0 <= z <= 10; relative error 4.0e-8. */
#define POLY_ERFC                                                                                                      \
    2.820542795e-1f, 2.830857047e-1f, 2.364906486e-1f, 2.367694151e-1f, -1.340835864e-1f, 4.937229705e-1f,             \
        -7.636769792e-1f, 5.037037566e-1f, -1.56832683e-1f, 1.876646773e-2f
enum { POLY_ERFC_N = 10 };

#endif
