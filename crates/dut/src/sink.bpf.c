// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * sink: drops every frame, and counts all but broadcast and multicast ones.
 */
#include "frame.bpf.h"
#include <bpf/bpf_helpers.h>

/* The two interfaces, by index. Set before loading. */
const volatile __u32 interfaces[2];

struct counts {
	__u64 frames;
	__u64 bytes; /* without FCS */
};

/* One entry for each direction: 0 entered interfaces[0], 1 entered interfaces[1]. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct counts);
} directions SEC(".maps");

SEC("xdp.frags")
int sink(struct xdp_md *ctx)
{
	__u32 direction = ctx->ingress_ifindex == interfaces[1];
	struct counts *counts = bpf_map_lookup_elem(&directions, &direction);

	if (counts && !is_group_addressed(ctx)) {
		counts->frames++;
		counts->bytes += bpf_xdp_get_buff_len(ctx);
	}
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
