#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes poly.h: python3 src/kernels/simd/fit.py | clang-format > src/kernels/simd/poly.h (needs mpmath).

Each polynomial interpolates its function in the Chebyshev points of the interval, weighted by nothing: for functions this smooth
that is within a few percent of the best possible polynomial. The error printed beside each is measured against 50 digits.
"""
from mpmath import mp, mpf, exp, erfc, tanh, sqrt, log, pi, cos, matrix, lu_solve, diff

mp.dps = 50


def fit(f, lo, hi, degree):
    """Coefficients c[0..degree] with sum c[i] x^i = f(x) in the Chebyshev points."""
    n = degree + 1
    xs = [(lo + hi) / 2 + (hi - lo) / 2 * cos(pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    a = matrix(n, n)
    b = matrix(n, 1)
    for i, x in enumerate(xs):
        for j in range(n):
            a[i, j] = x**j
        b[i] = f(x)
    return list(lu_solve(a, b))


def worst(f, c, lo, hi, value):
    """Largest relative error of value(x, poly(x)) against f(x)."""
    e = mpf(0)
    for i in range(2001):
        x = lo + (hi - lo) * i / 2000
        p = sum(k * x**j for j, k in enumerate(c))
        if f(x) != 0:
            e = max(e, abs(value(x, p) / f(x) - 1))
    return e


def show(name, what, c, error):
    print(f"/* {what}; relative error {mp.nstr(error, 2)}. */")
    print(f"#define {name} {', '.join(mp.nstr(k, 10, min_fixed=0, max_fixed=0) + 'f' for k in c)}")
    print(f"enum {{ {name}_N = {len(c)} }};")
    print()


print("/* poly.h: polynomials of the vectorised functions. Written by fit.py; do not edit. Coefficients from x^0 upwards. */")
print("#ifndef WEFT_KERNELS_SIMD_POLY_H\n#define WEFT_KERNELS_SIMD_POLY_H\n")

h = log(2) / 2 * mpf("1.0001")
f = lambda r: (exp(r) - 1 - r) / r**2 if abs(r) > mpf(10)**-15 else mpf(1) / 2 + r / 6
c = fit(f, -h, h, 4)
show("POLY_EXP", "exp(r) = 1 + r + r^2 p(r) for |r| <= ln(2) / 2", c, worst(exp, c, -h, h, lambda r, p: 1 + r + r * r * p))

top = mpf("0.625")
g = lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(10)**-15 else -mpf(1) / 3
c = fit(g, mpf(0), top**2, 4)
show("POLY_TANH", "tanh(y) = y + y z p(z) for z = y^2, |y| <= 0.625", c,
     worst(lambda z: tanh(sqrt(z)) if z else mpf(0), c, mpf(0), top**2, lambda z, p: sqrt(z) * (1 + z * p)))

# exp(z^2) erfc(z) for z >= 0 as a polynomial in t = 1 / (1 + z/2); t runs from 1 down to 0 and p(t) ~ t * const there.
def scaled(t):
    z = 2 * (1 / t - 1)
    return exp(z * z) * erfc(z) / t

lo = 1 / (1 + mpf(10) / 2)
c = fit(scaled, lo, mpf(1), 9)
show("POLY_ERFC", "exp(z^2) erfc(z) = t p(t) for t = 1 / (1 + z/2), 0 <= z <= 10", c, worst(scaled, c, lo, mpf(1), lambda t, p: p))
print("#endif")
