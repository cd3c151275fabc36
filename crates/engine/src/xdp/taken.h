/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What became of redirected frames: the kernel's tracepoints enter, counts of what was sent, refused and not
 * taken leave. A part of generate.bpf.c.
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

static __always_inline void count_untaken(struct sent *count, enum reason reason, __u32 frames)
{
	__u32 index = reason;

	OPAQUE(index); /* the verifiers of Linux 6.1 and 6.12 do not see that a switch gives few values */
	if (index < REASONS)
		count->untaken[index] += frames;
}

/* So many frames of a run left. */
static __always_inline void count_sent(struct sent *count, __u32 id, __u32 direction, const struct run *run,
				       __u32 frames)
{
	__u32 key = id * DIRECTIONS + direction;
	struct bins *bins = bpf_map_lookup_elem(&sent_bins, &key);
	__u64 late = late_of(run);
	struct stream_sent *stream = stream_sent_of(id, stream_of(run), direction);
	struct histogram *late_counts;

	count->frames += frames;
	count->bytes += frames * length_of(run);
	if (stream) {
		stream->frames += frames;
		stream->bytes += frames * length_of(run);
	}
	if (bins)
		count_in_bin(bins, run->departure, frames);
	if (late == UNPACED)
		return;
	late_counts = bpf_map_lookup_elem(&lateness, &key);
	OPAQUE(late); /* the verifier of Linux 6.1 forgets the bound of a number that was kept on the stack */
	if (late_counts && late < BUCKETS)
		late_counts->counts[late] += frames;
}

/* What becomes of frames. */
enum fate {
	TAKEN,
	REFUSED, /* taken, and refused by the device's full queue */
	UNTAKEN,
};

/* What the kernel says of pending frames. */
struct ending {
	__u32 id;
	__u32 direction;
	__u32 frames; /* still to be counted */
	enum fate fate;
	enum reason reason;
};

/* The oldest pending run, or as much of it as `frames`, ends so. Says how many frames that were. */
static __always_inline __u32 end_oldest_run(__u32 id, __u32 direction, __u32 frames, enum fate fate,
					    enum reason reason)
{
	struct way *way = &ways[id & (MAX_WORKERS - 1)][direction & 1];
	struct run *run = &way->runs[way->oldest & (MAX_PENDING - 1)];
	__u32 some = run->frames < frames ? (__u32)run->frames : frames;
	struct sent *count = sent_of(id, slot_of(run), direction);

	if (count && fate == UNTAKEN)
		count_untaken(count, reason, some);
	else if (count)
		count_sent(count, id, direction, run, some);
	if (count && fate == REFUSED)
		count->refused += some;
	run->frames -= some;
	if (!run->frames)
		way->oldest++;
	return some;
}

/* One turn of a loop over runs. Says whether it was the last. */
static long end_run(__u32 index __attribute__((unused)), struct ending *ending)
{
	ending->frames -=
		end_oldest_run(ending->id, ending->direction, ending->frames, ending->fate, ending->reason);
	return !ending->frames;
}

/*
 * The same became of so many frames, the oldest that are pending: at the highest rate they are one run. The
 * verifier looks once at the body of this loop; of an ordinary one it takes half a second to look at every
 * turn.
 */
static __always_inline void end_oldest(__u32 id, __u32 direction, __u32 frames, enum fate fate,
				       enum reason reason)
{
	ways[id][direction].frames -= frames;
	if (frames && fate == TAKEN)
		frames -= end_oldest_run(id, direction, frames, TAKEN, OTHER);
	if (frames) {
		struct ending ending = {id, direction, frames, fate, reason};

		bpf_loop(MAX_PENDING, end_run, &ending, 0);
	}
}

/* The frame that was redirected last was not taken. */
static __always_inline void drop_newest(struct worker *worker, __u32 id, __u32 direction, enum reason reason)
{
	struct way *way = &ways[id][direction];
	struct run *run = &way->runs[way->newest & (MAX_PENDING - 1)];
	struct sent *count = sent_of(id, slot_of(run), direction);

	if (count)
		count_untaken(count, reason, 1);
	way->frames--;
	run->frames--;
	if (!run->frames && way->newest != way->oldest)
		way->newest--;
	settle(worker, id);
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

	if (!here || !way->frames || (__u32)to->ifindex != port_ifindex[direction])
		return 0;
	if (taken < 0 || drops < 0 || (__u32)taken + (__u32)drops > way->frames) {
		worker->unreported++;
		return 0;
	}
	end_oldest(id, direction, taken, TAKEN, OTHER);
	if (drops && !error && queue_is_the_devices[direction])
		end_oldest(id, direction, drops, REFUSED, OTHER);
	else if (drops)
		end_oldest(id, direction, drops, UNTAKEN, reason_of(worker, error));
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

	if (here && ways[id][direction].frames)
		drop_newest(worker, id, direction, reason_of(worker, arguments[3]));
	return 0;
}
