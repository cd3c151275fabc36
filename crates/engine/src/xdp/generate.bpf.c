// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The generator: the frame table enters, paced frames leave by the ports.
 *
 * User space runs this program with BPF_PROG_RUN on live frames, one thread (worker) a core.
 * The kernel calls it over and over with a recycled frame, 64 times a batch. While no frame is
 * due it returns XDP_DROP, which costs some 60 ns; a due frame is written in full, since a
 * device may have rewritten it on its last journey, and redirected to its port.
 *
 * A redirected frame has not left yet: the kernel collects up to 16 of a port and hands them to its
 * driver, which may take fewer. It is remembered until the kernel says what became of it, and counted then,
 * by count_taken and count_refused: once for all frames of a run.
 */
#include "generate.h"
#include "taken.h"

/* A worker that is further behind than this gives the missed frames up: they are unsent. */
#define GIVE_UP_NS (10 * 1000 * 1000)
/* A late worker catches up at most 1/15 faster than asked, but for what it missed in this time. */
#define CATCH_UP_NS (20 * 1000)
/* A worker that is further behind than this catches up 1/7 faster instead, before it must give frames up. */
#define HURRY_NS (GIVE_UP_NS / 2)
/*
 * Paced frames that follow silence begin this long after they are asked for: user space may share
 * a worker's core, and goes on with what it does. Until then all workers follow, and begin at once.
 */
#define LEAD_NS (1000 * 1000)

/*
 * A reading of the clock serves for this many frames, if they were due by it: a worker at its limit
 * has no time to read the clock for each, and they leave in one burst anyway. At the highest rate they are
 * those that the kernel hands to a driver at once, so that all of them are counted together.
 */
#define FRAMES_PER_READING 8
#define FRAMES_PER_READING_AT_MAX 16

/* Whether frames leave at the distances of their rows. */
static __always_inline bool is_spaced(const struct worker *worker)
{
	return spaced && worker->mode == MODE_RATE;
}

/* So many mean distances, in 2^-16 of them, where one has `gap` nanoseconds; the rest in 2^-32 of them. */
static __always_inline __u64 scaled(__u64 gap, __u64 distance, __u64 *rest)
{
	__u64 product = gap * distance;

	*rest = 0;
	if (gap >> 24) /* keeps the product within 64 bits */
		return (gap >> 12) * distance >> 4;
	*rest = (product & 0xffff) << 16;
	return product >> 16;
}

/* The next frame is due after the one at hand: says how far that is. */
static __always_inline __u64 go_on(struct worker *worker)
{
	__u64 gap = worker->gap, rest = worker->gap_fraction;

	if (is_spaced(worker)) {
		__u32 key = worker->row;
		__u64 *distance = bpf_map_lookup_elem(&distances, &key);

		if (distance) {
			gap = scaled(worker->gap, *distance, &rest);
			rest += (worker->gap_fraction >> 16) * *distance;
		}
		worker->distance = gap;
	}
	worker->next_fraction += rest;
	worker->next += gap + (worker->next_fraction >> 32);
	worker->next_fraction &= 0xffffffff;
	return gap;
}

static __always_inline void go_on_to_next_row(struct worker *worker)
{
	worker->row += worker_count;
	if (worker->row >= worker->row_end)
		worker->row -= worker->row_span;
}

/* A frame leaves now: says when the next one is due, and when it may leave at the soonest. */
static __always_inline void advance(struct worker *worker, __u64 now)
{
	bool hurries = (__s64)(now - HURRY_NS - worker->next) >= 0;
	__u64 gap;

	if ((__s64)(now - CATCH_UP_NS - worker->earliest) > 0)
		worker->earliest = now - CATCH_UP_NS;
	gap = go_on(worker);
	worker->earliest += gap - (gap >> (hurries ? 3 : 4));
}

static __always_inline void count_unsent(struct worker *worker, __u32 id, __u64 frames)
{
	struct sent *count = sent_of(id, worker->interval - 1, 0);

	if (count)
		count->unsent += frames;
}

/* So many frames of a burst or a part have left, or will not: the last one ends it. */
static __always_inline void end_burst_after(struct worker *worker, __u64 frames)
{
	worker->left -= frames;
	if (!worker->left)
		worker->mode = MODE_IDLE;
}

/*
 * Gives up the frames that were due for `late` nanoseconds: they count as unsent. In units of 2^-32 ns,
 * so that none is given up that is not due yet; 63 bits of them hold two seconds, and what is due for
 * longer is given up the next time.
 */
static __always_inline void give_up(struct worker *worker, __u32 id, __u64 late)
{
	__u64 gap = worker->gap >> 32 ? ~0ULL : worker->gap << 32 | worker->gap_fraction;
	__u64 owed, missed, fraction;

	if (is_spaced(worker)) { /* one frame at a time, and its row is left out */
		count_unsent(worker, id, 1);
		go_on(worker);
		go_on_to_next_row(worker);
		return;
	}
	if (!gap)
		return;
	if (late >> 31)
		late = 0x7fffffff;
	owed = (late << 32 | 0xffffffff) - worker->next_fraction;
	missed = owed / gap + 1;
	if (worker->mode >= MODE_BURST && missed > worker->left)
		missed = worker->left;
	count_unsent(worker, id, missed);
	fraction = missed * worker->gap_fraction + worker->next_fraction;
	worker->next += missed * worker->gap + (fraction >> 32);
	worker->next_fraction = fraction & 0xffffffff;
	if (worker->mode >= MODE_BURST)
		end_burst_after(worker, missed);
}

/* What is left of `rest`, a part of the gap `from`, when the gap becomes `to`. */
static __always_inline __u64 rescale(__u64 rest, __u64 from, __u64 to)
{
	__u64 whole;

	if (!from)
		return 0;
	whole = rest / from * to; /* more than nothing after the pause of a profile */
	rest %= from;
	if (from >> 24) /* keeps the product within 64 bits */
		return whole + (rest >> 12) * to / (from >> 12);
	return whole + rest * to / from;
}

/*
 * Where a rate ends for a worker: when the next load is asked for, or after the last departure that
 * was due, if the worker heard of it late and went on.
 */
static __always_inline __u64 end_of_rate(const struct worker *worker, const struct load *next)
{
	__u64 departed = worker->next - (spaced ? worker->distance : worker->gap) + 1;

	return (__s64)(departed - next->start) > 0 ? departed : next->start;
}

/*
 * When a load begins that does not go on from a rate: never before the worker takes it up, so that it
 * owes no frames and need not catch up. A part has its time in a schedule.
 */
static __always_inline __u64 begin_of(const struct worker *worker, const struct load *load)
{
	bool silent = worker->mode == MODE_IDLE || load->mode == MODE_BURST;
	__u64 begin = load->start + (load->mode >= MODE_RATE && silent ? LEAD_NS : 0);
	__u64 now = bpf_ktime_get_ns();

	if (load->mode == MODE_PART)
		return load->start;
	return begin > now ? begin : now;
}

/*
 * Takes over the load of the next interval. From one rate to the next, the part of a gap still to come
 * is kept, so that the number of departures is the integral of the rate.
 * A burst begins with the first row, of which each worker has its own, so that all bursts of a size
 * are alike and have as many frames in each direction; a part begins with the first of its own, and so does a
 * rate where rows have distances of their own.
 */
static __always_inline void follow(struct worker *worker, __u32 id, const struct load *load)
{
	bool had_rate = worker->mode == MODE_RATE, goes_on = had_rate && load->mode == MODE_RATE;
	__u64 begun = had_rate ? end_of_rate(worker, load) : begin_of(worker, load);
	__u64 first = id * load->gap / worker_count, rest;
	struct sent *count;

	if (spaced && load->mode == MODE_RATE)
		first = scaled(load->gap, first_times[id & (MAX_WORKERS - 1)], &rest);
	if (goes_on) {
		worker->next = begun + rescale(worker->next - begun, worker->gap, load->gap);
		if ((__s64)(worker->earliest - begun) > 0)
			worker->earliest = begun + rescale(worker->earliest - begun, worker->gap, load->gap);
		if (spaced)
			worker->distance = rescale(worker->distance, worker->gap, load->gap);
	} else {
		if (worker->mode == MODE_BURST)
			count_unsent(worker, id, worker->left);
		worker->next = (had_rate ? begin_of(worker, load) : begun) + first;
		worker->distance = first + load->gap;
		worker->next_fraction = 0;
		worker->earliest = worker->next;
	}
	if (!worker->interval || load->mode >= MODE_BURST || worker->row_span != row_count ||
	    (spaced && !goes_on)) {
		worker->row = (__u32)load->first + id;
		worker->row_span = load->rows ? (__u32)load->rows : row_count;
		worker->row_end = (__u32)load->first + worker->row_span;
	}
	worker->mode = load->mode;
	worker->gap = load->gap;
	worker->gap_fraction = load->gap_fraction;
	worker->interval++;
	settle(worker, id);
	worker->readings_left = 0;
	if (load->mode >= MODE_BURST) {
		worker->left = (load->frames + worker_count - 1 - id) / worker_count;
		end_burst_after(worker, 0);
	}
	count = sent_of(id, worker->interval - 1, 0);
	if (count)
		count->begun = begun;
}

/*
 * Goes on to the next interval, once all frames have left that were due before it was asked for: a
 * frame belongs to the interval that it was due in, and those too late are given up as ever.
 */
static __always_inline void follow_in_time(struct worker *worker, __u32 id)
{
	__u32 slot = worker->interval & (INTERVALS - 1); /* counted from one, so this is the next */
	struct load *load = bpf_map_lookup_elem(&loads, &slot);

	if (!load)
		return;
	if (worker->mode >= MODE_RATE && worker->next < load->start) {
		if (bpf_ktime_get_ns() <= worker->next + GIVE_UP_NS)
			return;
		give_up(worker, id, load->start - 1 - worker->next);
		if (worker->mode >= MODE_RATE && worker->next < load->start)
			return;
	}
	follow(worker, id, load);
}

/*
 * Writes the payload anew: a shorter frame may have left its signature there. What follows the header
 * of the shortest frame is its own signature, so that one needs nothing.
 */
static __always_inline bool fill(struct xdp_md *ctx, __u32 length)
{
	__u32 header = header_words * 8, zero = 0;
	struct filling *full = bpf_map_lookup_elem(&filling, &zero);
	__u32 room = length - SIGNATURE_LENGTH - header;

	if (length <= shortest_length || length < SIGNATURE_LENGTH + header + 1)
		return true;
	OPAQUE(room);
	room &= 0xfff; /* for the verifier: within a page */
	return full && room && !bpf_xdp_store_bytes(ctx, header, full, room);
}

/* Writes a row's header, the signature and what the checksum then must be. */
static __always_inline bool write_frame(struct xdp_md *ctx, const struct row *row, struct worker *worker,
					__u32 id, __u64 now)
{
	__u8 *data = (__u8 *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u32 length = one_length ? frame_length : row->length;
	__u32 direction = row->direction & 1;
	__u32 sequence = sequences[id][direction][row->stream]++;
	__u64 departure = now & DEPARTURE_MASK;
	struct signature *signature;
	__u64 offset;
	__u32 i;

	offset = length - SIGNATURE_LENGTH;
	OPAQUE(offset);
	offset &= 0xfff; /* for the verifier: within a page */
	signature = (struct signature *)(data + offset);
	if (data + header_words * 8 > (__u8 *)end || (void *)signature + SIGNATURE_LENGTH > end)
		return false;

	for (i = 0; i < HEADER_WORDS_MAX; i++) {
		if (i == header_words)
			break;
		((__u64 *)data)[i] = row->header[i];
	}

	signature->magic = bpf_htonl(MAGIC);
	signature->stream = row->stream;
	signature->lane = direction << 7 | id;
	signature->interval = bpf_htons((__u16)(worker->interval - 1));
	signature->sequence = bpf_htonl(sequence);
	signature->departure_high = bpf_htons((__u16)(departure >> 32));
	signature->departure_low = bpf_htonl((__u32)departure);

	if (checksums && row->checksum_offset) {
		__be16 *field = (__be16 *)(data + (row->checksum_offset & 0x7f));
		__u64 sum;

		if ((void *)(field + 1) > end)
			return false;
		/* RFC 1624: the new sum is the old one plus what was added to zeroes. */
		sum = ((__u32)row->stream << 8 | signature->lane) + (__u16)(worker->interval - 1) +
		      (sequence >> 16) + (sequence & 0xffff) + (departure >> 32) +
		      (departure >> 16 & 0xffff) + (departure & 0xffff);
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		if (row->checksum_swapped)
			sum = (sum & 0xff) << 8 | sum >> 8;
		sum += (__u16)~bpf_ntohs(*field);
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		sum = ~sum & 0xffff;
		if (!sum && row->checksum_zero_is_ffff)
			sum = 0xffff;
		*field = bpf_htons((__u16)sum);
	}
	return true;
}

static __always_inline bool is_due(const struct worker *worker, __u64 now)
{
	return (__s64)(now - worker->next) >= 0 && (__s64)(now - worker->earliest) >= 0;
}

/* The time, by the last reading if the next frame is due by that. */
static __always_inline __u64 read_clock(struct worker *worker)
{
	if (worker->readings_left && (worker->mode == MODE_MAX || is_due(worker, worker->now))) {
		worker->readings_left--;
		return worker->now;
	}
	worker->now = bpf_ktime_get_ns();
	worker->readings_left =
		(worker->mode == MODE_MAX ? FRAMES_PER_READING_AT_MAX : FRAMES_PER_READING) - 1;
	return worker->now;
}

/* Remembers a frame that is redirected now. */
static __always_inline void expect(struct worker *worker, __u32 id, const struct row *row, __u64 departure,
				   __u32 length, __u32 late)
{
	__u32 direction = row->direction & 1;
	struct way *way = &ways[id][direction];
	struct run *run = &way->runs[way->newest & (MAX_PENDING - 1)];
	__u64 kind = kind_of((worker->interval - 1) & (INTERVALS - 1), length, late,
			     counted_streams ? row->stream : 0);

	worker->direction = direction;
	if (way->frames >= MAX_PENDING) {
		worker->unreported += way->frames;
		way->frames = 0;
	}
	if (way->frames++) {
		if (run->departure == departure && run->kind == kind) {
			run->frames++;
			return;
		}
		way->newest++;
	} else {
		way->oldest = 0;
		way->newest = 0;
	}
	run = &way->runs[way->newest & (MAX_PENDING - 1)];
	run->departure = departure;
	run->kind = kind;
	run->frames = 1;
}

/*
 * A card's driver may move the frame's start for a header of its own (virtio_net). Linux 6.1 sends a page
 * that comes back from there as it is then, shifted and longer, unless the program changed the frame's
 * bounds: metadata of 4 bytes, which no driver sends, are such a change.
 */
static __always_inline bool begins_where_it_was(struct xdp_md *ctx, __u32 direction)
{
	return queue_is_the_devices[direction & 1] || !bpf_xdp_adjust_meta(ctx, -4);
}

SEC("xdp")
int generate(struct xdp_md *ctx)
{
	__u32 id = (worker_of_cpu[bpf_get_smp_processor_id() & (MAX_CPUS - 1)] - 1) & (MAX_WORKERS - 1);
	struct worker *worker = &workers[id];
	struct row *row;
	__u32 length, key, direction, late_bucket = UNPACED;
	__u64 now, late = 0;
	int verdict;

	if (worker->interval != current_interval + 1)
		follow_in_time(worker, id);
	if (worker->mode == MODE_IDLE)
		return XDP_DROP;
	now = read_clock(worker);
	if (worker->mode >= MODE_RATE) {
		if (!is_due(worker, now))
			return XDP_DROP;
		late = now - worker->next;
		if (late > GIVE_UP_NS) {
			give_up(worker, id, late);
			return XDP_DROP;
		}
	}

	key = worker->row;
	row = bpf_map_lookup_elem(&rows, &key);
	if (!row)
		return XDP_ABORTED;
	direction = row->direction & 1;
	length = one_length ? frame_length : row->length;
	if ((!one_length && !fill(ctx, length)) || !write_frame(ctx, row, worker, id, now) ||
	    (!one_length && bpf_xdp_adjust_tail(ctx, (int)length - (int)frame_length)) ||
	    !begins_where_it_was(ctx, direction)) {
		worker->failed++;
		return XDP_ABORTED;
	}

	if (worker->mode >= MODE_RATE) {
		late_bucket = histogram_bucket(late);
		advance(worker, now);
		if (worker->mode >= MODE_BURST)
			end_burst_after(worker, 1);
	}
	go_on_to_next_row(worker);
	expect(worker, id, row, now, length, late_bucket);
	verdict = bpf_redirect_map(&ports, direction, XDP_DROP);
	if (verdict != XDP_REDIRECT)
		drop_newest(worker, id, direction, GONE);
	return verdict;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
