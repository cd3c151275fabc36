// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The receiver: frames that arrive at a port enter; ours are counted and end here, all others
 * pass to the kernel, so that ARP, neighbour discovery and ping keep working on a port.
 *
 * Everything is kept per CPU and so needs no lock. With several receive queues a duplicate or
 * a reordering is therefore seen within a queue, not across queues, whose order means nothing.
 */
#include "shared.h"

/* Set before loading. */
const volatile __u32 port_ifindex[DIRECTIONS];
const volatile __u32 worker_count = 1;
/* Streams that are counted apart, and those of them whose latencies are kept: the first ones. */
const volatile __u32 counted_streams;
const volatile __u32 latency_streams;

/* What came back of the frames that left in one interval and direction. */
struct received {
	__u64 frames;
	__u64 bytes;	   /* without FCS */
	__u64 latency_min; /* plus one, so that zero means none yet */
	__u64 latency_max;
	__u64 latency_sum;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct received);
	__uint(max_entries, INTERVALS *DIRECTIONS);
} received SEC(".maps");

/* Per direction, since the start. */
struct totals {
	__u64 frames;
	__u64 duplicates;
	__u64 reordered;
	__u64 returned; /* left by this port and came back by it */
	__u64 foreign;
	__u64 latency[BUCKETS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct totals);
	__uint(max_entries, DIRECTIONS);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct bins);
	__uint(max_entries, 1); /* CPUs * DIRECTIONS */
} received_bins SEC(".maps");

/*
 * Which sequence numbers of one stream, direction and worker were seen lately: a window of bits
 * behind the highest (as in RFC 6479). What is older than the window counts as reordered.
 */
#define WINDOW 1024

struct seen {
	__u64 bits[WINDOW / 64];
	__u32 next; /* one more than the highest number seen */
	__u32 padding;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct seen);
	__uint(max_entries, 1); /* streams * workers * DIRECTIONS */
} seen SEC(".maps");

/* What came back of one stream's frames in one direction since the start. */
struct stream_totals {
	__u64 frames;
	__u64 bytes; /* without FCS */
	__u64 duplicates;
	__u64 reordered;
	__u64 gaps;	   /* times that numbers were left out */
	__u64 missing;	   /* numbers left out, and not seen later */
	__u64 latency_min; /* plus one, so that zero means none yet */
	__u64 latency_max;
	__u64 latency_sum;
	__u64 last;   /* latency of the frame before */
	__u64 jitter; /* as in RFC 3550, appendix A.8: 16 times the jitter in nanoseconds */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct stream_totals);
	__uint(max_entries, 1); /* counted streams * DIRECTIONS */
} stream_totals SEC(".maps");

struct latencies {
	__u64 counts[BUCKETS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct latencies);
	__uint(max_entries, 1); /* latency streams * DIRECTIONS */
} stream_latencies SEC(".maps");

enum order { IN_ORDER, REORDERED, DUPLICATE };

/* Clears the bits of the numbers from seen->next up to and with `sequence`. */
static __always_inline void forget(struct seen *seen, __u32 sequence)
{
	__u32 ahead = sequence - seen->next;
	__u32 word, i;

	if (ahead == 0) {
		seen->bits[sequence / 64 & (WINDOW / 64 - 1)] &= ~(1ULL << (sequence & 63));
		return;
	}
	/* Rounded to whole words: a frame this close to the window's far end counts as new. */
	word = seen->next / 64;
	seen->bits[word & (WINDOW / 64 - 1)] &= (1ULL << (seen->next & 63)) - 1;
	for (i = 0; i < WINDOW / 64; i++) {
		if (word == sequence / 64)
			break;
		word++;
		seen->bits[word & (WINDOW / 64 - 1)] = 0;
	}
}

static __always_inline enum order judge(struct seen *seen, __u32 sequence)
{
	__u64 bit = 1ULL << (sequence & 63);
	__u64 *bits = &seen->bits[sequence / 64 & (WINDOW / 64 - 1)];
	__s32 ahead = (__s32)(sequence - seen->next);

	if (ahead >= 0) {
		forget(seen, sequence);
		*bits |= bit;
		seen->next = sequence + 1;
		return IN_ORDER;
	}
	/* The word that the window's end falls into is partly forgotten, so it is not judged. */
	if (ahead < -(WINDOW - 64))
		return REORDERED;
	if (*bits & bit)
		return DUPLICATE;
	*bits |= bit;
	return REORDERED;
}

static __always_inline void count_latency(struct received *count, struct totals *total, __u64 latency)
{
	total->latency[histogram_bucket(latency)]++;
	count->latency_sum += latency;
	if (latency > count->latency_max)
		count->latency_max = latency;
	if (!count->latency_min || latency + 1 < count->latency_min)
		count->latency_min = latency + 1;
}

/* Counts what the order of a frame says of its stream; `ahead` numbers were left out before it. */
static __always_inline void count_order(struct stream_totals *stream, enum order order, __u32 ahead)
{
	if (order == DUPLICATE) {
		stream->duplicates++;
	} else if (order == REORDERED) {
		stream->reordered++;
		if (stream->missing)
			stream->missing--;
	} else if (ahead) {
		stream->gaps++;
		stream->missing += ahead;
	}
}

/* Counts a frame of a stream that is counted apart. */
static __always_inline void count_stream(struct stream_totals *stream, __u32 key, __u64 length, __u64 latency)
{
	__u64 change = latency > stream->last ? latency - stream->last : stream->last - latency;
	struct latencies *latencies;

	if (stream->frames)
		stream->jitter += change - ((stream->jitter + 8) >> 4);
	stream->last = latency;
	stream->frames++;
	stream->bytes += length;
	stream->latency_sum += latency;
	if (latency > stream->latency_max)
		stream->latency_max = latency;
	if (!stream->latency_min || latency + 1 < stream->latency_min)
		stream->latency_min = latency + 1;
	if (key >= latency_streams * DIRECTIONS)
		return;
	latencies = bpf_map_lookup_elem(&stream_latencies, &key);
	if (latencies)
		latencies->counts[histogram_bucket(latency)]++;
}

SEC("xdp")
int receive(struct xdp_md *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	__u8 *data = (__u8 *)(long)ctx->data;
	__u8 *end = (__u8 *)(long)ctx->data_end;
	__u64 length = end - data;
	__u32 direction = ctx->ingress_ifindex == port_ifindex[0];
	const struct signature *signature;
	struct received *count;
	struct stream_totals *stream = NULL;
	struct totals *total;
	struct seen *window;
	struct bins *bins;
	enum order order;
	__u64 departure, latency, offset;
	__u32 key, stream_key = 0, ahead;

	total = bpf_map_lookup_elem(&totals, &direction);
	if (!total)
		return XDP_PASS;
	if (length < SIGNATURE_LENGTH || length > 0x3fff)
		goto foreign;
	offset = length - SIGNATURE_LENGTH;
	OPAQUE(offset);
	signature = (const struct signature *)(data + offset);
	if ((__u8 *)signature + SIGNATURE_LENGTH > end)
		goto foreign;
	if (signature->magic != bpf_htonl(MAGIC))
		goto foreign;
	if (signature->lane >> 7 != direction) {
		total->returned++;
		return XDP_DROP;
	}

	key = ((signature->stream * worker_count) + (signature->lane & 0x7f)) * DIRECTIONS + direction;
	window = bpf_map_lookup_elem(&seen, &key);
	if (!window)
		goto foreign;
	ahead = bpf_ntohl(signature->sequence) - window->next;
	order = judge(window, bpf_ntohl(signature->sequence));
	if (counted_streams) {
		stream_key = signature->stream * DIRECTIONS + direction;
		stream = bpf_map_lookup_elem(&stream_totals, &stream_key);
		if (stream)
			count_order(stream, order, ahead);
	}
	if (order == DUPLICATE) {
		total->duplicates++;
		return XDP_DROP;
	}
	if (order == REORDERED)
		total->reordered++;

	key = (bpf_ntohs(signature->interval) & (INTERVALS - 1)) * DIRECTIONS + direction;
	count = bpf_map_lookup_elem(&received, &key);
	if (!count)
		goto foreign;
	total->frames++;
	count->frames++;
	count->bytes += length;
	departure = (__u64)bpf_ntohs(signature->departure_high) << 32 | bpf_ntohl(signature->departure_low);
	latency = (now - departure) & DEPARTURE_MASK;
	count_latency(count, total, latency);
	if (stream)
		count_stream(stream, stream_key, length, latency);
	key = bpf_get_smp_processor_id() * DIRECTIONS + direction;
	bins = bpf_map_lookup_elem(&received_bins, &key);
	if (bins)
		count_in_bin(bins, now - latency, 1);
	return XDP_DROP;

foreign:
	total->foreign++;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
