/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Rust sees of DPDK: plain types, and functions for what DPDK has as inline functions, macros
 * or structs that differ from version to version. Functions return 0 or more, or a negative errno.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

/* Where the fields of an mbuf stand that every frame needs. */
enum linerate_mbuf {
	LINERATE_BUF_ADDR = offsetof(struct rte_mbuf, buf_addr),
	LINERATE_BUF_LEN = offsetof(struct rte_mbuf, buf_len),
	LINERATE_DATA_OFF = offsetof(struct rte_mbuf, data_off),
	LINERATE_DATA_LEN = offsetof(struct rte_mbuf, data_len),
	LINERATE_PKT_LEN = offsetof(struct rte_mbuf, pkt_len),
	LINERATE_NB_SEGS = offsetof(struct rte_mbuf, nb_segs),
	LINERATE_HEADROOM = RTE_PKTMBUF_HEADROOM,
	LINERATE_NAME = 64,
};

/* All that DPDK says goes to `fd` from now on. */
int linerate_log_to(int fd);
int linerate_start(int argc, char **argv);
int linerate_clean_up(void);
/* The directory that DPDK made for this process. */
const char *linerate_directory(void);
/* Gives the calling thread a number, and with it a cache of its own in every pool. */
int linerate_register_thread(void);
void linerate_unregister_thread(void);

/* A pool of mbufs with room for `room` bytes each, near `socket` or (-1) anywhere; NULL with *error set
 * otherwise. */
struct rte_mempool *linerate_pool(const char *name, unsigned int count, unsigned int cache, uint16_t room,
				  int socket, int *error);
/* Frees the pool if all its mbufs are at home; 0 if so. */
int linerate_pool_free(struct rte_mempool *pool, unsigned int count);
/* Calls `visit` for the buffer of every mbuf, behind its headroom. */
void linerate_pool_each(struct rte_mempool *pool, void (*visit)(void *context, void *data, size_t room),
			void *context);

struct linerate_facts {
	char driver[LINERATE_NAME];
	char name[LINERATE_NAME];
	uint8_t mac[6];
	uint16_t rx_queues; /* at most */
	uint16_t tx_queues;
	uint16_t mtu;
	uint16_t max_mtu;
	uint32_t max_frame; /* with FCS */
	int socket;
};

/* Makes a device known ("net_null0,size=64", "0000:01:00.0"); its port, or a negative errno. */
int linerate_probe(const char *device);
/* Stops and closes the port and forgets its device. */
int linerate_remove(uint16_t port);
int linerate_facts(uint16_t port, struct linerate_facts *facts);

/* Spreads over receive queues by addresses and ports, if there are several. */
int linerate_configure(uint16_t port, uint16_t rx_queues, uint16_t tx_queues, uint16_t mtu);
/* Sets up one queue with about so many descriptors, as near as the driver allows. */
int linerate_rx_queue(uint16_t port, uint16_t queue, uint16_t descriptors, struct rte_mempool *pool);
int linerate_tx_queue(uint16_t port, uint16_t queue, uint16_t descriptors);
int linerate_port_start(uint16_t port);
int linerate_port_stop(uint16_t port);
int linerate_promiscuous(uint16_t port);

struct linerate_link {
	uint8_t up;
	uint8_t full_duplex;
	uint32_t mbps; /* UINT32_MAX: not known */
};

int linerate_link(uint16_t port, struct linerate_link *link);

struct linerate_stats {
	uint64_t received;
	uint64_t sent;
	uint64_t received_bytes;
	uint64_t sent_bytes;
	uint64_t missed; /* no room in the receive queue */
	uint64_t receive_errors;
	uint64_t send_errors;
	uint64_t no_mbuf;
};

int linerate_stats(uint16_t port, struct linerate_stats *stats);

struct linerate_counter {
	char name[LINERATE_NAME];
	uint64_t value;
};

/* The extended statistics; how many there are, of which at most `room` are written. */
int linerate_counters(uint16_t port, struct linerate_counter *counters, unsigned int room);

/* What is called for every burst. */
uint16_t linerate_receive(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count);
uint16_t linerate_send(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count);
/* All of them or none: 0 or a negative errno. Their data begins behind the headroom. */
int linerate_alloc(struct rte_mempool *pool, struct rte_mbuf **mbufs, unsigned int count);
void linerate_free(struct rte_mbuf **mbufs, unsigned int count);

/* DPDK's tables of routes. Next hop 0 stands for no route. With room for so many routes, and for so many
 * groups of 256 entries below the first level; NULL with *error set otherwise. */
struct rte_fib *linerate_fib4(const char *name, int routes, uint32_t groups, int *error);
void linerate_fib4_free(struct rte_fib *fib);
int linerate_fib4_add(struct rte_fib *fib, uint32_t address, uint8_t length, uint64_t hop);
int linerate_fib4_delete(struct rte_fib *fib, uint32_t address, uint8_t length);
void linerate_fib4_lookup(struct rte_fib *fib, const uint32_t *addresses, uint64_t *hops, unsigned int count);

struct rte_fib6 *linerate_fib6(const char *name, int routes, uint32_t groups, int *error);
void linerate_fib6_free(struct rte_fib6 *fib);
int linerate_fib6_add(struct rte_fib6 *fib, const uint8_t address[16], uint8_t length, uint64_t hop);
int linerate_fib6_delete(struct rte_fib6 *fib, const uint8_t address[16], uint8_t length);
void linerate_fib6_lookup(struct rte_fib6 *fib, const uint8_t (*addresses)[16], uint64_t *hops,
			  unsigned int count);
