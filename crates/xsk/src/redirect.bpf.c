// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Frames that arrive at an interface enter; those that the owner of the sockets wants go to the
 * socket of their queue, all others pass to the kernel and are counted.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAX_QUEUES 64

/* Set before loading. */
const volatile bool everything;	     /* all frames but ARP and ICMPv6, whatever they end with */
const volatile bool neighbours;	     /* those two, too */
const volatile __u32 trailer_length; /* otherwise: frames whose last bytes, so many, */
const volatile __u32 trailer_begins; /* begin with these four, in the order of the network */

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, MAX_QUEUES);
} sockets SEC(".maps");

/* Frames that passed to the kernel. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1);
} passed SEC(".maps");

#define ETHERTYPE_ARP 0x0806
#define ETHERTYPE_IPV6 0x86dd
#define ETHERNET_HEADER 14
#define NEXT_HEADER (ETHERNET_HEADER + 6)
#define ICMPV6 58

/* Whether the kernel needs a frame to find neighbours. */
static __always_inline bool finds_neighbours(const __u8 *data, const __u8 *end)
{
	__u16 type;

	if (data + NEXT_HEADER + 1 > end)
		return false;
	type = (__u16)data[12] << 8 | data[13];
	return type == ETHERTYPE_ARP || (type == ETHERTYPE_IPV6 && data[NEXT_HEADER] == ICMPV6);
}

static __always_inline bool is_wanted(struct xdp_md *ctx)
{
	__u8 *data = (__u8 *)(long)ctx->data;
	__u8 *end = (__u8 *)(long)ctx->data_end;
	__u64 length = bpf_xdp_get_buff_len(ctx);
	__u64 offset;
	__u32 begins;

	if (everything)
		return neighbours || !finds_neighbours(data, end);
	if (length < trailer_length || length > 0x3fff || trailer_length < 4)
		return false;
	offset = length - trailer_length;
	if (length > (__u64)(end - data)) /* It is in several pieces. */
		return !bpf_xdp_load_bytes(ctx, offset, &begins, sizeof(begins)) && begins == trailer_begins;
	/* Keeps the compiler from computing with what it knows, so that the verifier can follow. */
	asm volatile("" : "+r"(offset));
	if (offset > 0x3fff)
		return false;
	data += offset;
	return data + 4 <= end && *(__u32 *)data == trailer_begins;
}

SEC("xdp")
int redirect(struct xdp_md *ctx)
{
	__u32 queue = ctx->rx_queue_index;
	__u32 key = 0;
	__u64 *count;

	/* A queue without a socket passes its frames. */
	if (is_wanted(ctx) && bpf_map_lookup_elem(&sockets, &queue))
		return bpf_redirect_map(&sockets, queue, XDP_PASS);
	count = bpf_map_lookup_elem(&passed, &key);
	if (count)
		(*count)++;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
