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
	perByte, ramp, rampBytes float64 // of copying, with all threads
	streams                  bool
	channels                 float64 // in use
}

func (d *Predictor) kernel(t schedule.Task, channels int) kernel {
	c := d.profile
	return kernel{
		Predictor: d, a: t.Algorithm, p: t.Protocol, base: c.Base[t.Algorithm][t.Protocol].Microseconds(),
		overhead: c.Overhead[t.Protocol].Microseconds(), turn: c.Turn[t.Algorithm][t.Protocol].Microseconds(),
		perByte: 1e6 / float64(c.Copy[t.Algorithm][t.Protocol]), ramp: c.Ramp[t.Algorithm][t.Protocol].Microseconds(), rampBytes: float64(profile.RampBytes),
		streams: t.Protocol != model.Simple, channels: float64(channels),
	}
}

// handover returns what passes until the next rank knows of an item.
func (k *kernel) handover(w way) float64 {
	return w.latency + k.profile.Handover[w.hop][k.a][k.p].Microseconds()
}

// copying returns what a share of the block's threads takes for an item.
func (k *kernel) copying(b units.Bytes, share float64) float64 {
	return k.moving(b, share, profile.Streams)
}

// moving is copying in a step that reads and writes the given number of buffers.
func (k *kernel) moving(b units.Bytes, share float64, streams int) float64 {
	return float64(b)*k.perByte/share*float64(streams)/profile.Streams + k.ramp*min(1, float64(b)/k.rampBytes)
}

// wire returns what an item takes on a way that all channels in use share.
func (k *kernel) wire(b units.Bytes, w way) float64 {
	return float64(k.p.Wire(b)) * w.perByte * k.channels
}
