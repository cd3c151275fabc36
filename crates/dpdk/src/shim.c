/* SPDX-License-Identifier: Apache-2.0 */
/* See shim.h. Nothing here decides anything: it only calls DPDK. */
#define ALLOW_EXPERIMENTAL_API /* which rte_vect_set_max_simd_bitwidth is in DPDK 22.11 */
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mempool.h>
#include <rte_vect.h>

/* What DPDK returns where it sets rte_errno instead. */
static int by_errno(int result)
{
	if (result >= 0)
		return result;
	return rte_errno ? -rte_errno : result;
}

/* Before there are threads: libxdp, which net_af_xdp uses, reads it when it attaches a program. Its
 * dispatcher, by which several programs share an interface, leaves files in /sys/fs/bpf after kill -9. */
__attribute__((constructor)) static void no_dispatcher(void)
{
	setenv("LIBXDP_SKIP_DISPATCHER", "1", 0);
}

int linerate_log_to(int fd)
{
	FILE *stream = fdopen(fd, "a");

	if (!stream)
		return -errno;
	setvbuf(stream, NULL, _IOLBF, 0);
	return rte_openlog_stream(stream);
}

/* What the libraries of net_af_xdp say, of any level. */
static int note(int level, const char *format, va_list arguments)
{
	(void)level;
	return vfprintf(rte_log_get_stream(), format, arguments);
}

/* The driver's libraries, if they are there, say all to standard error unless they are told otherwise. */
static void listen_to(const char *library, const char *setter)
{
	void *(*set_print)(int (*print)(int, const char *, va_list));
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);

	if (!handle)
		return;
	*(void **)&set_print = dlsym(handle, setter);
	if (set_print)
		set_print(note);
	dlclose(handle);
}

int linerate_start(int argc, char **argv)
{
	int result;

	/* With its dispatcher libxdp pins files, which stay when the process is killed. */
	setenv("LIBXDP_SKIP_DISPATCHER", "1", 0);
	rte_errno = 0;
	result = by_errno(rte_eal_init(argc, argv));
	if (result >= 0) {
		listen_to("libxdp.so.1", "libxdp_set_print");
		listen_to("libbpf.so.1", "libbpf_set_print");
	}
	return result;
}

int linerate_clean_up(void)
{
	return rte_eal_cleanup();
}

const char *linerate_directory(void)
{
	return rte_eal_get_runtime_dir();
}

int linerate_register_thread(void)
{
	rte_errno = 0;
	return by_errno(rte_thread_register());
}

void linerate_unregister_thread(void)
{
	rte_thread_unregister();
}

struct rte_mempool *linerate_pool(const char *name, unsigned int count, unsigned int cache, uint16_t room,
				  int socket, int *error)
{
	struct rte_mempool *pool;

	rte_errno = 0;
	pool = rte_pktmbuf_pool_create(name, count, cache, 0, room + RTE_PKTMBUF_HEADROOM, socket);
	if (!pool)
		*error = rte_errno ? -rte_errno : -ENOMEM;
	return pool;
}

int linerate_pool_free(struct rte_mempool *pool, unsigned int count)
{
	if (rte_mempool_avail_count(pool) != count)
		return -EBUSY;
	rte_mempool_free(pool);
	return 0;
}

struct visitor {
	void (*visit)(void *context, void *data, size_t room);
	void *context;
};

static void visit_one(struct rte_mempool *pool, void *visitor, void *object, unsigned int index)
{
	struct rte_mbuf *mbuf = object;
	struct visitor *to = visitor;

	(void)pool;
	(void)index;
	to->visit(to->context, (char *)mbuf->buf_addr + RTE_PKTMBUF_HEADROOM,
		  mbuf->buf_len - RTE_PKTMBUF_HEADROOM);
}

void linerate_pool_each(struct rte_mempool *pool, void (*visit)(void *context, void *data, size_t room),
			void *context)
{
	struct visitor visitor = {visit, context};

	rte_mempool_obj_iter(pool, visit_one, &visitor);
}

/* What DPDK exports for drivers, without a header for others. */
struct rte_eth_dev *rte_eth_dev_allocated(const char *name);
int rte_eth_dev_release_port(struct rte_eth_dev *port);

/* Some drivers leave a port that they did not finish, and nobody gets its name any more. */
static void forget(const char *device)
{
	struct rte_eth_dev *left;
	struct rte_devargs args;

	memset(&args, 0, sizeof(args));
	if (rte_devargs_parse(&args, device) < 0)
		return;
	left = rte_eth_dev_allocated(args.name);
	if (left)
		rte_eth_dev_release_port(left);
	rte_devargs_reset(&args);
}

int linerate_probe(const char *device)
{
	struct rte_dev_iterator iterator;
	uint16_t port;
	int result = rte_dev_probe(device);

	if (result < 0 && result != -EEXIST) {
		forget(device);
		return result;
	}
	port = RTE_MAX_ETHPORTS;
	if (rte_eth_iterator_init(&iterator, device) == 0) {
		port = rte_eth_iterator_next(&iterator);
		if (port != RTE_MAX_ETHPORTS)
			rte_eth_iterator_cleanup(&iterator);
	}
	return port == RTE_MAX_ETHPORTS ? -ENODEV : port;
}

int linerate_remove(uint16_t port)
{
	struct rte_eth_dev_info info;
	int result = rte_eth_dev_info_get(port, &info);

	if (result < 0)
		return result;
	rte_eth_dev_stop(port);
	result = rte_eth_dev_close(port);
	if (result < 0)
		return result;
	return rte_dev_remove(info.device);
}

int linerate_facts(uint16_t port, struct linerate_facts *facts)
{
	struct rte_eth_dev_info info;
	struct rte_ether_addr mac;
	char name[RTE_ETH_NAME_MAX_LEN];
	int result = rte_eth_dev_info_get(port, &info);

	if (result < 0)
		return result;
	memset(facts, 0, sizeof(*facts));
	snprintf(facts->driver, sizeof(facts->driver), "%s", info.driver_name ? info.driver_name : "");
	if (rte_eth_dev_get_name_by_port(port, name) == 0)
		snprintf(facts->name, sizeof(facts->name), "%s", name);
	result = rte_eth_macaddr_get(port, &mac);
	if (result < 0)
		return result;
	memcpy(facts->mac, mac.addr_bytes, sizeof(facts->mac));
	facts->rx_queues = info.max_rx_queues;
	facts->tx_queues = info.max_tx_queues;
	facts->max_mtu = info.max_mtu;
	facts->max_frame = info.max_rx_pktlen;
	facts->socket = rte_eth_dev_socket_id(port);
	return rte_eth_dev_get_mtu(port, &facts->mtu);
}

int linerate_configure(uint16_t port, uint16_t rx_queues, uint16_t tx_queues, uint16_t mtu)
{
	const uint64_t spread = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP;
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf;
	int result = rte_eth_dev_info_get(port, &info);

	if (result < 0)
		return result;
	memset(&conf, 0, sizeof(conf));
	conf.rxmode.mtu = mtu;
	if (rx_queues > 1 && info.flow_type_rss_offloads & spread) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = info.flow_type_rss_offloads & spread;
	}
	/* Frames of one pool, in one segment, freed where they were sent: what a fast driver asks for. */
	conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	return rte_eth_dev_configure(port, rx_queues, tx_queues, &conf);
}

int linerate_rx_queue(uint16_t port, uint16_t queue, uint16_t descriptors, struct rte_mempool *pool)
{
	uint16_t others = descriptors;
	int result = rte_eth_dev_adjust_nb_rx_tx_desc(port, &descriptors, &others);

	if (result < 0)
		return result;
	return rte_eth_rx_queue_setup(port, queue, descriptors, rte_eth_dev_socket_id(port), NULL, pool);
}

int linerate_tx_queue(uint16_t port, uint16_t queue, uint16_t descriptors)
{
	uint16_t others = descriptors;
	int result = rte_eth_dev_adjust_nb_rx_tx_desc(port, &others, &descriptors);

	if (result < 0)
		return result;
	return rte_eth_tx_queue_setup(port, queue, descriptors, rte_eth_dev_socket_id(port), NULL);
}

int linerate_port_start(uint16_t port)
{
	return rte_eth_dev_start(port);
}

int linerate_port_stop(uint16_t port)
{
	return rte_eth_dev_stop(port);
}

int linerate_promiscuous(uint16_t port)
{
	return rte_eth_promiscuous_enable(port);
}

int linerate_link(uint16_t port, struct linerate_link *link)
{
	struct rte_eth_link now;
	int result = rte_eth_link_get_nowait(port, &now);

	if (result < 0)
		return result;
	link->up = now.link_status;
	link->full_duplex = now.link_duplex;
	link->mbps = now.link_speed;
	return 0;
}

int linerate_stats(uint16_t port, struct linerate_stats *stats)
{
	struct rte_eth_stats now;
	int result = rte_eth_stats_get(port, &now);

	if (result < 0)
		return result;
	stats->received = now.ipackets;
	stats->sent = now.opackets;
	stats->received_bytes = now.ibytes;
	stats->sent_bytes = now.obytes;
	stats->missed = now.imissed;
	stats->receive_errors = now.ierrors;
	stats->send_errors = now.oerrors;
	stats->no_mbuf = now.rx_nombuf;
	return 0;
}

int linerate_counters(uint16_t port, struct linerate_counter *counters, unsigned int room)
{
	int count = rte_eth_xstats_get_names(port, NULL, 0);
	struct rte_eth_xstat_name *names = NULL;
	struct rte_eth_xstat *values = NULL;
	int i;

	if (count <= 0)
		return count;
	names = calloc(count, sizeof(*names));
	values = calloc(count, sizeof(*values));
	if (!names || !values) {
		count = -ENOMEM;
	} else if (rte_eth_xstats_get_names(port, names, count) != count ||
		   rte_eth_xstats_get(port, values, count) != count) {
		count = -EAGAIN;
	} else {
		for (i = 0; i < count && (unsigned int)i < room; i++) {
			snprintf(counters[i].name, sizeof(counters[i].name), "%s", names[i].name);
			counters[i].value = values[i].value;
		}
	}
	free(names);
	free(values);
	return count;
}

uint16_t linerate_receive(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count)
{
	return rte_eth_rx_burst(port, queue, mbufs, count);
}

uint16_t linerate_send(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count)
{
	return rte_eth_tx_burst(port, queue, mbufs, count);
}

/*
 * What comes home to a pool has one segment and one owner (rte_mbuf_raw_free), so that only this is
 * left to set, in the cache line that is written anyway.
 */
int linerate_alloc(struct rte_mempool *pool, struct rte_mbuf **mbufs, unsigned int count)
{
	int result = rte_mempool_get_bulk(pool, (void **)mbufs, count);
	unsigned int i;

	if (result < 0)
		return result;
	for (i = 0; i < count; i++) {
		mbufs[i]->data_off = RTE_PKTMBUF_HEADROOM;
		mbufs[i]->ol_flags = 0;
	}
	return 0;
}

void linerate_free(struct rte_mbuf **mbufs, unsigned int count)
{
	rte_pktmbuf_free_bulk(mbufs, count);
}

struct rte_fib *linerate_fib4(const char *name, int routes, uint32_t groups, int *error)
{
	struct rte_fib_conf conf = {
		.type = RTE_FIB_DIR24_8,
		.max_routes = routes,
		.dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_4B, .num_tbl8 = groups},
	};
	struct rte_fib *fib;

	rte_errno = 0;
	/* As wide as the processor can: DPDK stays below of its own accord. */
	rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512);
	fib = rte_fib_create(name, SOCKET_ID_ANY, &conf);
	if (!fib)
		*error = rte_errno ? -rte_errno : -ENOMEM;
	return fib;
}

void linerate_fib4_free(struct rte_fib *fib)
{
	rte_fib_free(fib);
}

int linerate_fib4_add(struct rte_fib *fib, uint32_t address, uint8_t length, uint64_t hop)
{
	return rte_fib_add(fib, address, length, hop);
}

int linerate_fib4_delete(struct rte_fib *fib, uint32_t address, uint8_t length)
{
	return rte_fib_delete(fib, address, length);
}

void linerate_fib4_lookup(struct rte_fib *fib, const uint32_t *addresses, uint64_t *hops, unsigned int count)
{
	rte_fib_lookup_bulk(fib, (uint32_t *)addresses, hops, count);
}

struct rte_fib6 *linerate_fib6(const char *name, int routes, uint32_t groups, int *error)
{
	struct rte_fib6_conf conf = {
		.type = RTE_FIB6_TRIE,
		.max_routes = routes,
		.trie = {.nh_sz = RTE_FIB6_TRIE_4B, .num_tbl8 = groups},
	};
	struct rte_fib6 *fib;

	rte_errno = 0;
	rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512);
	fib = rte_fib6_create(name, SOCKET_ID_ANY, &conf);
	if (!fib)
		*error = rte_errno ? -rte_errno : -ENOMEM;
	return fib;
}

void linerate_fib6_free(struct rte_fib6 *fib)
{
	rte_fib6_free(fib);
}

int linerate_fib6_add(struct rte_fib6 *fib, const uint8_t address[16], uint8_t length, uint64_t hop)
{
	return rte_fib6_add(fib, address, length, hop);
}

int linerate_fib6_delete(struct rte_fib6 *fib, const uint8_t address[16], uint8_t length)
{
	return rte_fib6_delete(fib, address, length);
}

void linerate_fib6_lookup(struct rte_fib6 *fib, const uint8_t (*addresses)[16], uint64_t *hops,
			  unsigned int count)
{
	rte_fib6_lookup_bulk(fib, (uint8_t(*)[16])addresses, hops, count);
}
