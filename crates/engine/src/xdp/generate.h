/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the generator is told, remembers and counts: for generate.bpf.c and its part taken.h. */
#pragma once

#include "shared.h"

/* Set before loading, so that the verifier removes what a frame table does not need. */
const volatile __u32 port_ifindex[DIRECTIONS];
const volatile __u32 worker_count = 1;
const volatile __u8 worker_of_cpu[MAX_CPUS]; /* plus one, so that zero means none */
/* Whether what a port sends is in the device's receive queue at once, as on a veth pair. */
const volatile bool queue_is_the_devices[DIRECTIONS];
const volatile __u32 row_count = 1;
const volatile __u32 header_words = 6;	/* header bytes / 8 */
const volatile __u32 frame_length = 60; /* of the page: the longest frame, or the header */
const volatile __u32 shortest_length = 60;
const volatile bool one_length = true; /* every frame fills its page */
const volatile bool checksums;
/* Streams that are counted apart. */
const volatile __u32 counted_streams;
/* Whether rows have distances of their own, and when each worker's first row then leaves. */
const volatile bool spaced;
const volatile __u64 first_times[MAX_WORKERS];

/* The ports, by direction: the kernel need not look for them at every frame. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, DIRECTIONS);
} ports SEC(".maps");

#define HEADER_WORDS_MAX 12

/* One frame, ready to be copied: the twin of traffic::Row. */
struct row {
	__u16 length;
	__u16 checksum_offset; /* 0: none to keep */
	__u8 stream;
	__u8 direction;
	__u8 checksum_swapped;
	__u8 checksum_zero_is_ffff;
	__u64 header[HEADER_WORDS_MAX]; /* header_words of it exist */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct row)); /* set to what the table needs */
	__uint(max_entries, 1);
} rows SEC(".maps");

/* From each row to the next of the same worker, in 2^-16 of the mean: see traffic::FrameTable::distances. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1);
} distances SEC(".maps");

/* A page full of the byte that fills payloads. */
struct filling {
	__u8 bytes[4096];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct filling);
	__uint(max_entries, 1);
} filling SEC(".maps");

/* From MODE_RATE on, departures are paced; a burst is a rate that ends, and a part one of some rows. */
enum mode { MODE_IDLE, MODE_MAX, MODE_RATE, MODE_BURST, MODE_PART };

/* The load of one interval, written before the interval is announced. */
struct load {
	__u64 start;	    /* when it is asked for: nanoseconds of the monotonic clock */
	__u64 gap;	    /* nanoseconds between departures of one worker … */
	__u64 gap_fraction; /* … and 2^-32 nanoseconds more */
	__u64 frames;	    /* of a burst or a part, all workers and directions together */
	__u64 first;	    /* of a part: the first row … */
	__u64 rows;	    /* … and how many; 0: the whole table */
	__u64 mode;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct load);
	__uint(max_entries, INTERVALS);
} loads SEC(".maps");

/* Why a port did not take a frame: the twin of engine::Untaken. */
enum reason { QUEUE_FULL, UNABLE, DOWN, GONE, TOO_LONG, OTHER, REASONS };

/* What a worker sent in one interval and direction. */
struct sent {
	__u64 frames;
	__u64 bytes;		/* without FCS */
	__u64 unsent;		/* too late: of all directions together, counted under the first */
	__u64 begun;		/* when the worker's interval really began, under the first direction */
	__u64 refused;		/* of the frames: the device's receive queue was full */
	__u64 untaken[REASONS]; /* by the port */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct sent);
	__uint(max_entries, 1); /* workers * INTERVALS * DIRECTIONS */
} sent SEC(".maps");

/* What a worker sent of one stream in one direction since the start. */
struct stream_sent {
	__u64 frames;
	__u64 bytes; /* without FCS */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct stream_sent);
	__uint(max_entries, 1); /* workers * counted streams * DIRECTIONS */
} stream_sent SEC(".maps");

struct histogram {
	__u64 counts[BUCKETS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct histogram);
	__uint(max_entries, 1); /* workers * DIRECTIONS */
} lateness SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct bins);
	__uint(max_entries, 1); /* workers * DIRECTIONS */
} sent_bins SEC(".maps");

/* The newest interval: user space counts it up, and every worker follows through all of them. */
volatile __u64 current_interval;

/* What a worker remembers from frame to frame; nobody else writes it. */
struct worker {
	__u64 interval; /* plus one, so that zero means none yet */
	__u64 mode;
	__u64 gap;
	__u64 gap_fraction;
	__u64 next; /* when the next frame is due */
	__u64 next_fraction;
	__u64 distance;	     /* from the frame before to that one, where rows have their own */
	__u64 earliest;	     /* when it may leave at the soonest, however late the worker is */
	__u64 left;	     /* frames of a burst still to come */
	__u64 now;	     /* the last reading of the clock */
	__u32 readings_left; /* frames that it may still serve for */
	__u32 row;
	__u32 row_end;	  /* where rows begin again … */
	__u32 row_span;	  /* … and how far back that is */
	__u32 failed;	  /* frames that did not fit the page: a defect */
	__u64 settled;	  /* as `interval`: what was sent of those before is final */
	__u32 direction;  /* of the frame that was redirected last */
	__u32 unreported; /* frames of which the kernel did not say what became of them */
	__s32 error;	  /* the last one that counts as OTHER */
} __attribute__((aligned(64)));

struct worker workers[MAX_WORKERS];

/* More than the kernel collects for a port (16), or runs the program for at once (64). */
#define MAX_PENDING 128
/* A frame whose lateness is not counted. */
#define UNPACED 0xffff

/*
 * Consecutive frames that are alike in all that is counted of them: they were redirected, and the kernel has
 * not said yet what became of them. Lateness at the highest rate differs by less than a bucket, and eight
 * to sixteen frames share a departure, so that most frames only go on with the run before.
 */
struct run {
	__u64 departure;
	__u64 kind; /* see kind_of */
	__u64 frames;
};

/* What frames of a run have in common beside their departure: one number, which is compared at once. */
static __always_inline __u64 kind_of(__u16 slot, __u16 length, __u16 late, __u8 stream)
{
	return slot | (__u64)length << 16 | (__u64)late << 32 | (__u64)stream << 48;
}

/* The interval of a run. */
static __always_inline __u32 slot_of(const struct run *run)
{
	return run->kind & 0xffff;
}

static __always_inline __u32 length_of(const struct run *run)
{
	return run->kind >> 16 & 0xffff;
}

/* The bucket of its lateness. */
static __always_inline __u32 late_of(const struct run *run)
{
	return run->kind >> 32 & 0xffff;
}

/* Its stream, where streams are counted apart. */
static __always_inline __u32 stream_of(const struct run *run)
{
	return run->kind >> 48 & 0xff;
}

/*
 * The frames of one worker and direction that are pending, in order. A batch of frames is redirected
 * and handed to the drivers without a break, on one CPU: while any frame is pending there, what the
 * kernel says on that CPU is of this program.
 */
struct way {
	__u32 frames;
	__u16 oldest; /* number of the first run that has frames */
	__u16 newest; /* number of the run that is added to; both begin anew when no frame is pending */
	struct run runs[MAX_PENDING];
} __attribute__((aligned(64)));

struct way ways[MAX_WORKERS][DIRECTIONS];
__u32 sequences[MAX_WORKERS][DIRECTIONS][MAX_STREAMS];

static __always_inline struct sent *sent_of(__u32 id, __u64 interval, __u32 direction)
{
	__u32 key = (id * INTERVALS + (__u32)(interval & (INTERVALS - 1))) * DIRECTIONS + direction;

	return bpf_map_lookup_elem(&sent, &key);
}

/* What worker `id` sent of a stream, where that is counted apart. */
static __always_inline struct stream_sent *stream_sent_of(__u32 id, __u32 stream, __u32 direction)
{
	__u32 key = (id * counted_streams + stream) * DIRECTIONS + direction;

	return counted_streams ? bpf_map_lookup_elem(&stream_sent, &key) : NULL;
}

/* What was sent before this interval is final once the kernel has said what became of all. */
static __always_inline void settle(struct worker *worker, __u32 id)
{
	if (!ways[id][0].frames && !ways[id][1].frames)
		worker->settled = worker->interval;
}
