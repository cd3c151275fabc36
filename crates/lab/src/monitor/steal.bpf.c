// SPDX-License-Identifier: GPL-2.0
/*
 * What the hypervisor took of each core, to the nanosecond: nothing enters; leaves the clock that
 * the scheduler keeps of it. /proc/stat tells the same in ticks of 10 ms, too coarse for a trial of
 * a second in which 4 ms decide.
 *
 * `find` is run once on each core, `read` whenever the clocks are to be read.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define MAX_CORES 512

/* As much of the kernel's types as is needed; where it stands is found when the program is loaded. */
struct rq {
	__u64 prev_steal_time;
	__u64 prev_steal_time_rq;
} __attribute__((preserve_access_index));

struct cfs_rq {
	struct rq *rq;
} __attribute__((preserve_access_index));

struct sched_entity {
	struct cfs_rq *cfs_rq;
} __attribute__((preserve_access_index));

struct task_struct {
	struct sched_entity se;
} __attribute__((preserve_access_index));

/* The only variable, so that it stands at the beginning of its map. */
struct {
	struct rq *queue; /* stays where it is */
	__u64 steal_ns;
} clocks[MAX_CORES];

SEC("syscall")
int find(void *context __attribute__((unused)))
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u32 core = bpf_get_smp_processor_id();

	if (core >= MAX_CORES)
		return 1;
	clocks[core].queue = BPF_CORE_READ(task, se.cfs_rq, rq);
	return !clocks[core].queue;
}

static __always_inline __u64 steal_of(struct rq *queue)
{
	/* The first is brought up to date whenever the core changes threads, the second by ticks. */
	if (bpf_core_field_exists(queue->prev_steal_time_rq))
		return BPF_CORE_READ(queue, prev_steal_time_rq);
	return BPF_CORE_READ(queue, prev_steal_time);
}

SEC("syscall")
int read(void *context __attribute__((unused)))
{
	for (__u32 core = 0; core < MAX_CORES; core++) {
		if (clocks[core].queue)
			clocks[core].steal_ns = steal_of(clocks[core].queue);
	}
	return 0;
}

char _license[] SEC("license") = "GPL";
