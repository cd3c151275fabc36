/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the generator and the receiver agree on, and what user space (the skeletons that bpf-build makes)
 * knows of them. The signature is described in the crate wire, module signature.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAX_WORKERS 16
#define MAX_CPUS 512
/* Intervals whose counts are kept; a power of two, so that the 16 bits on the wire suffice. */
#define INTERVALS 4096
#define DIRECTIONS 2
#define MAX_STREAMS 256

/*
 * It may stand at any address. The alignment claimed here only lets the compiler use whole words,
 * which the kernel permits wherever the processor does; it also pads the struct, so its length
 * on the wire has a name of its own.
 */
#define SIGNATURE_LENGTH 18

struct signature {
	__be32 magic;
	__u8 stream;
	__u8 lane; /* bit 7: direction, bits 0-6: worker */
	__be16 interval;
	__be32 sequence;
	__be16 departure_high;
	__be32 departure_low;
} __attribute__((packed, aligned(4)));

#define MAGIC (((__u32)'L' << 24) | ((__u32)'n' << 16) | ((__u32)'r' << 8) | (__u32)'t')
#define DEPARTURE_MASK ((1ULL << 48) - 1)

/* Keeps the compiler from computing with what it knows of a value, so that the verifier can follow. */
#define OPAQUE(value) asm volatile("" : "+r"(value))

/* The log-linear histogram of the crate stats, module histogram. */
#define PRECISION_BITS 5
#define MAX_BITS 35
#define BUCKETS ((MAX_BITS - PRECISION_BITS + 1) << PRECISION_BITS)

/* Frames by when they left, in bins of 2^20 ns (1.05 ms), of which the last ones are kept. */
#define BIN_SHIFT 20
#define BINS 8192

struct bin {
	__u32 number; /* bins since the clock began */
	__u32 frames;
};

struct bins {
	struct bin bins[BINS];
};

/* Counts frames that left at `departure`. Of bins that share a place, the newest has it. */
static __always_inline void count_in_bin(struct bins *bins, __u64 departure, __u32 frames)
{
	__u32 number = departure >> BIN_SHIFT;
	struct bin *bin = &bins->bins[number & (BINS - 1)];

	if (bin->number != number) {
		if ((__s32)(bin->number - number) > 0)
			return;
		bin->number = number;
		bin->frames = 0;
	}
	bin->frames += frames;
}

/* The position of the highest set bit of a value that is not zero. */
static __always_inline __u32 log2_floor(__u64 value)
{
	__u32 log = 0;

	if (value >> 32) {
		value >>= 32;
		log += 32;
	}
	if (value >> 16) {
		value >>= 16;
		log += 16;
	}
	if (value >> 8) {
		value >>= 8;
		log += 8;
	}
	if (value >> 4) {
		value >>= 4;
		log += 4;
	}
	if (value >> 2) {
		value >>= 2;
		log += 2;
	}
	return log + (value >> 1);
}

/* Always below BUCKETS. */
static __always_inline __u32 histogram_bucket(__u64 value)
{
	__u32 bucket = value;
	__u32 shift;

	if (value >> MAX_BITS)
		return BUCKETS - 1;
	if (value >> PRECISION_BITS) {
		shift = log2_floor(value) - PRECISION_BITS;
		bucket = ((shift + 1) << PRECISION_BITS) + (__u32)(value >> shift) - (1 << PRECISION_BITS);
	}
	OPAQUE(bucket);
	return bucket < BUCKETS ? bucket : BUCKETS - 1; /* for the verifier, which cannot follow */
}
