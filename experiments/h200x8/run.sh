#!/usr/bin/env bash
# What to run on the GPUs of one NVSwitch host, a part at a time, each within ten
# minutes: run.sh PART GPUS OUT, with the program built as ./tutti:
#   CGO_ENABLED=0 go build ./cmd/tutti
# OUT gets a CSV for each run. Multicast stays off: such hosts are shared.
set -euo pipefail
part=$1 gpus=$2 out=$3
export NCCL_NVLS_ENABLE=0
mkdir -p "$out"
run() { ./tutti run -g "$gpus" "$@"; }
peers=cuda,nccl,nccl-symmetric

case $part in
machine) # what is there
	nvidia-smi >"$out/machine.txt"
	nvidia-smi topo -m >>"$out/machine.txt"
	./tutti doctor | tee "$out/doctor.txt"
	;;
correct) # every schedule, protocol, type and operation; kernels that were never run first
	run --backend cuda --algo all --proto all -d all -o all --sizes 40,100K -n 2 --csv >"$out/correct-allreduce.csv"
	for coll in allgather reducescatter broadcast reduce alltoall sendrecv exchange; do
		run --backend cuda --coll $coll --algo all --proto all --sizes 64,100K,4M -n 2 --csv >"$out/correct-$coll.csv"
	done
	;;
stress) # random calls back to back; ranks that are left out must end in an error within the timeout
	run --stress 3m -b 8 -e 64M --kernel-timeout 1s | tee "$out/stress.txt"
	;;
sanitize) # memory errors of the interpreter and the hot kernels
	for algo in ring,tree oneshot,twoshot; do
		compute-sanitizer --tool memcheck --error-exitcode 3 ./tutti run -g "$gpus" --backend cuda --algo $algo --proto all \
			-o avg --sizes 40,100K -n 1 -w 0 --kernel-timeout 2m | tee -a "$out/sanitize.txt"
	done
	;;
cancel) # a run that is given up ends at once, and the next one works
	timeout -s INT 20 ./tutti run -g "$gpus" --backend cuda --sizes 1G -n 100000 || echo "exit code $?" | tee "$out/cancel.txt"
	run --backend cuda --sizes 1M | tee -a "$out/cancel.txt"
	;;
probe)
	run --probe --sizes 1M,64M,256M >"$out/probe.csv"
	;;
allreduce) # tutti's choice beside NCCL's
	run --backend $peers -b 8 -e 4G --csv >"$out/allreduce-float.csv"
	run --backend $peers -b 8 -e 4G -d bfloat16 --csv >"$out/allreduce-bfloat16.csv"
	;;
sweep) # every launch: choose.go comes from this
	run --sweep -b 8 -e 1G -f 4 >"$out/sweep.csv"
	;;
forced) # rings and trees by protocol: tutti's interpreter, and NCCL told to do the same
	for algo in Ring Tree; do
		for proto in LL LL128 Simple; do
			NCCL_ALGO=$algo NCCL_PROTO=$proto run --backend cuda,nccl --algo ${algo,} --proto ${proto,,} -b 8 -e 1G -f 4 --csv >"$out/forced-$algo-$proto.csv"
		done
	done
	;;
collectives)
	for coll in allgather reducescatter broadcast reduce alltoall sendrecv; do
		run --backend $peers --coll $coll -b 64 -e 1G -f 4 --csv >"$out/$coll.csv"
	done
	;;
*)
	echo "no part $part: want machine, correct, stress, sanitize, cancel, probe, allreduce, sweep, forced or collectives" >&2
	exit 2
	;;
esac
