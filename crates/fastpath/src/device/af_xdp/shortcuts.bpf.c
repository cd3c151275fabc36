// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Frames that arrive at an interface enter. One that the router said a shortcut for leaves by another
 * interface at once, as a worker would send it; all others go to the socket of their queue.
 *
 * A worker has to look at whatever is not plain forwarding: options, an expiring time to live, a wrong
 * sum, a source that none may have, a packet longer than the MTU, frames of other stations, frames with
 * tags, frames longer than their packets.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAX_QUEUES 64
#define MAX_DEVICES 256
#define MAX_SHORTCUTS 65536
/* The shortest frame: what its packet does not need is filled up. */
#define SHORTEST 60

/* Set before loading: the router's number of the device. */
const volatile __u32 device;

/* Packets that arrive at a device and go to an address; one of IPv4 is ::ffff:a.b.c.d. */
struct flow {
	__u32 device;
	__be32 address[4];
};

struct shortcut {
	__u64 edition;		   /* that the router was at when it said so */
	__u32 interface;	   /* the kernel's index of that which they leave by */
	__u32 device;		   /* the router's number of it */
	__u8 arrives[ETH_ALEN];	   /* the router's own address where they arrive */
	__u8 leaves[2 * ETH_ALEN]; /* destination and source of the frames that leave */
	__u16 mtu;
};

struct counts {
	__u64 received;
	__u64 received_bytes;
	__u64 sent;
	__u64 sent_bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, MAX_QUEUES);
} sockets SEC(".maps");

/* All interfaces of a router share the maps that follow. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct flow);
	__type(value, struct shortcut);
	__uint(max_entries, MAX_SHORTCUTS);
} shortcuts SEC(".maps");

/* The router's edition now: shortcuts of another one may be wrong, and are not taken. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1);
} edition SEC(".maps");

/* By device: frames that took a shortcut. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct counts);
	__uint(max_entries, MAX_DEVICES);
} taken SEC(".maps");

/* The ones' complement sum of a header without options; 0xffff where its own is right (RFC 1071). */
static __always_inline __u32 sum(const struct iphdr *ip)
{
	const __u16 *word = (const __u16 *)ip;
	__u32 sum = 0;

#pragma unroll
	for (int at = 0; at < 10; at++)
		sum += word[at];
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* Whether no host may send from it (RFC 1812, 5.3.7). */
static __always_inline bool is_no_source(__be32 address)
{
	__u8 first = bpf_ntohl(address) >> 24;

	return first == 0 || first == 127 || first >= 224;
}

/* Whether it is a group's, of its link alone, or a special one: these begin with zeros. */
static __always_inline bool is_special(const struct in6_addr *address)
{
	__u16 first = bpf_ntohs(address->s6_addr16[0]);

	return first >= 0xff00 || (first & 0xffc0) == 0xfe80 ||
	       (address->s6_addr32[0] | address->s6_addr32[1]) == 0;
}

/* The bytes of a packet, and to where it goes; 0 where a worker has to look at it. */
static __always_inline __u32 ip4(const struct iphdr *ip, struct flow *flow)
{
	if (ip->version != 4 || ip->ihl != 5 || ip->ttl <= 1)
		return 0;
	if (is_no_source(ip->saddr) || sum(ip) != 0xffff)
		return 0;
	flow->address[2] = bpf_htonl(0xffff);
	flow->address[3] = ip->daddr;
	return bpf_ntohs(ip->tot_len);
}

static __always_inline __u32 ip6(const struct ipv6hdr *ip, struct flow *flow)
{
	/* Options for every router on the way come first, if there are any (RFC 8200, 4.3). */
	if (ip->version != 6 || ip->hop_limit <= 1 || ip->nexthdr == 0 || is_special(&ip->saddr))
		return 0;
	__builtin_memcpy(flow->address, &ip->daddr, sizeof(flow->address));
	return sizeof(*ip) + bpf_ntohs(ip->payload_len);
}

static __always_inline bool is_to(const struct ethhdr *ethernet, const __u8 *address)
{
	__u8 differs = 0;

#pragma unroll
	for (int at = 0; at < ETH_ALEN; at++)
		differs |= ethernet->h_dest[at] ^ address[at];
	return !differs;
}

/* Whether a packet of that length ends with its frame, or is in one that is as short as frames can be. */
static __always_inline bool fills(__u32 packet, __u32 frame)
{
	__u32 wanted = ETH_HLEN + packet;

	return wanted == frame || (frame == SHORTEST && wanted < frame);
}

/* The shortcut that a frame may take, if there is one. */
static __always_inline const struct shortcut *find(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	const struct ethhdr *ethernet = (void *)(long)ctx->data;
	const struct iphdr *ip = (const void *)(ethernet + 1);
	struct flow flow = {.device = device};
	const struct shortcut *found;
	const __u64 *now;
	__u32 packet, seen = end - (void *)ethernet, first = 0;

	if ((void *)(ip + 1) > end)
		return NULL;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP))
		packet = ip4(ip, &flow);
	else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6) && (void *)ip + sizeof(struct ipv6hdr) <= end)
		packet = ip6((const void *)ip, &flow);
	else
		return NULL;
	/* A frame in several pieces is longer than what is seen of it here. */
	if (!packet || bpf_xdp_get_buff_len(ctx) != seen || !fills(packet, seen))
		return NULL;
	found = bpf_map_lookup_elem(&shortcuts, &flow);
	now = bpf_map_lookup_elem(&edition, &first);
	if (!found || !now || found->edition != *now)
		return NULL;
	return packet <= found->mtu && is_to(ethernet, found->arrives) ? found : NULL;
}

/* One hop less. The sum of a header of IPv4 stays right: the word that holds the time to live shrinks
 * by 0x0100 (RFC 1624). */
static __always_inline void hop(const struct ethhdr *ethernet, struct iphdr *ip)
{
	__u32 check;

	if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) {
		((struct ipv6hdr *)ip)->hop_limit--;
		return;
	}
	check = ip->check + bpf_htons(0x0100);
	ip->check = check + (check >= 0xffff);
	ip->ttl--;
}

static __always_inline void count(__u32 from, __u32 to, __u32 length)
{
	struct counts *counts = bpf_map_lookup_elem(&taken, &from);

	if (counts) {
		counts->received++;
		counts->received_bytes += length;
	}
	counts = bpf_map_lookup_elem(&taken, &to);
	if (counts) {
		counts->sent++;
		counts->sent_bytes += length;
	}
}

SEC("xdp")
int forward(struct xdp_md *ctx)
{
	const struct shortcut *found = find(ctx);
	void *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(ethernet + 1);

	if (!found || (void *)(ip + 1) > end)
		return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
	hop(ethernet, ip);
	__builtin_memcpy(ethernet, found->leaves, sizeof(found->leaves));
	count(device, found->device, end - (void *)ethernet);
	return bpf_redirect(found->interface, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
