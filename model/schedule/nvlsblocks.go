package schedule

import "tutti/model"

// NVLSBlocks is AllGather and ReduceScatter through the switch of one machine,
// where every rank is a head: in AllGather it stores its block to all ranks at
// once, in ReduceScatter it loads the sum of its block over all of them. Source:
// NCCL 2.28.3, src/device/{all_gather,reduce_scatter}.h, NVLS.
type NVLSBlocks struct {
	task  Task
	parts []looped // by channel
}

// NewNVLSBlocks returns the schedule of t. The two workers of (rank, channel) are
// 2*(rank*channels + channel) for the own block and the next number for all
// ranks' blocks; the connection of the own block has the number rank*channels +
// channel.
func NewNVLSBlocks(t Task) *NVLSBlocks {
	r := &NVLSBlocks{task: t}
	for _, p := range split(t) {
		r.parts = append(r.parts, p.loop(1, nvlsChunkOf(t, p, t.Ranks), 1))
	}
	return r
}

// Task implements [Schedule].
func (r *NVLSBlocks) Task() Task { return r.task }

// Workers implements [Schedule].
func (r *NVLSBlocks) Workers() int { return 2 * r.Connections() }

// Connections implements [Schedule].
func (r *NVLSBlocks) Connections() int { return r.task.Ranks * len(r.parts) }

// Worker implements [Schedule].
func (r *NVLSBlocks) Worker(w int) Worker {
	rank, ch, own := w/2/len(r.parts), w/2%len(r.parts), w%2 == 0
	gathers := r.task.Collective == model.AllGather
	worker := Worker{Rank: rank, Channel: ch, Steps: r.parts[ch].loops}
	ports := []int{w / 2}
	if !own {
		ports = nil
		for other := range r.task.Ranks {
			ports = append(ports, other*len(r.parts)+ch)
		}
	}
	worker.Share = 8. / 16 // of 20 warps, 8 serve all ranks
	if own {
		worker.Share = 12. / 16
	}
	switch {
	case own && gathers:
		worker.Role, worker.Out = RoleBroadcast, ports
	case own:
		worker.Role, worker.In = RoleReduce, ports
	case gathers:
		worker.Role, worker.In = RoleGather, ports
	default:
		worker.Role, worker.Out = RoleScatter, ports
	}
	return worker
}

// Connection implements [Schedule].
func (r *NVLSBlocks) Connection(c int) Connection {
	ch := c % len(r.parts)
	var all []int
	for rank := range r.task.Ranks {
		all = append(all, 2*(rank*len(r.parts)+ch)+1)
	}
	connection := Connection{Kind: Multicast, From: []int{2 * c}, To: all, Slots: bufferSteps, Room: r.parts[ch].chunk, OutNET: -1, InNET: -1}
	if r.task.Collective == model.ReduceScatter {
		connection.Kind, connection.From, connection.To = Reduction, connection.To, connection.From
	}
	return connection
}

// Step implements [Schedule].
func (r *NVLSBlocks) Step(w, i int) Step {
	rank, ch, own := w/2/len(r.parts), w/2%len(r.parts), w%2 == 0
	p := &r.parts[ch]
	s := Step{Offset: p.offset + int64(i)*p.chunk, Count: p.chunkOf(i), Stride: r.task.Count, End: r.task.Elements()}
	ports := First(r.task.Ranks)
	if own {
		s.narrow(rank)
		ports = Port(0)
	}
	// AllGather sends the own block and receives all, ReduceScatter the reverse.
	if own == (r.task.Collective == model.AllGather) {
		s.Input, s.Send = true, ports
	} else {
		s.Output, s.Recv = true, ports
	}
	return s
}
