# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first random values of some generators, from docs/random.md and not from the library.

Prints golden_values.hpp; with the path of one, fails unless it says the same.
"""
import sys

import numpy as np

MASK = 0xFFFFFFFF


def philox(counter, key):
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k0, q & MASK, (p >> 32) ^ d ^ k1, p & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return a, b, c, d


class Call:
    """The words of one call."""

    def __init__(self, seed, stream, offset):
        self.key = (seed & MASK, seed >> 32)
        self.high = (offset & MASK, offset >> 32 | stream << 8)

    def block(self, number):
        return philox((number & MASK, number >> 32) + self.high, self.key)

    def word(self, i):
        return self.block(i // 4)[i % 4]


def horner(x, coefficients):
    total = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def log1p(f, terms):
    real = type(f)
    s = f / (real(2) + f)
    z = s * s
    return real(2) * s + s * z * horner(z, [real(2) / real(2 * k + 3) for k in range(terms)])


def split(x, real, integer, mantissa_bits, root_half):
    """x = 2^n (1 + f)"""
    bits = int(np.array(x, real).view(integer)) - root_half
    n = bits >> mantissa_bits
    m = np.array((bits & ((1 << mantissa_bits) - 1)) + root_half, integer).view(real)[()]
    return n, m - real(1)


def minus_log32(word):
    k, real = word >> 1, np.float32
    x = real(k) + real(0.5)
    n, f = split(x, real, np.uint32, 23, 0x3F3504F3)
    n -= 31
    if k >= 3 << 29:
        n, f = 0, (real(k - 2**31) + real(0.5)) * real(2.0**-31)
    n = real(n)
    high, low = real(0xB172 / 65536), real(1.4286068203094173e-06)
    return -(n * high + (n * low + log1p(f, 5)))


def minus_log64(low_word, high_word):
    real = np.float64
    x = (real(high_word >> 6) * real(2**26) + real(low_word >> 6) + real(0.5)) * real(2.0**-52)
    n, f = split(x, real, np.uint64, 52, 0x3FE6A09E667F3BCD)
    n = real(n)
    high, low = real(0.6931471803691238), real(1.9082149292705877e-10)
    return -(n * high + (n * low + log1p(f, 10)))


def factorials(first, step, count, real):
    result, value = [], 1
    for i in range(count):
        k = first + 2 * i
        value = 1
        for j in range(2, k + 1):
            value *= j
        result.append(real(1) / real((-1) ** i * value))
    return result


def mirrored(radius, t, top, sines, cosines, real):
    angle = t * real(1.57079632679489662)
    z = angle * angle
    sine = angle * horner(z, factorials(1, 2, sines, real))
    cosine = horner(z, factorials(0, 2, cosines, real))
    r = -radius if top & 1 else radius
    return (r * sine, r * cosine) if top & 2 else (r * cosine, r * sine)


def normal32(w0, w1):
    real = np.float32
    radius = np.sqrt(real(2) * minus_log32(w0))
    t = (real((w1 & 0x3FFFFFFF) - 2**29) + real(0.5)) * real(2.0**-30)
    return mirrored(radius, t, w1 >> 30, 5, 6, real)


def normal64(w0, w1, w2, w3):
    real = np.float64
    radius = np.sqrt(real(2) * minus_log64(w0, w1))
    a, b = (w3 & 0x3FFFFFFF) >> 4, w2 >> 6
    t = (real(a) * real(2**26) + real(b) + real(0.5)) * real(2.0**-52) - real(0.5)
    return mirrored(radius, t, w3 >> 30, 9, 10, real)


def pairs(f, call, words, count):
    result = []
    for i in range(count // 2):
        result.extend(f(*(call.word(words * i + j) for j in range(words))))
    return result


def uniform64(low, high):
    return np.float64(((high >> 5) * 2**26 + (low >> 6)) / 2**53)


def word64(call, i):
    return call.word(2 * i) | call.word(2 * i + 1) << 32


def shuffled(call, n):
    values = list(range(n))
    for i in range(n - 1, 0, -1):
        block = call.block(i)
        j = (block[0] | block[1] << 32) * (i + 1) >> 64
        values[i], values[j] = values[j], values[i]
    return values


def permuted(call, n, index):
    bits = max(2, (n - 1).bit_length())
    low_bits = bits // 2
    high_bits = bits - low_bits
    keys = []
    for r in range(12):
        block = call.block(r // 2)
        keys.append(block[r % 2 * 2] | block[r % 2 * 2 + 1] << 32)

    def mixed(half, key):
        x = ((half ^ key) * 0x9E3779B97F4A7C15) % 2**64
        x = ((x ^ x >> 32) * 0xD2B74407B1CE6E93) % 2**64
        return x ^ x >> 32

    if index < 2:
        index ^= call.block(6)[1] & 1
    while True:
        low, high = index & ((1 << low_bits) - 1), index >> low_bits
        for r in range(0, 12, 2):
            high ^= mixed(low, keys[r]) >> (64 - high_bits)
            low ^= mixed(high, keys[r + 1]) >> (64 - low_bits)
        index = high << low_bits | low
        if index < n:
            return index


def bits_of(values, real):
    unsigned = np.uint32 if real == np.float32 else np.uint64
    return [int(v) for v in np.array(values, real).view(unsigned)]


def half_bits(values):
    return [int(v) for v in np.array(values, np.float16).view(np.uint16)]


def bfloat_bits(values):
    """Rounded to nearest even."""
    return [(b + 0x7FFF + (b >> 16 & 1)) >> 16 for b in bits_of(values, np.float32)]


def rows(call):
    n = 22
    words = [call.word(i) for i in range(n)]
    single = pairs(normal32, call, 2, n)
    half = np.float32(np.sqrt(0.5))
    yield "words", words
    yield "rand_float32", bits_of([(w >> 8) / 2**24 for w in words], np.float32)
    yield "rand_float64", bits_of(
        [uniform64(call.word(2 * i), call.word(2 * i + 1)) for i in range(n)], np.float64)
    yield "rand_float16", half_bits([(w >> 21) / 2**11 for w in words])
    yield "rand_bfloat16", bfloat_bits([(w >> 24) / 2**8 for w in words])
    yield "randn_float32", bits_of(single, np.float32)
    yield "randn_float64", bits_of(pairs(normal64, call, 4, n), np.float64)
    yield "randn_float16", half_bits(single)
    yield "randn_bfloat16", bfloat_bits(single)
    yield "randn_complex64", bits_of([half * v for v in single], np.float32)
    yield "exponential_float32", bits_of([minus_log32(w) for w in words], np.float32)
    yield "exponential_float64", bits_of(
        [minus_log64(call.word(2 * i), call.word(2 * i + 1)) for i in range(n)], np.float64)
    yield "bernoulli_quarter", [int(w < 2**30) for w in words]
    yield "randint_1000", [(word64(call, i) * 1000 >> 64) - 5 for i in range(n)]
    yield "randint_wide", [
        ((word64(call, 2 * i) | word64(call, 2 * i + 1) << 64) * 3 * 2**61 >> 128) - 2**62
        for i in range(n)]
    yield "randperm_22", shuffled(call, n)
    yield "randperm_10007", [permuted(call, 10007, i) for i in range(n)]


def header():
    lines = [
        "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception",
        "// Made by golden_values.py. Values of floating types as their bits.",
        "// clang-format off",
        "#pragma once",
        "",
        "#include <cstdint>",
        "#include <map>",
        "#include <string>",
        "#include <vector>",
        "",
        "struct GoldenValues {",
        "  std::uint64_t seed;",
        "  std::uint32_t stream;",
        "  std::uint64_t offset;",
        "  std::map<std::string, std::vector<std::uint64_t>> values;",
        "};",
        "",
        "inline const std::vector<GoldenValues> golden_values{",
    ]
    for seed, stream, offset in ((0, 0, 0), (0x123456789ABCDEF0, 5, 2**33 + 7)):
        lines.append("    {%du, %d, %du, {" % (seed, stream, offset))
        for name, values in rows(Call(seed, stream, offset)):
            lines.append('      {"%s", {' % name)
            lines.extend("        %s," % ", ".join("0x%xu" % (v % 2**64) for v in values[i:i + 4])
                         for i in range(0, len(values), 4))
            lines.append("      }},")
        lines.append("    }},")
    lines.append("};")
    return "\n".join(lines) + "\n"


if len(sys.argv) > 1:
    with open(sys.argv[1]) as file:
        if file.read() != header():
            sys.exit(sys.argv[1] + " does not say what this program says")
else:
    print(header(), end="")
