package model_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"tutti/model"
	"tutti/model/units"
)

func ExampleParseAlgorithm() {
	a, _ := model.ParseAlgorithm("NVLSTree")
	_, err := model.ParseAlgorithm("butterfly")
	fmt.Println(a, a.Protocols())
	fmt.Println(err)
	// Output:
	// nvlstree [simple]
	// unknown algorithm "butterfly": want one of ring, tree, nvls, nvlstree, collnet, collnetchain, pat, simplering, railring, oneshot, twoshot, hierarchical, p2p
}

// The factors of nccl-tests' PERFORMANCE.md.
func TestBusFactor(t *testing.T) {
	for n := 1; n <= 64; n++ {
		share := 1 - 1/float64(n)
		assert.InDelta(t, 2*share, model.AllReduce.BusFactor(n), 1e-15)
		assert.InDelta(t, share, model.AllGather.BusFactor(n), 1e-15)
		assert.InDelta(t, share, model.ReduceScatter.BusFactor(n), 1e-15)
		assert.InDelta(t, share, model.AllToAll.BusFactor(n), 1e-15)
		assert.Equal(t, 1.0, model.Broadcast.BusFactor(n))
		assert.Equal(t, 1.0, model.Reduce.BusFactor(n))
		assert.Equal(t, 1.0, model.SendRecv.BusFactor(n))
	}
}

func TestWire(t *testing.T) {
	assert.Equal(t, units.Bytes(2048), model.LL.Wire(1024))
	assert.Equal(t, units.Bytes(256), model.LL128.Wire(240))
	assert.Equal(t, units.Bytes(258), model.LL128.Wire(241), "a part of a line carries a part of a flag")
	assert.Equal(t, units.Bytes(1024), model.Simple.Wire(1024))
}

// Whatever prints also parses, and a number without a name says so.
func TestNamesRoundTrip(t *testing.T) {
	roundTrip(t, model.ParseCollective, model.AllReduce, model.Exchange)
	roundTrip(t, model.ParseAlgorithm, model.Ring, model.P2P)
	roundTrip(t, model.ParseProtocol, model.LL, model.Simple)
	roundTrip(t, model.ParseDatatype, model.Int8, model.BFloat16)
	roundTrip(t, model.ParseRedop, model.Sum, model.Avg)
	for alias, want := range map[string]model.Datatype{"float16": model.Float16, "float32": model.Float32, "float64": model.Float64} {
		got, err := model.ParseDatatype(alias)
		assert.NoError(t, err)
		assert.Equal(t, want, got)
	}
	assert.Equal(t, "model.Redop(9)", model.Redop(9).String())
}

func roundTrip[T interface {
	~int
	fmt.Stringer
}](t *testing.T, parse func(string) (T, error), first, last T) {
	for v := first; v <= last; v++ {
		got, err := parse(v.String())
		assert.NoError(t, err)
		assert.Equal(t, v, got)
	}
	_, err := parse((last + 1).String())
	assert.Error(t, err)
}
