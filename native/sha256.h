/* SHA-256 of a stream, in the plain form of the standard.
 * Source: FIPS 180-4, sections 5.1.1 (padding) and 6.2.2 (rounds). */
#ifndef FERMIX_SHA256_H
#define FERMIX_SHA256_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sha256 {
    uint32_t state[8];
    uint64_t length;          /* bytes taken so far */
    unsigned char block[64];  /* the unfinished block */
};

static const uint32_t SHA256_ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t sha256_rotate(uint32_t word, int bits) { return word >> bits | word << (32 - bits); }

static void sha256_start(struct sha256 *hash) {
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, first, sizeof first);
    hash->length = 0;
}

static void sha256_block(struct sha256 *hash, const unsigned char *bytes) {
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++, bytes += 4)
        w[i] = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
    for (int i = 16; i < 64; i++) {
        uint32_t low = sha256_rotate(w[i - 15], 7) ^ sha256_rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t high = sha256_rotate(w[i - 2], 17) ^ sha256_rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + low + w[i - 7] + high;
    }
    memcpy(s, hash->state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t e = sha256_rotate(s[4], 6) ^ sha256_rotate(s[4], 11) ^ sha256_rotate(s[4], 25);
        uint32_t a = sha256_rotate(s[0], 2) ^ sha256_rotate(s[0], 13) ^ sha256_rotate(s[0], 22);
        uint32_t one = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + SHA256_ROUND[i] + w[i];
        uint32_t two = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++) hash->state[i] += s[i];
}

static void sha256_add(struct sha256 *hash, const void *data, size_t size) {
    const unsigned char *bytes = data;
    size_t held = hash->length % 64;
    hash->length += size;
    if (held) {
        size_t part = size < 64 - held ? size : 64 - held;
        memcpy(hash->block + held, bytes, part);
        if (held + part < 64) return;
        sha256_block(hash, hash->block);
        bytes += part;
        size -= part;
    }
    for (; size >= 64; bytes += 64, size -= 64) sha256_block(hash, bytes);
    memcpy(hash->block, bytes, size);
}

/* Write the digest as 64 lower-case hex digits and a final zero. */
static void sha256_finish(struct sha256 *hash, char hex[65]) {
    static const char digits[] = "0123456789abcdef";
    uint64_t bits = hash->length * 8;
    unsigned char tail[8];
    for (int i = 0; i < 8; i++) tail[i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_add(hash, "\x80", 1);
    while (hash->length % 64 != 56) sha256_add(hash, "", 1);
    sha256_add(hash, tail, 8);
    for (int i = 0; i < 32; i++) {
        unsigned char byte = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
        hex[2 * i] = digits[byte >> 4];
        hex[2 * i + 1] = digits[byte & 15];
    }
    hex[64] = 0;
}

#endif
