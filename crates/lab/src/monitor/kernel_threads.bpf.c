// SPDX-License-Identifier: GPL-2.0
/*
 * How long each kernel thread has run: nothing enters; a record for each leaves, when the iterator is
 * read. Most kernels do not take a core away from a kernel thread, whoever waits, so their work there
 * is the device's standstill.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define PF_KTHREAD 0x00200000

/* As much of the kernel's types as is needed; where it stands is found when the program is loaded. */
struct seq_file;

struct thread_info {
	__u32 cpu;
} __attribute__((preserve_access_index));

struct sched_entity {
	__u64 sum_exec_runtime;
} __attribute__((preserve_access_index));

struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	int pid;
	struct sched_entity se;
} __attribute__((preserve_access_index));

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));

/* What user space reads. */
struct ran {
	__u32 pid;
	__u32 core;
	__u64 ns;
};

SEC("iter/task")
int threads(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct ran ran;

	if (!task || !(task->flags & PF_KTHREAD))
		return 0;
	ran.pid = task->pid;
	ran.core = task->thread_info.cpu;
	ran.ns = task->se.sum_exec_runtime;
	bpf_seq_write(context->meta->seq, &ran, sizeof(ran));
	return 0;
}

char _license[] SEC("license") = "GPL";
