// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * xdp-xconnect: what enters one interface leaves the other, unchanged.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* The two interfaces, by index. Set before loading. */
const volatile __u32 interfaces[2];

SEC("xdp.frags")
int xdp_xconnect(struct xdp_md *ctx)
{
	__u32 direction = ctx->ingress_ifindex == interfaces[1];

	return bpf_redirect(interfaces[!direction], 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
