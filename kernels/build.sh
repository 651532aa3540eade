#!/usr/bin/env bash
# Builds ptx/*.ptx.gz from the sources here. Run it after every change of a source:
# a test fails until then. clang 19 needs no CUDA toolkit (Debian: clang-19).
set -euo pipefail
cd "$(dirname "$0")"
CLANG=${CLANG:-clang-19}
digest=$(cat *.cu *.cuh build.sh | sha256sum | cut -d' ' -f1)
mkdir -p ptx
rm -f ptx/*
compile() { # NAME SOURCE DEFINITIONS...
	name=$1 source=$2
	shift 2
	{
		echo "// $source of tutti, sources $digest"
		"$CLANG" -x cuda --cuda-device-only --cuda-gpu-arch=sm_90 -nocudainc -nocudalib --cuda-feature=+ptx83 \
			-O3 -std=c++17 -Wall -Wextra -Werror -S -o - "$@" "$source"
	} | gzip -9n >"ptx/$name.ptx.gz"
}
compile common common.cu
for type in float half bfloat16; do compile nvls_$type nvls.cu -DTYPE=$type; done
for op in Sum Prod Min Max Avg; do
	lower=$(echo $op | tr SPMA spma)
	compile float_$lower allreduce.cu -DTYPE=float -DOP=$op
	compile double_$lower allreduce.cu -DTYPE=double -DOP=$op
	compile half_$lower allreduce.cu -DTYPE=half -DOP=$op
	compile bfloat16_$lower allreduce.cu -DTYPE=bfloat16 -DOP=$op
	compile int8_$lower allreduce.cu "-DTYPE=signed char" -DOP=$op
	compile int32_$lower allreduce.cu -DTYPE=int -DOP=$op
	compile int64_$lower allreduce.cu "-DTYPE=long long" -DOP=$op
	case $op in Sum | Prod) continue ;; esac # which have the same bits without a sign
	compile uint8_$lower allreduce.cu "-DTYPE=unsigned char" -DOP=$op
	compile uint32_$lower allreduce.cu -DTYPE=unsigned -DOP=$op
	compile uint64_$lower allreduce.cu "-DTYPE=unsigned long long" -DOP=$op
done
