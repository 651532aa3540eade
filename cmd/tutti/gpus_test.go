package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tutti/backend/cuda"
	"tutti/experiments/sweep"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo"
)

// On GPUs auto is the kernel that was quickest at each size, and else Simple; NCCL
// is what its variables say.
func TestSuit(t *testing.T) {
	machine, err := topo.Open("h200x4")
	require.NoError(t, err)
	cluster, err := topo.NewCluster(machine, 1, 0, topo.RailOptimised)
	require.NoError(t, err)
	maker := sweep.NewMaker(cluster)
	auto := schedule.Task{Datatype: model.Float32, Algorithm: sweep.Auto, Protocol: sweep.Auto}
	for collective := model.AllReduce; collective <= model.Exchange; collective++ {
		auto.Collective = collective
		for size := units.Bytes(16); size <= 4*units.GiB; size *= 2 {
			s, err := maker.Schedule(suit(onCUDA, auto, size, 4), size)
			require.NoError(t, err)
			launch, ok := cuda.LaunchOf(s.Task())
			assert.True(t, ok)
			assert.Equal(t, cuda.ChooseFor(collective, 4, int64(size)), launch, "%v of %v", collective, size)
		}
	}
	auto.Collective = model.AllReduce
	ring := auto
	ring.Algorithm = model.Ring
	assert.Equal(t, model.Simple, suit(onCUDA, ring, units.KiB, 4).Protocol)
	assert.Equal(t, ring, suit(onHost, ring, units.KiB, 4))
	assert.Equal(t, auto, suit(onNCCL, ring, units.KiB, 4))
	t.Setenv("NCCL_ALGO", "Tree")
	t.Setenv("NCCL_PROTO", "LL128")
	told := suit(onSymmetric, ring, units.KiB, 4)
	assert.Equal(t, []any{model.Tree, model.LL128}, []any{told.Algorithm, told.Protocol})
}

// A backend without its library says which is missing, and auto goes on without.
func TestRunWithoutGPUs(t *testing.T) {
	for _, args := range []string{
		"--backend cuda", "--backend nccl --machine h200x4", "--backend cuda,nccl-symmetric", "--probe", "--sweep --csv", "--stress 1m --backend cuda",
	} {
		out, notes, code := tutti(append([]string{"run", "-q"}, strings.Fields(args)...)...)
		assert.Equal(t, 1, code, args)
		assert.Empty(t, out, args)
		assert.Regexp(t, `^tutti: no NVIDIA driver: cannot open libcuda.so.1: .*: tutti doctor says what else is missing(; --backend host needs none of it)?\n$`, notes, args)
	}
	out, _, code := tutti("run", "-q", "--backend", "host,host", "--sizes", "1K", "-n", "1", "--algo", "ring", "--proto", "ll")
	assert.Zero(t, code)
	assert.Regexp(t, `ring +ll +\d+ +host +1\.00\n.*host +\d+\.\d\d\n`, out)
}
