package bench

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"tutti/backend"
	"tutti/backend/cuda"
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
)

// Probe measures what the wires between the GPUs carry, by engine, and how long
// a flag takes, and writes CSV. Each size is what one GPU sends to each peer.
func Probe(ctx context.Context, b *cuda.Backend, sizes []units.Bytes, to io.Writer) (err error) {
	comm, streams, err := b.Comm()
	if err != nil {
		return err
	}
	n := comm.Ranks()
	buffers := cuda.Buffers{GPUs: b.GPUs(), Call: schedule.Task{
		Collective: model.AllReduce, Datatype: model.Int8, Count: int64(slices.Max(sizes)) * int64(n), Ranks: n, Nodes: 1,
	}}
	defer func() { err = errors.Join(err, buffers.Close()) }()
	if err := buffers.Place(buffers.Alloc); err != nil {
		return err
	}
	call := cuda.Call{Input: buffers.Side(backend.Input), Output: buffers.Side(backend.Output)}
	out := csv.NewWriter(to)
	_ = out.Write(probeHeader) // an error is kept for Flush
	for peer := 1; peer < n; peer++ {
		t, err := comm.ProbeFlags(ctx, peer, streams)
		if err != nil {
			return err
		}
		_ = out.Write(probeRow("flag", n, cuda.Traffic{Peers: 1, Bytes: 4, Blocks: 1, Threads: 1}, t))
	}
	for _, t := range traffic(n, sizes) {
		took, err := comm.Probe(ctx, t, call, streams)
		if err != nil {
			return err
		}
		_ = out.Write(probeRow(t.Engine.String(), n, t, took))
		out.Flush()
	}
	return out.Error()
}

// probeHeader names the columns of [Probe]. Every GPU sends so many bytes to each of
// so many peers at once, within the time; GBps is what one GPU sends in all. A flag is
// four bytes that one GPU sends to another, one way.
var probeHeader = []string{"engine", "gpus", "peers", "bytes_per_peer", "blocks", "threads", "tile", "lanes", "pull", "eager", "time_us", "GBps"}

func probeRow(engine string, gpus int, t cuda.Traffic, took time.Duration) []string {
	sent := float64(t.Bytes) * float64(t.Peers)
	return []string{
		engine, strconv.Itoa(gpus), strconv.Itoa(t.Peers), strconv.FormatInt(int64(t.Bytes), 10), strconv.Itoa(t.Blocks), strconv.Itoa(t.Threads),
		strconv.Itoa(t.Tile), strconv.Itoa(t.Lanes), strconv.FormatBool(t.Pull), strconv.FormatBool(t.Eager),
		fmt.Sprintf("%.3f", float64(took)/1e3), fmt.Sprintf("%.3f", sent/float64(took)),
	}
}

// traffic lists what to probe.
func traffic(gpus int, sizes []units.Bytes) []cuda.Traffic {
	var list []cuda.Traffic
	for _, bytes := range sizes {
		for _, peers := range []int{1, gpus - 1} {
			if peers == 1 && gpus == 2 && len(list) > 0 && list[len(list)-1].Bytes == bytes {
				continue
			}
			for _, engine := range []cuda.Engine{cuda.Stores, cuda.Loads} {
				for _, blocks := range []int{24, 132, 264} {
					for _, threads := range []int{512, 1024} {
						list = append(list, cuda.Traffic{Engine: engine, Peers: peers, Bytes: bytes, Blocks: blocks, Threads: threads})
					}
				}
			}
			for _, blocks := range []int{24, 132} {
				for _, tile := range []int{2 << 10, 4 << 10, 8 << 10, 16 << 10} {
					list = append(list, cuda.Traffic{Engine: cuda.Bulk, Peers: peers, Bytes: bytes, Blocks: blocks, Threads: 32, Tile: tile})
				}
			}
			for lanes := 1; lanes <= peers; lanes++ {
				for variant := range 4 {
					list = append(list, cuda.Traffic{Engine: cuda.CopyEngines, Peers: peers, Bytes: bytes, Lanes: lanes, Pull: variant&1 > 0, Eager: variant&2 > 0})
				}
			}
		}
	}
	return list
}
