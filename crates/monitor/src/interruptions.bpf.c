// SPDX-License-Identifier: GPL-2.0
/*
 * When a core did not do our work: its changes of threads and a timer of its own enter; leaves a log
 * of the stretches that others had, and what the hypervisor and kernel threads took altogether.
 *
 * Most kernels do not take a core away from a kernel thread, however urgent the one that waits, and
 * a hypervisor asks nobody. /proc/stat tells of both in ticks of 10 ms, too coarse for a trial of a
 * second in which 4 ms decide, and not when it was.
 *
 * `find` is run once on each core that is watched, `read` whenever the clocks are to be read.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define MAX_CORES 512
/* Cores that can be watched at once. */
#define MAX_WATCHED 64
/* Stretches that are kept of each; a power of two. */
#define KEPT 2048
/* Shorter stretches are not kept: any queue bears them. */
#define SHORTEST_NS (50 * 1000)
/* A timer that strikes so late was kept from it: it is a hard interrupt, which no work of ours delays. */
#define LATE_NS (60 * 1000)
#define MAX_OURS 1024
/* TASK_COMM_LEN of linux/sched.h. */
#define NAME_LENGTH 16
#define PF_KTHREAD 0x00200000

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
	unsigned int flags;
	int pid;
	int tgid;
	struct sched_entity se;
	char comm[NAME_LENGTH];
} __attribute__((preserve_access_index));

/* Place of each core among those that are watched, plus one. Set before loading. */
const volatile __u8 watched[MAX_CORES];
/* How often the timer strikes. Set before loading. */
const volatile __u64 period_ns;
/* The process that watches. Its threads are not named. Set before loading. */
const volatile __u32 own_process;

/* The only variable, so that it stands at the beginning of its map. */
struct core {
	struct rq *queue; /* stays where it is */
	__u64 steal_ns;	  /* what the hypervisor took, by the last `read` */
	__u64 timer_at;	  /* its timer struck last … */
	__u64 known_ns;	  /* … and this much had been stolen … */
	__u64 idled;	  /* … and since then it had nothing to do for a moment */
	__u64 kernel_ns;  /* kernel threads that are not ours ran this long */
	__u64 since;	  /* the thread that runs now came on */
	__u64 logged;	  /* stretches so far */
} cores[MAX_WATCHED];

struct stretch {
	__u64 start; /* nanoseconds of the monotonic clock */
	__u64 end;
	__u64 taken;		/* of it */
	char name[NAME_LENGTH]; /* of the thread that had the core; empty if none had, or one of ours */
};

struct log {
	struct stretch stretches[KEPT];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct log);
	__uint(max_entries, 1); /* set to the number of cores watched */
} logs SEC(".maps");

/* Threads whose work is ours. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u8);
	__uint(max_entries, MAX_OURS);
} ours SEC(".maps");

static __always_inline struct core *this_core(__u32 *place)
{
	__u32 number = bpf_get_smp_processor_id();

	if (number >= MAX_CORES || !watched[number])
		return 0;
	*place = watched[number] - 1;
	return *place < MAX_WATCHED ? &cores[*place] : 0;
}

static __always_inline void log_stretch(struct core *core, __u32 place, __u64 start, __u64 end, __u64 taken,
					const struct task_struct *task)
{
	struct log *log = bpf_map_lookup_elem(&logs, &place);
	struct stretch *stretch;

	if (!log)
		return;
	stretch = &log->stretches[core->logged & (KEPT - 1)];
	stretch->start = start;
	stretch->end = end;
	stretch->taken = taken;
	__builtin_memset(stretch->name, 0, NAME_LENGTH);
	if (task)
		bpf_core_read_str(stretch->name, NAME_LENGTH, &task->comm);
	core->logged++;
}

static __always_inline __u64 steal_of(struct rq *queue)
{
	/* The first is brought up to date whenever the core changes threads, the second by ticks. */
	if (bpf_core_field_exists(queue->prev_steal_time_rq))
		return BPF_CORE_READ(queue, prev_steal_time_rq);
	return BPF_CORE_READ(queue, prev_steal_time);
}

SEC("syscall")
int find(void *context __attribute__((unused)))
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u32 place;
	struct core *core = this_core(&place);

	if (!core)
		return 1;
	core->queue = BPF_CORE_READ(task, se.cfs_rq, rq);
	if (!core->queue)
		return 1;
	core->known_ns = steal_of(core->queue);
	return 0;
}

SEC("syscall")
int read(void *context __attribute__((unused)))
{
	for (__u32 place = 0; place < MAX_WATCHED; place++) {
		if (cores[place].queue)
			cores[place].steal_ns = steal_of(cores[place].queue);
	}
	return 0;
}

/*
 * Whatever stops a core stops its timer: a hypervisor that gives it to others, or that is busy with
 * its memory, which no counter of the guest shows. Of a core that idles in between, only what its
 * hypervisor calls stolen counts: a timer may wait for it.
 */
SEC("perf_event")
int on_timer(void *context __attribute__((unused)))
{
	__u32 place;
	struct core *core = this_core(&place);
	__u64 now = bpf_ktime_get_ns();
	__u64 last, late, stolen;

	if (!core || !core->queue)
		return 0;
	last = core->timer_at;
	late = now - last > period_ns && !core->idled ? now - last - period_ns : 0;
	stolen = steal_of(core->queue) - core->known_ns;
	if (last && (late >= LATE_NS || stolen >= SHORTEST_NS))
		log_stretch(core, place, last, now, late > stolen ? late : stolen, 0);
	core->known_ns += stolen;
	core->timer_at = now;
	core->idled = 0;
	return 0;
}

SEC("tp_btf/sched_switch")
int on_switch(__u64 *arguments)
{
	const struct task_struct *previous = (const void *)arguments[1];
	__u32 place, pid = previous->pid;
	struct core *core = this_core(&place);
	__u64 since, now;

	if (!core)
		return 0;
	now = bpf_ktime_get_ns();
	since = core->since;
	core->since = now;
	core->idled |= !pid;
	if (!pid || !since || bpf_map_lookup_elem(&ours, &pid))
		return 0;
	if (previous->flags & PF_KTHREAD)
		core->kernel_ns += now - since;
	if (now - since >= SHORTEST_NS)
		log_stretch(core, place, since, now, now - since,
			    (__u32)previous->tgid == own_process ? 0 : previous);
	return 0;
}

char _license[] SEC("license") = "GPL";
