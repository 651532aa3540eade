#!/usr/bin/env bash
# Builds ptx/*.ptx.zst from the sources here. Run it after every change of a source:
# a test fails until then. clang 19 needs no CUDA toolkit (Debian: clang-19, zstd).
# The modules of a datatype, which are much alike, are compressed as one.
set -euo pipefail
cd "$(dirname "$0")"
CLANG=${CLANG:-clang-19}
digest=$(cat *.cu *.cuh build.sh | sha256sum | cut -d' ' -f1)
mkdir -p ptx
rm -f ptx/*
compile() { # NAME SOURCE DEFINITIONS...
	local name=$1 source=$2
	shift 2
	echo "// module $name: $source of tutti, sources $digest"
	"$CLANG" -x cuda --cuda-device-only --cuda-gpu-arch=sm_90 -nocudainc -nocudalib --cuda-feature=+ptx83 \
		-O3 -std=c++17 -Wall -Wextra -Werror -S -o - "$@" "$source"
}
pack() { zstd -q -19 -o "ptx/$1.ptx.zst"; }

compile common common.cu | pack common
for type in float half bfloat16; do compile nvls_$type nvls.cu -DTYPE=$type; done | pack nvls
while read -r name type; do
	for op in Sum Prod Min Max Avg; do
		case $name$op in uint*Sum | uint*Prod) continue ;; esac # which have the same bits with a sign
		compile "${name}_$(echo $op | tr SPMA spma)" allreduce.cu "-DTYPE=$type" -DOP=$op
	done | pack "$name"
done <<-END
	float float
	double double
	half half
	bfloat16 bfloat16
	int8 signed char
	int32 int
	int64 long long
	uint8 unsigned char
	uint32 unsigned
	uint64 unsigned long long
END
