"""Minimax polynomials with machine-number coefficients.

fit() runs the Remez exchange on a grid: it finds c so that the largest |w(x) * (sum c[i] * x^powers[i] - f(x))| is least.
rounded() makes the coefficients machine numbers one after the other, the one that matters most first, and fits the rest
again each time, so that later coefficients make up for the rounding of earlier ones.
"""
from mpmath import mp, mpf, matrix, lu_solve, cos, pi, log

mp.prec = 240


class Grid:
    """Samples of a function and its weight on [a, b], dense at the ends."""

    def __init__(self, f, a, b, weight=None, n=1200):
        a, b = mpf(a), mpf(b)
        self.x = [(a + b) / 2 - (b - a) / 2 * cos(pi * i / (n - 1)) for i in range(n)]
        self.x = [x for x in self.x if x != 0]
        self.f = [f(x) for x in self.x]
        self.w = [weight(x) if weight else mpf(1) for x in self.x]


def _error(grid, f, rows, c):
    return [w * (sum(r * ci for r, ci in zip(row, c)) - y) for w, row, y in zip(grid.w, rows, f)]


def fit(grid, powers, f=None, steps=40):
    """Returns (coefficients, largest weighted error)."""
    f = f or grid.f
    m, n = len(powers), len(grid.x)
    rows = [[x**p for p in powers] for x in grid.x]
    at = [round((n - 1) * (1 - cos(pi * j / m)) / 2) for j in range(m + 1)]
    best = None
    for _ in range(steps):
        a = matrix(m + 1, m + 1)
        y = matrix(m + 1, 1)
        for j, i in enumerate(at):
            for col in range(m):
                a[j, col] = rows[i][col]
            a[j, m] = (-1) ** j / grid.w[i]
            y[j] = f[i]
        s = lu_solve(a, y)
        c, level = [s[j] for j in range(m)], abs(s[m])
        e = _error(grid, f, rows, c)
        worst = max(abs(v) for v in e)
        if best is None or worst < best[1]:
            best = (c, worst)
        if worst <= level * mpf("1.001"):
            break
        # One extremum per run of equal sign; of these the m + 1 consecutive ones with the largest smallest end.
        runs = []
        for i, v in enumerate(e):
            if runs and (e[runs[-1]] > 0) == (v > 0):
                if abs(v) > abs(e[runs[-1]]):
                    runs[-1] = i
            else:
                runs.append(i)
        while len(runs) > m + 1:
            runs.pop(0 if abs(e[runs[0]]) < abs(e[runs[-1]]) else -1)
        if len(runs) < m + 1:
            break
        at = runs
    return best


def to_float(x, bits):
    """Nearest number with `bits` bits of significand."""
    saved = mp.prec
    mp.prec = bits
    r = +mpf(x)
    mp.prec = saved
    return r


def rounded(grid, powers, bits, fixed=None):
    """As fit, with coefficients of `bits` bits. `fixed` maps powers to given values. Returns ({power: c}, error)."""
    fixed = dict(fixed or {})
    left = [p for p in powers if p not in fixed]
    reach = max(abs(grid.x[0]), abs(grid.x[-1]))
    c = None
    while left:
        f = [y - sum(v * x**p for p, v in fixed.items()) for x, y in zip(grid.x, grid.f)]
        # With few powers left the exchange may not converge; the coefficients found before are then still good.
        again, err = fit(grid, left, f)
        if c is None or err < max(abs(e) for e in _error(grid, f, [[x**p for p in left] for x in grid.x], c)):
            c = again
        i = max(range(len(left)), key=lambda j: abs(c[j]) * reach ** left[j])
        fixed[left[i]] = to_float(c[i], bits)
        del left[i], c[i]
    f = [y - sum(v * x**p for p, v in fixed.items()) for x, y in zip(grid.x, grid.f)]
    return fixed, max(abs(w * y) for w, y in zip(grid.w, f))


def hex_of(x):
    """C hexadecimal literal of an mpf that is a double."""
    mantissa, exponent = float(x).hex().split("p")
    return mantissa.rstrip("0").rstrip(".") + "p" + exponent if "." in mantissa else float(x).hex()


def show(name, fixed, err):
    print(f"// {name}: 2^{float(log(err, 2)):.2f}")
    print("  " + ", ".join(hex_of(fixed[p]) for p in sorted(fixed)))
