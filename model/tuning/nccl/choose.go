package nccl

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"tutti/model"
	"tutti/model/units"
)

// Call is a collective to be carried out.
type Call struct {
	Collective model.Collective
	Datatype   model.Datatype
	Redop      model.Redop
	// Bytes is the larger of what a rank sends and receives: for AllGather and
	// ReduceScatter that of all ranks together, as nccl-tests counts.
	Bytes units.Bytes
	// Ops is how many collectives for each channel a group launches together; 0
	// counts as 1, a lone call.
	Ops int
}

// Choice is what NCCL would launch.
type Choice struct {
	Algorithm Algorithm
	Protocol  model.Protocol
	// Channels is the number of blocks, of Threads threads each.
	Channels, Threads int
	// Time is the prediction, in microseconds.
	Time float64
}

// batch is how many collectives one batch of device work holds: 1024 bytes of
// 96 each (src/include/device.h, NCCL_MAX_DEV_WORK_BATCH_COLLS).
const batch = 10

// Time predicts a call in microseconds; +Inf where the combination is not to be
// had.
func (m *Model) Time(c Call, a Algorithm, p model.Protocol) float64 {
	cost := m.Cost(c.Collective, a, p)
	bw, latency := cost.Bandwidth, cost.Latency
	if bw == 0 || !m.supports(c, a) {
		return math.Inf(1)
	}
	reduces := c.Collective == model.AllReduce
	if i := bits.Len64(uint64(c.Bytes>>6)) - 1; reduces && a == Tree && i >= 0 && i < len(treeCorrection[p]) {
		bw *= treeCorrection[p][i]
	}
	if reduces && a == Ring && p == model.Simple && m.comm.Nodes > 1 && int64(c.Bytes)/int64(m.channels*m.comm.Ranks) >= 64 {
		plateau := 1.4
		if m.comm.MinSM < 80 {
			plateau = 1.9
		}
		latency = float32(float64(latency) * plateau)
	}
	ops := max(1, c.Ops)
	if a != Ring { // pipelines of these overlap
		ops = (ops + batch - 1) / batch
	}
	return float64(float32(latency*float32(ops)) + float32(c.Bytes)/float32(1000*bw))
}

// supports tells whether an algorithm can carry out a call (src/enqueue.cc,
// collNetSupport and ncclNvlsSupported).
func (m *Model) supports(c Call, a Algorithm) bool {
	perNode := m.comm.PerNode()
	switch a {
	case CollNetDirect, CollNetChain:
		return perNode <= 8
	case NVLS, NVLSTree:
		return multimem(c) && (c.Collective == model.AllReduce || perNode <= 32)
	case PAT:
		return c.Collective != model.ReduceScatter || c.Redop != model.Avg
	default:
		return true
	}
}

// multimem tells whether the switch has the reduction: sums of whole and of
// floating-point numbers, the least and the greatest but of float and double.
func multimem(c Call) bool {
	if c.Collective == model.AllGather {
		return true
	}
	switch ordered := c.Redop == model.Min || c.Redop == model.Max; c.Datatype {
	case model.Int32, model.Uint32, model.Int64, model.Uint64, model.Float16, model.BFloat16:
		return c.Redop == model.Sum || ordered
	case model.Float32, model.Float64:
		return c.Redop == model.Sum
	default:
		return false
	}
}

// Choose returns the algorithm and protocol of the least time, the first of
// equals in NCCL's order; among restricts it to some algorithms. It fails when
// none can be had.
func (m *Model) Choose(c Call, among ...Algorithm) (Choice, error) {
	best := Choice{Time: math.Inf(1)}
	for a := range algorithms {
		if len(among) > 0 && !slices.Contains(among, a) {
			continue
		}
		for _, p := range model.Protocols() {
			if t := m.Time(c, a, p); t < best.Time {
				best = Choice{Algorithm: a, Protocol: p, Time: t}
			}
		}
	}
	if math.IsInf(best.Time, 1) {
		return best, fmt.Errorf("no algorithm and protocol for %v on %d ranks is enabled", c.Collective, m.comm.Ranks)
	}
	best.Channels, best.Threads = m.Launch(c, best.Algorithm, best.Protocol)
	return best, nil
}

// MaxChannels returns how many channels an algorithm uses at the most.
func (m *Model) MaxChannels(a Algorithm) int {
	switch {
	case a == NVLS && m.comm.Nodes > 1:
		return min(m.nvlsChannels, m.channels)
	case a == NVLS || a == NVLSTree:
		return m.nvlsChannels
	default:
		return m.channels
	}
}

// threshold returns the bytes that a thread should have at the least.
func (m *Model) threshold(a Algorithm, p model.Protocol) int {
	switch {
	case a == CollNetDirect || a == CollNetChain:
		return 512
	case p == model.Simple:
		return 64
	case a == Ring && p == model.LL:
		return 8 * m.comm.Ranks
	default:
		return 8
	}
}

// Launch returns how many channels and threads a call runs on: fewer of either
// when the threads would have too little to do.
func (m *Model) Launch(c Call, a Algorithm, p model.Protocol) (channels, threads int) {
	const warp = 32
	size := int(c.Bytes)
	channels, threads = m.MaxChannels(a), m.threads[a][p]
	threshold := m.threshold(a, p)
	switch a {
	case NVLS, NVLSTree:
	case CollNetDirect:
		channels = m.collNetChannels(size, channels, threads, threshold)
	default:
		for channels > 1 && size < channels*threads*threshold {
			channels--
		}
		for threads%128 == 0 && size < channels*threads*threshold {
			threads /= 2
		}
	}
	if p == model.Simple {
		switch a {
		case Ring:
			threads += warp // synchronises
		case Tree:
			threads += 4 * warp
		}
	}
	if a == Tree || a == PAT {
		threads = 640
	}
	return channels, max(threads, 3*warp)
}

// collNetChannels lowers the channels in stages; the more of a stage is gone,
// the less a thread must have.
func (m *Model) collNetChannels(size, channels, threads, threshold int) int {
	few := true
	for stage := 16; stage >= 1 && few; stage /= 2 {
		for {
			few = size < channels*threads*m.comm.CollNet.Heads*threshold
			if !few || channels <= stage {
				break
			}
			if channels == stage+stage/2 {
				threshold /= 2
			}
			channels--
		}
	}
	return channels
}
