#!/usr/bin/env bash
# What to run on the GPUs of one NVSwitch host: run.sh GPUS OUT [PART...], all parts unless
# some are named, with the program built as ./tutti (CGO_ENABLED=0 go build ./cmd/tutti).
# Each command has a time limit, and the next begins whatever becomes of it. OUT gets its
# output (NAME.out, with CSV where there are rows) and notes (NAME.err), and summary.txt
# says how each ended. Multicast stays off: such hosts are shared.
set -uo pipefail
gpus=$1 out=$2
shift 2
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1
mkdir -p "$out"

part() { # NAME SECONDS COMMAND...
	local name=$1 limit=$2 begun=$SECONDS
	shift 2
	timeout -k 5 "$limit" "$@" >"$out/$name.out" 2>"$out/$name.err"
	echo "$name: exit code $?, $((SECONDS - begun)) s" | tee -a "$out/summary.txt"
}
run() { part "$1" "$2" ./tutti run -g "$gpus" "${@:3}"; } # NAME SECONDS FLAGS...
peers=cuda,nccl,nccl-symmetric
algorithms="Ring Tree" protocols="LL LL128 Simple"

machine() { # what is there
	part machine 20 bash -c "nvidia-smi; lscpu; uname -r; nvidia-smi topo -m"
	part doctor 30 ./tutti doctor
	NCCL_TOPO_DUMP_FILE=$out/nccl.xml run dump 30 --backend nccl --sizes 8 # --machine live makes the same
	part live 20 ./tutti topo show --machine live --xml "$out/live.xml"
}
correct() { # every schedule, protocol, type and operation
	run correct 90 --backend cuda --algo all --proto all -d float,int8 -o sum,avg --sizes 40,100K,3M -n 2 --csv
	run correct-types 90 --backend cuda --algo ring,oneshot --proto ll,simple -d all -o all --sizes 1000 -n 1 --csv
	for coll in allgather reducescatter broadcast reduce alltoall sendrecv exchange; do
		run correct-$coll 40 --backend cuda --coll $coll --algo all --proto all --sizes 64,100K,4M -n 2 --csv
	done
}
stress() { # random calls back to back; faults must end in errors, and the next call must work
	run stress 200 --stress 3m -b 8 -e 64M --kernel-timeout 1s
}
sanitize() { # memory errors of the interpreter and the hot kernels
	for algo in ring,tree oneshot,twoshot; do
		part sanitize-$algo 120 compute-sanitizer --tool memcheck --error-exitcode 3 ./tutti run -g "$gpus" --backend cuda \
			--algo $algo --proto all -o avg --sizes 2004,300K -n 1 -w 0 --kernel-timeout 30s --csv
	done
	for coll in allgather reducescatter broadcast reduce alltoall sendrecv; do
		part sanitize-$coll 60 compute-sanitizer --tool memcheck --error-exitcode 3 ./tutti run -g "$gpus" --backend cuda \
			--coll $coll --algo oneshot,twoshot --proto all --sizes 2004,3M -n 1 -w 0 --kernel-timeout 30s --csv
	done
}
cancel() { # a run that is given up ends at once, and the next one works
	part cancel 30 timeout --preserve-status -s INT 8 ./tutti run -g "$gpus" --backend cuda --sizes 1G -n 100000
	run cancel-after 30 --backend cuda --sizes 1M
}
graphs() { # what tutti searches drives NCCL: its log says that channels were loaded from XML
	part search 20 ./tutti search --machine live --nvls=false --graph-dump-file "$out/graph.xml"
	NCCL_GRAPH_FILE=$out/graph.xml NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=GRAPH run graphs 30 --backend nccl --sizes 1M
}
probe() { run probe 90 --probe --sizes 1M,64M,256M; }
sweep() { # every launch: choose.go and choosecollective.go come from this
	run sweep 300 --sweep -b 8 -e 1G -f 4
	for coll in allgather reducescatter broadcast reduce alltoall sendrecv; do
		run sweep-$coll 90 --sweep --coll $coll -b 64 -e 1G -f 4 -n 10
	done
}
allreduce() { # tutti's choice beside NCCL's
	for d in float bfloat16; do
		run allreduce-$d-small 90 --backend $peers -b 8 -e 64M -n 50 -d $d --csv
		run allreduce-$d-large 150 --backend $peers -b 128M -e 4G -n 10 -d $d --csv
		part torch-$d 90 python3 "$(dirname "$0")/../hotkernels/torch_allreduce.py" "$gpus" $d
	done
}
forced() { # rings and trees by protocol: tutti's interpreter, and NCCL told to do the same
	for algo in $algorithms; do
		for proto in $protocols; do
			NCCL_ALGO=$algo NCCL_PROTO=$proto run forced-$algo-$proto 60 --backend cuda,nccl --algo ${algo,} --proto ${proto,,} -b 8 -e 1G -f 4 --csv
		done
	done
}
collectives() { # by themselves too: NCCL's sends over symmetric windows hang beside others (-T ends that)
	for coll in allgather reducescatter broadcast reduce alltoall sendrecv; do
		run $coll 60 --backend $peers --coll $coll -b 64 -e 1G -T 20 --csv
		run $coll-alone 60 --backend cuda --coll $coll -b 64 -e 1G --csv
		run $coll-nccl 60 --backend nccl --coll $coll -b 64 -e 1G --csv
	done
}

all="machine correct stress sanitize cancel graphs probe allreduce sweep forced collectives"
for name in ${*:-$all}; do
	case " $all " in
	*" $name "*) $name ;;
	*)
		echo "no part $name: want some of $all" >&2
		exit 2
		;;
	esac
done
