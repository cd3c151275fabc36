// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * xdp-router: forwards IPv4 and IPv6 by the kernel's own routes and neighbours, without the
 * kernel's stack. Whatever is not plain forwarding goes up to the kernel: ARP and neighbour
 * discovery, frames for the router itself, IPv4 options, an expiring TTL, an unresolved
 * neighbour, a frame too large for the way out.
 */
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define AF_INET 2
#define AF_INET6 10
#define IPV6_FLOWINFO_MASK bpf_htonl(0x0fffffff)

/* The header less one hop, its checksum kept right (RFC 1624: the sum of the header's other
 * words does not change, and the word that holds the TTL shrinks by 0x0100). */
static void decrement_ttl(struct iphdr *ip)
{
	__u32 checksum = ip->check;

	checksum += bpf_htons(0x0100);
	ip->check = checksum + (checksum >= 0xffff);
	ip->ttl--;
}

static bool look_up_ipv4(struct bpf_fib_lookup *fib, struct iphdr *ip, void *end)
{
	if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl != 5 || ip->ttl <= 1)
		return false;
	fib->family = AF_INET;
	fib->tos = ip->tos;
	fib->l4_protocol = ip->protocol;
	fib->tot_len = bpf_ntohs(ip->tot_len);
	fib->ipv4_src = ip->saddr;
	fib->ipv4_dst = ip->daddr;
	return true;
}

static bool look_up_ipv6(struct bpf_fib_lookup *fib, struct ipv6hdr *ip, void *end)
{
	if ((void *)(ip + 1) > end || ip->version != 6 || ip->hop_limit <= 1)
		return false;
	fib->family = AF_INET6;
	fib->flowinfo = *(__be32 *)ip & IPV6_FLOWINFO_MASK;
	fib->l4_protocol = ip->nexthdr;
	fib->tot_len = bpf_ntohs(ip->payload_len) + sizeof(*ip);
	__builtin_memcpy(fib->ipv6_src, &ip->saddr, sizeof(ip->saddr));
	__builtin_memcpy(fib->ipv6_dst, &ip->daddr, sizeof(ip->daddr));
	return true;
}

SEC("xdp.frags")
int xdp_router(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = (void *)(long)ctx->data;
	void *ip = ethernet + 1;
	struct bpf_fib_lookup fib = {.ifindex = ctx->ingress_ifindex};

	if (ip > end)
		return XDP_PASS;
	switch (ethernet->h_proto) {
	case bpf_htons(ETH_P_IP):
		if (!look_up_ipv4(&fib, ip, end))
			return XDP_PASS;
		break;
	case bpf_htons(ETH_P_IPV6):
		if (!look_up_ipv6(&fib, ip, end))
			return XDP_PASS;
		break;
	default:
		return XDP_PASS;
	}

	switch (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0)) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		break;
	case BPF_FIB_LKUP_RET_BLACKHOLE:
		return XDP_DROP;
	default:
		return XDP_PASS;
	}

	if (fib.family == AF_INET)
		decrement_ttl(ip);
	else
		((struct ipv6hdr *)ip)->hop_limit--;
	__builtin_memcpy(ethernet->h_dest, fib.dmac, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, fib.smac, ETH_ALEN);
	return bpf_redirect(fib.ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
