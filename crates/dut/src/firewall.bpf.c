// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * firewall: drops packets from sources that are looked up, before the kernel's stack, and passes
 * all else on to it. Frames with VLAN tags are not looked into.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Their sizes are set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __be32);
	__type(value, __u8);
} denied_v4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct in6_addr);
	__type(value, __u8);
} denied_v6 SEC(".maps");

static bool is_denied(struct xdp_md *ctx)
{
	struct ethhdr *ethernet = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;

	if ((void *)(ethernet + 1) > end)
		return false;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = (void *)(ethernet + 1);

		return (void *)(ip + 1) <= end && bpf_map_lookup_elem(&denied_v4, &ip->saddr);
	}
	if (ethernet->h_proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = (void *)(ethernet + 1);

		return (void *)(ip + 1) <= end && bpf_map_lookup_elem(&denied_v6, &ip->saddr);
	}
	return false;
}

SEC("xdp.frags")
int firewall(struct xdp_md *ctx)
{
	return is_denied(ctx) ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
