/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the devices that count need to know of a frame.
 */
#pragma once

#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>

/* Broadcast and multicast: what hosts say to find each other (ARP, neighbour discovery), not
 * load, and not counted as such. */
static inline bool is_group_addressed(struct xdp_md *ctx)
{
	__u8 *destination = (__u8 *)(long)ctx->data;

	return destination + ETH_ALEN <= (__u8 *)(long)ctx->data_end && destination[0] & 1;
}
