package emulator_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/kernels/emulator"
)

// Each thread computes, the block waits, votes by warps, and writes.
const program = `
.visible .entry halves(
	.param .align 8 .b8 halves_param_0[16]
)
.maxntid 64, 1, 1
{
	.reg .pred %p<4>;
	.shared .align 4 .b8 sum[256]; // a word for each thread
	ld.param.u64 %rd1, [halves_param_0];
	ld.param.s32 %rd2, [halves_param_0+8];
	mov.u32 %r1, %tid.x;
	cvt.rn.f32.s32 %f1, %r1;
	div.rn.f32 %f2, %f1, 0f40000000; // 2
	mov.u64 %rd3, sum;
	mul.wide.u32 %rd4, %r1, 4;
	add.s64 %rd3, %rd3, %rd4;
	st.shared.f32 [%rd3], %f2;
	bar.sync 0;
	xor.b32 %r2, %r1, 63; // what another warp's thread has
	mul.wide.u32 %rd5, %r2, 4;
	mov.u64 %rd6, sum;
	add.s64 %rd6, %rd6, %rd5;
	ld.shared.f32 %f3, [%rd6];
	add.s64 %rd7, %rd1, %rd4;
	add.s64 %rd7, %rd7, %rd2;
	setp.lt.u32 %p1, %r1, 32;
	{ .reg .pred p, q; setp.ne.u32 p, %r1, 40; vote.sync.all.pred q, p, 0xffffffff; selp.u32 %r3, 1, 0, q; }
	setp.eq.s32 %p2, %r3, 0;
	@%p2 bra $L__second;
	st.global.f32 [%rd7], %f3;
	ret;
$L__second:
	mov.f32 %f3, 0fBF800000;
	st.global.f32 [%rd7], %f3;
	ret;
}
`

func TestMachine(t *testing.T) {
	p, err := emulator.Parse([]byte(program))
	require.NoError(t, err)
	m := emulator.New(1)
	out := m.Alloc(64 * 4)
	launch := func(at uint64, shift int32) error {
		params := binary.LittleEndian.AppendUint64(nil, at)
		params = binary.LittleEndian.AppendUint64(params, uint64(uint32(shift)))
		require.NoError(t, m.Launch(0, p, "halves", 1, 64, params))
		return m.Run()
	}
	require.NoError(t, launch(out+8, -8))
	for i := range 64 {
		want := float32(63-i) / 2
		if i >= 32 { // one of that warp voted no
			want = -1
		}
		assert.Equal(t, want, math.Float32frombits(binary.LittleEndian.Uint32(m.Bytes(out)[4*i:])), i)
	}
	assert.ErrorContains(t, launch(out, 4), "access to 4 bytes at 0x1")
	assert.ErrorContains(t, m.Launch(0, p, "quarters", 1, 64, nil), "no kernel quarters")
	assert.ErrorContains(t, m.Launch(0, p, "halves", 1, 96, make([]byte, 16)), "want up to 64, by 32, and 16")
}
