#!/usr/bin/env python3
"""hard.py > hard.h: arguments of trigonometric functions that lie closest to multiples of pi/2.

x = m * 2^e is close to n * pi/2 where n/m is close to 2^e * 2/pi: for each exponent the best m of a format's size is a
convergent of that number's continued fraction, or a multiple or a sum of two of them; the convergents with their small multiples are tried.
"""
from fractions import Fraction

BITS = 2400


def pi_scaled(bits):
    """floor(pi * 2^bits), by Machin's formula."""
    one = 1 << (bits + 32)

    def arctan_of_inverse(n):
        term = total = one // n
        k, sign = 1, 1
        while term:
            term //= n * n
            k, sign = k + 2, -sign
            total += sign * (term // k)
        return total

    return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239)) >> 32


PI = pi_scaled(BITS)


def denominators(x, limit):
    """Denominators of the convergents of a fraction, up to a limit."""
    a, b, q, q_before = x.numerator, x.denominator, 0, 1
    while b and q <= limit:
        whole = a // b
        a, b = b, a - whole * b
        q, q_before = whole * q + q_before, q
        yield q


def distance(m, e):
    """|m * 2^e - n * pi/2| for the nearest n, as a number of 2^-BITS."""
    x = m << (BITS + e) if BITS + e >= 0 else m >> -(BITS + e)
    rest = 2 * x % PI
    return min(rest, PI - rest)


def closest(bits, exponents):
    found = []
    low, high = 1 << (bits - 1), 1 << bits
    for e in exponents:
        ratio = Fraction(2 << BITS, PI) * (Fraction(2) ** e)
        tried = set()
        for q in denominators(ratio, high):
            first = -(-low // q) if q else 0
            tried.update(q * k for k in (1, first, first + 1) if q and low <= q * k < high)
        best = sorted((distance(m, e), m) for m in tried)[:1]
        found += [(d, m, e) for d, m in best if d]
    return found


def show(name, kind, rows):
    print(f"static const {kind} {name}[] = {{")
    for start in range(0, len(rows), 4):
        print("    " + " ".join(f"{m:#x}p{e}," for _, m, e in rows[start : start + 4]))
    print("};")


def main():
    print("// Arguments close to multiples of pi/2: the closest of all, and the closest of every binade or of every few. Made by")
    print("// hard.py.\n")
    for name, kind, bits, top, every in (("hard_f32", "float", 24, 104, 2), ("hard_f64", "double", 53, 971, 8)):
        rows = closest(bits, range(-bits + 1, top + 1))
        chosen = sorted(rows)[:64] + rows[::every]
        show(name, kind, sorted(set(chosen), key=lambda r: r[2]))


main()
