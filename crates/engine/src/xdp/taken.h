/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What became of redirected frames: the kernel's tracepoints enter, the counts of what was sent are put
 * right. A part of generate.bpf.c.
 */
#pragma once

/* As much of the kernel's type as is needed; where it stands is found when the program is loaded. */
struct net_device {
	int ifindex;
} __attribute__((preserve_access_index));

/* The error numbers of asm-generic/errno.h that drivers and the kernel's redirect answer with. */
#define ENXIO 6
#define ENODEV 19
#define EINVAL 22
#define EMSGSIZE 90
#define EOPNOTSUPP 95
#define ENETDOWN 100

static __always_inline enum reason reason_of(struct worker *worker, int error)
{
	switch (-error) {
	case 0:
		return QUEUE_FULL;
	case EOPNOTSUPP:
	case ENXIO:
		return UNABLE;
	case ENETDOWN:
		return DOWN;
	case EINVAL:
	case ENODEV:
		return GONE;
	case EMSGSIZE:
		return TOO_LONG;
	default:
		worker->error = error;
		return OTHER;
	}
}

/* A frame was counted as sent, and its port did not take it. */
static __always_inline void take_back(__u32 id, __u32 direction, const struct pending *pending,
				      enum reason reason)
{
	struct sent *count = sent_of(id, pending->slot, direction);
	__u32 index = reason;
	__u32 number = pending->departure >> BIN_SHIFT;
	__u32 key = id * DIRECTIONS + direction;
	__u32 late = pending->late;
	struct stream_sent *stream = stream_sent_of(id, pending->stream, direction);
	struct histogram *late_counts;
	struct bins *bins;
	struct bin *bin;

	if (count) {
		count->frames--;
		count->bytes -= pending->length;
		/* The verifiers of Linux 6.1 and 6.12 do not see that a switch gives few values. */
		asm volatile("" : "+r"(index));
		if (index < REASONS)
			count->untaken[index]++;
	}
	if (stream) {
		stream->frames--;
		stream->bytes -= pending->length;
	}
	bins = bpf_map_lookup_elem(&sent_bins, &key);
	if (bins) {
		bin = &bins->bins[number & (BINS - 1)];
		if (bin->number == number && bin->frames)
			bin->frames--;
	}
	late_counts = bpf_map_lookup_elem(&lateness, &key);
	if (late_counts && late < BUCKETS)
		late_counts->counts[late]--;
}

/* The frame that was redirected last was not taken. */
static __always_inline void drop_newest(struct worker *worker, __u32 id, __u32 direction, enum reason reason)
{
	struct way *way = &ways[id][direction];

	way->count--;
	take_back(id, direction, &way->frames[(way->first + way->count) & (MAX_PENDING - 1)], reason);
	settle(worker, id);
}

/* The oldest pending frames were not taken; or were, and the device's full queue refused them. */
static __always_inline void drop_oldest(struct worker *worker, __u32 id, __u32 direction, __u32 drops,
					int error)
{
	struct way *way = &ways[id][direction];
	bool offered = !error && queue_is_the_devices[direction];
	enum reason reason = reason_of(worker, error);
	const struct pending *pending;
	struct sent *count = NULL;
	__u32 i, slot = INTERVALS;

	for (i = 0; i < MAX_PENDING; i++) {
		if (i >= drops)
			break;
		pending = &way->frames[(way->first + i) & (MAX_PENDING - 1)];
		if (!offered) {
			take_back(id, direction, pending, reason);
			continue;
		}
		if (pending->slot != slot) {
			slot = pending->slot;
			count = sent_of(id, slot, direction);
		}
		if (count)
			count->refused++;
	}
	way->first += drops;
	way->count -= drops;
}

/* The worker of this CPU, plus one; zero if there is none. */
static __always_inline __u32 worker_here(void)
{
	return worker_of_cpu[bpf_get_smp_processor_id() & (MAX_CPUS - 1)];
}

/* A driver was handed pending frames, of which it took the first ones: (from, to, sent, drops, err). */
SEC("tp_btf/xdp_devmap_xmit")
int count_taken(__u64 *arguments)
{
	const struct net_device *to = (const struct net_device *)arguments[1];
	int taken = arguments[2], drops = arguments[3], error = arguments[4];
	__u32 here = worker_here(), id = (here - 1) & (MAX_WORKERS - 1);
	__u32 direction = (__u32)to->ifindex == port_ifindex[1];
	struct worker *worker = &workers[id];
	struct way *way = &ways[id][direction];

	if (!here || !way->count || (__u32)to->ifindex != port_ifindex[direction])
		return 0;
	if (taken < 0 || drops < 0 || (__u32)taken + (__u32)drops > way->count) {
		worker->unreported++;
		return 0;
	}
	way->first += taken;
	way->count -= taken;
	if (drops)
		drop_oldest(worker, id, direction, drops, error);
	settle(worker, id);
	return 0;
}

/* The frame that was redirected last was not even collected: (dev, xdp, tgt, err, ...). */
SEC("tp_btf/xdp_redirect_err")
int count_refused(__u64 *arguments)
{
	__u32 here = worker_here(), id = (here - 1) & (MAX_WORKERS - 1);
	struct worker *worker = &workers[id];
	__u32 direction = worker->direction & 1;

	if (here && ways[id][direction].count)
		drop_newest(worker, id, direction, reason_of(worker, arguments[3]));
	return 0;
}
