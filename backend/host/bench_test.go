package host_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tutti/backend/host"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// BenchmarkAllReduce runs AllReduce of 1 GiB of float32 over 8 ranks (256 MiB
// with -short) and reports the bytes that its steps read and write in a second,
// beside those of a plain parallel copy-and-add in the same run.
func BenchmarkAllReduce(b *testing.B) {
	size := 1 * units.GiB
	if testing.Short() {
		size /= 4
	}
	for _, c := range []struct {
		name      string
		algorithm model.Algorithm
		channels  int
	}{{"ring", model.Ring, 1}, {"ring", model.Ring, 4}, {"tree", model.Tree, 2}, {"nvls", model.NVLS, 2}} {
		b.Run(fmt.Sprintf("%s/channels=%d", c.name, c.channels), func(b *testing.B) {
			s, err := builder.Build(schedule.Task{
				Algorithm: c.algorithm, Protocol: model.Simple, Datatype: model.Float32, Channels: c.channels, Nodes: 1, Ranks: 8,
			}.Sized(size), 8)
			require.NoError(b, err)
			e, err := host.New(0).Prepare(s)
			require.NoError(b, err)
			defer e.Close()
			_, err = e.Run(context.Background(), 1)
			require.NoError(b, err)
			var took units.Time
			for b.Loop() {
				once, err := e.Run(context.Background(), 1)
				require.NoError(b, err)
				took += once
			}
			moved := e.(interface{ Moved() units.Bytes }).Moved() * units.Bytes(b.N)
			rate, plain := moved.Over(took), host.CopyAndAdd(size)
			b.ReportMetric(float64(rate/units.GBps), "GB/s")
			b.ReportMetric(float64(plain/units.GBps), "copy-and-add-GB/s")
			b.ReportMetric(float64(rate/plain), "share")
			b.ReportMetric(0, "ns/op")
		})
	}
}
