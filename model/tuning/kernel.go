package tuning

import (
	"tutti/model"
	"tutti/model/profile"
	"tutti/model/schedule"
	"tutti/model/units"
)

// kernel holds the constants of an algorithm over a protocol, in microseconds.
type kernel struct {
	*Predictor
	a                        model.Algorithm
	p                        model.Protocol
	base, overhead, turn     float64
	beside                   float64 // the turn, where stores are on their way meanwhile
	perByte, ramp, rampBytes float64 // of copying, with all threads
	streams                  bool
	block                    schedule.Block
	input, slots             float64 // for how many buffers more they count
	channels                 float64 // in use
	inRow                    bool    // calls behind each other, that no rank waits for
}

func (d *Predictor) kernel(t schedule.Task, s *schedule.Shape) kernel {
	c, a, p := d.profile, t.Algorithm, t.Protocol
	block := t.Block()
	slots, all := t.Footprint()
	k := kernel{
		Predictor: d, a: a, p: p, base: c.Base[a][p].Microseconds(), overhead: c.Overhead[p].Microseconds(), turn: c.Turn[a][p].Microseconds(),
		block: block, perByte: 1e6 / (float64(c.Copy[a][p]) * block.Working()), input: c.Misses(a, p, all), slots: c.Misses(a, p, slots),
		ramp: c.Ramp[a][p].Microseconds(), rampBytes: float64(profile.RampBytes), streams: p != model.Simple, channels: s.Busy, inRow: d.backToBack && t.Collective.Rooted(),
	}
	if p == model.LL {
		k.turn, k.beside = 0, k.turn
	}
	return k
}

// handover returns what passes until the next rank knows of an item.
func (k *kernel) handover(w *way) float64 {
	return w.latency + k.profile.Handover[w.hop][k.a][k.p].Microseconds()
}

// copying returns what a share of the block's threads takes for an item.
func (k *kernel) copying(b units.Bytes, share float64) float64 {
	return k.moving(b, share, profile.Streams)
}

// The buffers that the steps of a ring or tree read and write.
func (k *kernel) sends() float64         { return 2 + k.input }           // own data
func (k *kernel) reduces() float64       { return 3 + k.input + k.slots } // and passes the sum on
func (k *kernel) keepsAndSends() float64 { return 4 + k.input + k.slots } // the sum
func (k *kernel) passes() float64        { return 3 + k.slots }           // what it keeps
func (k *kernel) keeps() float64         { return 2 + k.slots }

// moving is copying in a step that reads and writes the given number of buffers.
func (k *kernel) moving(b units.Bytes, share, buffers float64) float64 {
	at := k.block.AtOnce(share)
	return float64((b+at-1)/at*at)*k.perByte/share*buffers/profile.Streams + k.ramp*min(1, float64(b)/k.rampBytes) + k.beside
}

// wire returns what an item takes on a way that all channels in use share.
func (k *kernel) wire(b units.Bytes, w *way) float64 {
	return k.crossing(b, w, byAll)
}

// crossing is wire where some of the others are on the way.
func (k *kernel) crossing(b units.Bytes, w *way, by int) float64 {
	return float64(k.p.Wire(b)) * w.perByte(k.channels, by)
}
