package sim_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/units"
	"tutti/sim"
)

func BenchmarkScale(b *testing.B) {
	for _, a := range []model.Algorithm{model.Tree, model.NVLSTree} {
		b.Run(fmt.Sprint(a), func(b *testing.B) {
			w := newWorld(b, "dgx-h100", 1024, 0)
			s := w.schedule(b, a, w.tuned.Protocol(a, units.GiB), units.GiB)
			for b.Loop() {
				r, err := sim.Run(s, w.cluster, profile.ForGPU(90))
				require.NoError(b, err)
				b.ReportMetric(float64(r.Events)/1e6, "Mevents")
			}
		})
	}
}
