package tuning

import (
	"math/bits"

	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
)

// predictNVLS follows the first loop through scatter, reduction and multicast,
// and gather, and the others behind it at the pace of the slowest.
func (d *Predictor) predictNVLS(t schedule.Task) Prediction {
	s := schedule.NVLSShape(t, d.nvls.heads)
	k := d.kernel(t, &s)
	heads := float64(d.nvls.heads)
	local := 1e6 / float64(d.profile.LocalCopy)
	warps := [4]float64{6, 5, 5, 4} // of 16: scatter, gather, reduce, broadcast
	if d.nodes == 1 {
		warps = [4]float64{8, 7, 5, 0}
		if d.ranks <= 6 {
			warps = [4]float64{7, 6, 7, 0}
		}
	}
	h := d.nvls.latency + d.profile.Handover[profile.HopNVLink][t.Algorithm][t.Protocol].Microseconds()
	stage := func(b units.Bytes, n int) float64 {
		switch share := warps[n] / 16; n {
		case 0, 1:
			return float64(b) * heads * local / share
		default:
			// A GPU's link carries every head's share once in each direction, and its
			// own twice.
			link := float64(b) * (heads + 1) * d.nvls.link * k.channels / d.profile.Multimem
			return max(float64(b)*k.perByte/share, link)
		}
	}
	first := s.Chunk
	if s.Loops == 1 {
		first = s.Last
	}
	whole := stage(first, 0) + stage(first, 2) + stage(first, 1)
	hops := 3*k.overhead + 2*h
	busy := func(b units.Bytes) float64 { return max(stage(b, 0), stage(b, 1), stage(b, 2)) }
	if d.nodes > 1 {
		levels := 2 * (bits.Len(uint(d.nodes - 1)))
		net := k.copying(first, warps[2]/16) + k.wire(first, &d.nvls.inter)
		hops += float64(levels) * (k.overhead + k.handover(&d.nvls.inter))
		whole += float64(levels) * net
		one := busy
		busy = func(b units.Bytes) float64 { return max(one(b), k.wire(b, &d.nvls.both)) }
	}
	p := Prediction{limit: "the slowest of scatter, switch, network and gather"}
	p.terms = [4]float64{k.base, hops, whole, 0}
	if s.Loops > 1 {
		p.terms[3] = float64(s.Loops-1)*(busy(s.Chunk)+k.overhead) - busy(s.Chunk) + busy(s.Last)
	}
	return p
}

// predictNVLSBlocks predicts AllGather and ReduceScatter through the switch: each
// rank's block crosses its link once and every other link once.
func (d *Predictor) predictNVLSBlocks(t schedule.Task) Prediction {
	s := schedule.BlocksShape(t)
	k := d.kernel(t, &s)
	n := float64(d.ranks)
	local := 1e6 / float64(d.profile.LocalCopy)
	const own, all = 12. / 16, 8. / 16
	h := d.nvls.latency + d.profile.Handover[profile.HopNVLink][t.Algorithm][t.Protocol].Microseconds()
	stage := func(b units.Bytes) (one, every float64) {
		link := float64(b) * n * d.nvls.link * k.channels / d.profile.Multimem
		return max(float64(b)*k.perByte/own, link), float64(b) * n * local / all
	}
	b := s.Chunk
	if s.Loops == 1 {
		b = s.Last
	}
	one, every := stage(b)
	p := Prediction{limit: "the slower of the switch and the copying beside it"}
	p.terms = [4]float64{k.base, 2*k.overhead + h, one + every, 0}
	if s.Loops > 1 {
		lastOne, lastEvery := stage(s.Last)
		p.terms[3] = float64(float64(s.Loops-2)*(k.overhead+max(one, every))) + k.overhead + max(lastOne, lastEvery)
	}
	return p
}
