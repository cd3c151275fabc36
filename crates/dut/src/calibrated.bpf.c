// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * calibrated: a cross connect whose capacity is known, so that what a tester finds can be
 * compared with the truth. Five rules, each off while its parameter is 0, in this order:
 *
 *   drop_every   every Nth frame of a direction is lost;
 *   loss         each frame is lost with this chance, whatever becomes of the others;
 *   interval     a direction forwards one frame per interval, and a burst after a pause;
 *   stall_after  after N frames, both directions together, nothing is forwarded any more;
 *   stall_time   nothing either once frames came at a rate from stall_low to stall_high for so long.
 *
 * A stall ends when user space resets the device, or with stall_ends_in_pause after a pause of the frames.
 *
 * Broadcast and multicast frames are forwarded and touch neither rule nor count.
 *
 * Where there is an interval, it also counts how frames arrive: a burst are frames that follow each
 * other faster than twice the rate.
 */
#include "frame.bpf.h"
#include <bpf/bpf_helpers.h>

/* The two interfaces, by index, and the rules. Set before loading. */
const volatile __u32 interfaces[2];
const volatile __u64 drop_every;
const volatile __u64 loss;		/* in 2^-32 */
const volatile __u64 interval_ns;	/* between two frames, */
const volatile __u32 interval_fraction; /* and so many 2^-32 ns more */
const volatile __u64 tolerance_ns;
const volatile __u64 stall_after;
const volatile __u64 stall_low;	 /* frames a second */
const volatile __u64 stall_high; /* below this; 0 for any */
const volatile __u64 stall_time_ns;
const volatile __u8 stall_ends_in_pause;

/* A rate is that of the frames in a window, which a pause begins anew. */
#define WINDOW_NS 50000000ULL
#define PAUSE_NS 250000000ULL
#define SECOND_NS 1000000000ULL

/* Two for each doubling of the length: 1, 2, 3, 4, 6, 8, 12 ... 768. */
#define BUCKETS 20
#define LONGEST 1023

struct direction {
	__u64 frames;
	__u64 bytes; /* without FCS */
	__u64 forwarded;
	__u64 bursts[BUCKETS]; /* frames that came in bursts so long */
	__u64 last_ns;
	__u64 length; /* of the burst that goes on */
	__u64 due_ns; /* when the next frame is due, if frames come at the rate */
	__u64 due_fraction;
	__u64 arrived_ns; /* when the last frame came, if rates matter */
	__u64 window_ns;
	__u64 window_frames; /* since the one that began the window */
	__u64 stalling_ns;   /* so long frames have come at a rate that stalls */
};

/* 0 entered interfaces[0], 1 entered interfaces[1]. Each interface has one receive queue and
 * so one CPU at a time runs this program for it: nothing here needs to be atomic. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct direction);
} directions SEC(".maps");

/* What holds for both directions. */
struct memory {
	__u64 stalled;	 /* by stall_time */
	__u64 forwarded; /* when it was reset */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct memory);
} memory SEC(".maps");

/* Both directions run on the device's one core, one after the other, so the sum is exact. */
static bool is_stalled(const struct memory *memory)
{
	__u32 forth = 0, back = 1;
	struct direction *there = bpf_map_lookup_elem(&directions, &forth);
	struct direction *here = bpf_map_lookup_elem(&directions, &back);

	return there && here && there->forwarded + here->forwarded - memory->forwarded >= stall_after;
}

/* Notes that a frame came, and whether that makes the device stall, or ends a stall. */
static void watch_rate(struct direction *direction, struct memory *memory, __u64 now)
{
	bool pause = now - direction->arrived_ns > PAUSE_NS;
	__u64 elapsed, frames;

	direction->arrived_ns = now;
	if (pause) {
		direction->window_ns = now;
		direction->window_frames = 0;
		direction->stalling_ns = 0;
		if (stall_ends_in_pause)
			memory->stalled = 0;
		return;
	}
	frames = ++direction->window_frames * SECOND_NS;
	elapsed = now - direction->window_ns;
	if (elapsed < WINDOW_NS)
		return;
	if (frames >= stall_low * elapsed && (!stall_high || frames < stall_high * elapsed))
		direction->stalling_ns += elapsed;
	else
		direction->stalling_ns = 0;
	if (direction->stalling_ns >= stall_time_ns)
		memory->stalled = 1;
	direction->window_ns = now;
	direction->window_frames = 0;
}

/*
 * The generic cell rate algorithm, as virtual scheduling (ITU-T I.371): a frame conforms unless
 * it comes more than the tolerance before it is due. The fraction keeps the long-run rate exact
 * where the interval is not a whole number of nanoseconds.
 */
static bool conforms(struct direction *direction, __u64 now)
{
	if (direction->due_ns < now) {
		direction->due_ns = now;
		direction->due_fraction = 0;
	} else if (direction->due_ns - now > tolerance_ns) {
		return false;
	}
	direction->due_fraction += interval_fraction;
	direction->due_ns += interval_ns + (direction->due_fraction >> 32);
	direction->due_fraction &= 0xffffffff;
	return true;
}

static __u32 bucket_of(__u64 length)
{
	__u32 octave = 0;

	for (__u32 bit = 1; bit < 10; bit++)
		if (length >> bit)
			octave = bit;
	return octave ? octave * 2 + ((length >> (octave - 1)) & 1) : 0;
}

static void count_burst(struct direction *direction, __u64 now)
{
	if (now - direction->last_ns >= interval_ns / 2) {
		__u32 bucket = bucket_of(direction->length);

		if (bucket < BUCKETS)
			direction->bursts[bucket] += direction->length;
		direction->length = 0;
	}
	if (direction->length < LONGEST)
		direction->length++;
	direction->last_ns = now;
}

SEC("xdp.frags")
int calibrated(struct xdp_md *ctx)
{
	__u32 index = ctx->ingress_ifindex == interfaces[1];
	__u32 out = interfaces[!index];
	__u32 only = 0;
	struct direction *direction = bpf_map_lookup_elem(&directions, &index);
	struct memory *state = bpf_map_lookup_elem(&memory, &only);
	__u64 now = 0;

	if (!direction || !state)
		return XDP_ABORTED;
	if (is_group_addressed(ctx))
		return bpf_redirect(out, 0);

	direction->frames++;
	direction->bytes += bpf_xdp_get_buff_len(ctx);
	if (interval_ns || stall_time_ns)
		now = bpf_ktime_get_ns();
	if (interval_ns)
		count_burst(direction, now);
	if (stall_time_ns)
		watch_rate(direction, state, now);
	if (drop_every && direction->frames % drop_every == 0)
		return XDP_DROP;
	if (loss && bpf_get_prandom_u32() < loss)
		return XDP_DROP;
	if (interval_ns && !conforms(direction, now))
		return XDP_DROP;
	if (stall_after && is_stalled(state))
		return XDP_DROP;
	if (stall_time_ns && state->stalled)
		return XDP_DROP;
	direction->forwarded++;
	return bpf_redirect(out, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
