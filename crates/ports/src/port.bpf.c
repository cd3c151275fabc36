// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two programs for a port. `pass` is attached to it and hands every frame to the kernel: some drivers
 * transmit redirected frames only while a program is attached to the sending interface. `send` is run on a
 * handful of frames and redirects each to the port, to see whether any leaves.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* Set before loading. */
const volatile __u32 port_ifindex;

SEC("xdp.frags")
int pass(struct xdp_md *ctx __attribute__((unused)))
{
	return XDP_PASS;
}

SEC("xdp")
int send(struct xdp_md *ctx __attribute__((unused)))
{
	return bpf_redirect(port_ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
