// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * pass: hands every frame to the kernel.
 *
 * A veth takes redirected frames only where its receiving end runs NAPI, and that comes with
 * GRO or with an XDP program. This program gives NAPI to a device that is measured without GRO.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp.frags")
int pass(struct xdp_md *ctx __attribute__((unused)))
{
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
