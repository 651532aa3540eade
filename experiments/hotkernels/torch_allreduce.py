"""AllReduce by PyTorch's symmetric memory, one shot and two, as the rows of tutti's results.

One process drives each GPU. Times are medians over replays of a CUDA graph with many calls, of the slowest rank.
NVLink multicast stays off: the hosts are shared. Usage: torch_allreduce.py GPUS DATATYPE > torch.csv
"""

import os
import statistics
import sys
import tempfile

os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"
os.environ["NCCL_NVLS_ENABLE"] = "0"

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import torch.multiprocessing

REPLAYS = 11
LARGEST = {"oneshot": 16 << 20, "twoshot": 1 << 30}


def all_reduce(algorithm, x, group):
    if algorithm == "oneshot":
        return torch.ops.symm_mem.one_shot_all_reduce(x, "sum", group)
    return torch.ops.symm_mem.two_shot_all_reduce_(x, "sum", group)


def slowest(microseconds):
    """The times of the slowest rank, replay by replay."""
    t = torch.tensor(microseconds, device="cuda")
    dist.all_reduce(t, dist.ReduceOp.MAX)
    return t.tolist()


def wrong(x, result, ranks):
    """The number of elements, of all ranks, that rounding does not explain."""
    all_inputs = [torch.empty_like(x) for _ in range(ranks)]
    dist.all_gather(all_inputs, x)
    inputs = torch.stack(all_inputs).double()
    unit = 2**-24 if x.dtype == torch.float32 else 2**-8
    bound = 1.01 * unit * ranks * inputs.abs().sum(0)
    count = ((result.double() - inputs.sum(0)).abs() > bound).sum()
    dist.all_reduce(count)
    return int(count)


def measure(algorithm, memory, group, ranks):
    """Returns microseconds and the number of wrong elements."""
    x = torch.rand(memory.numel(), device="cuda").mul_(2).sub_(1).to(memory.dtype)
    memory.copy_(x)
    dist.barrier()
    result = all_reduce(algorithm, memory, group).clone()
    torch.cuda.synchronize()
    errors = wrong(x, result, ranks) if memory.nbytes <= 64 << 20 else None
    memory.zero_()  # sums of sums would overflow
    calls = 100 if memory.nbytes <= 4 << 20 else 20  # processes do not begin a graph at once
    graph = torch.cuda.CUDAGraph()
    dist.barrier()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            all_reduce(algorithm, memory, group)
    times = []
    for _ in range(REPLAYS + 1):
        dist.barrier()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / calls)
    return statistics.median(slowest(times[1:])), errors


def run(rank, ranks, name, meeting):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{meeting}/ranks", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank))
    group = dist.group.WORLD.group_name
    dtype = {"float": torch.float32, "bfloat16": torch.bfloat16}[name]
    room = symm_mem.empty(max(LARGEST.values()) // dtype.itemsize, dtype=dtype, device="cuda")
    symm_mem.rendezvous(room, group)
    if rank == 0:
        print("source,machine,collective,algorithm,protocol,nodes,ranks,channels,datatype,redop,bytes,time_us,algbw_GBps,busbw_GBps,inplace,wrong")
    for algorithm, largest in LARGEST.items():
        size = 16  # less is refused
        while size <= largest:
            us, errors = measure(algorithm, room[: size // dtype.itemsize], group, ranks)
            if rank == 0:
                alg = size / us / 1e3
                bus = alg * 2 * (ranks - 1) / ranks
                place = int(algorithm == "twoshot")
                count = "" if errors is None else errors
                print(f"torch,h200x{ranks},allreduce,{algorithm},simple,1,{ranks},24,{name},sum,{size},{us:.3f},{alg:.4f},{bus:.4f},{place},{count}", flush=True)
            size *= 2
    dist.destroy_process_group()


if __name__ == "__main__":
    gpus, datatype = int(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as meeting:
        torch.multiprocessing.spawn(run, (gpus, datatype, meeting), nprocs=gpus)
